//! The wheels of a release: one for each kind of Linux, on this machine.
//!
//! zig brings each target's C library, so that the wheels run on systems that are older than this
//! one. Wheels for macOS and Windows are built where their libraries are: `release.yml`. Here they
//! only show that the code links.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use object::LittleEndian;
use object::elf::FileHeader64;
use object::read::elf::FileHeader;

use crate::project::Project;
use crate::python::Environment;
use crate::{portable, run, stamp, system, wasm};

struct Target {
    triple: &'static str,
    /// The oldest system that the wheel claims to run on; `None` if it is not released.
    compatibility: Option<&'static str>,
    /// The newest version of glibc that it may need; `None` for another C library.
    glibc: Option<Version>,
}

type Version = (u32, u32);

const TARGETS: [Target; 6] = [
    Target {
        triple: "x86_64-unknown-linux-gnu",
        compatibility: Some("manylinux2014"),
        glibc: Some((2, 17)),
    },
    Target {
        triple: "aarch64-unknown-linux-gnu",
        compatibility: Some("manylinux2014"),
        glibc: Some((2, 17)),
    },
    Target {
        triple: "x86_64-unknown-linux-musl",
        compatibility: Some("musllinux_1_2"),
        glibc: None,
    },
    elsewhere("x86_64-pc-windows-gnu"),
    elsewhere("aarch64-apple-darwin"),
    elsewhere("x86_64-apple-darwin"),
];

/// A system whose wheel is built on itself.
const fn elsewhere(triple: &'static str) -> Target {
    Target {
        triple,
        compatibility: None,
        glibc: None,
    }
}

/// Builds the wheels that are released, or those of the triples that are named, and checks what they need.
pub(crate) fn build(project: &Project, only: &[String]) -> Result<Vec<PathBuf>> {
    let known = TARGETS.map(|it| it.triple);
    if let Some(unknown) = only.iter().find(|it| !known.contains(&it.as_str())) {
        bail!("{unknown} is none of {}", known.join(", "));
    }
    wasm::build(project)?;
    let environment = Environment::release(project)?;
    let is_wanted = |it: &&Target| match only {
        [] => it.compatibility.is_some(),
        names => names.iter().any(|name| name == it.triple),
    };
    let wanted = TARGETS.iter().filter(is_wanted);
    wanted
        .map(|target| build_one(project, &environment, target))
        .collect()
}

fn build_one(project: &Project, environment: &Environment, target: &Target) -> Result<PathBuf> {
    if target.triple.contains("windows") {
        eprintln!("linking the extension for {}", target.triple);
        return portable::link_for_windows(project, target.triple);
    }
    eprintln!("building the wheel for {}", target.triple);
    system::add_target(target.triple)?;
    let out = project.target("wheels-release").join(target.triple);
    if out.exists() {
        fs::remove_dir_all(&out)?;
    }
    let mut maturin = environment.module("maturin");
    maturin
        .args(["build", "--release", "--locked", "--quiet", "--zig"])
        .args(["--target", target.triple])
        .args(["--compatibility", target.compatibility.unwrap_or("off")])
        .arg("--interpreter")
        .arg(environment.python_path())
        .arg("--manifest-path")
        .arg(project.path("pybind/Cargo.toml"))
        .arg("--target-dir")
        .arg(project.cargo_target())
        .arg("--out")
        .arg(&out)
        .current_dir(project.path("pybind"));
    if target.triple.ends_with("apple-darwin") {
        let frameworks = project.target("frameworks");
        stand_in_for_frameworks(&frameworks)?;
        let search = format!("link-arg=-F{}", frameworks.display());
        maturin.args(["--", "-C", &search]);
    }
    run::output(project.without_local_paths(&mut maturin))?;
    if target.compatibility.is_some() {
        let built = project.cargo_target().join(target.triple);
        check(&built.join("release/lib_gpumem.so"), target)?;
    }
    let mut built = stamp::entries(&out)?.into_iter();
    built.next().context("maturin built no wheel")
}

/// Frameworks of macOS that the extension links, without their symbols: zig has none of Apple's. What
/// is not found by the linker is looked up when the extension is loaded.
fn stand_in_for_frameworks(folder: &Path) -> Result<()> {
    for name in ["CoreFoundation", "IOKit"] {
        let framework = folder.join(format!("{name}.framework"));
        fs::create_dir_all(&framework)?;
        let install_name = format!("/System/Library/Frameworks/{name}.framework/{name}");
        let stub = format!(
            "--- !tapi-tbd\ntbd-version: 4\ntargets: [x86_64-macos, arm64-macos]\n\
             install-name: '{install_name}'\n...\n"
        );
        fs::write(framework.join(format!("{name}.tbd")), stub)?;
    }
    Ok(())
}

/// Fails if the library needs a newer C library than its wheel claims.
fn check(library: &Path, target: &Target) -> Result<()> {
    let bytes = fs::read(library).with_context(|| format!("reading {}", library.display()))?;
    let needed = newest_glibc(&bytes)?;
    eprintln!("{}: needs glibc {needed:?}", target.triple);
    if needed > target.glibc {
        bail!(
            "{} needs glibc {needed:?}, and {} has {:?}",
            library.display(),
            target.compatibility.unwrap_or_default(),
            target.glibc
        );
    }
    Ok(())
}

/// The newest version of glibc that a library names, if it names one.
fn newest_glibc(library: &[u8]) -> Result<Option<Version>> {
    let header = FileHeader64::<LittleEndian>::parse(library)?;
    let endian = header.endian()?;
    let sections = header.sections(endian, library)?;
    let Some((mut needs, names)) = sections.gnu_verneed(endian, library)? else {
        return Ok(None);
    };
    let names = sections.strings(endian, library, names)?;
    let mut newest = None;
    while let Some((_, mut versions)) = needs.next()? {
        while let Some(version) = versions.next()? {
            let name = String::from_utf8_lossy(version.name(endian, names)?);
            newest = newest.max(glibc(&name));
        }
    }
    Ok(newest)
}

/// `GLIBC_2.17` is 2.17; other names are no versions of glibc.
fn glibc(name: &str) -> Option<Version> {
    let mut numbers = name.strip_prefix("GLIBC_")?.split('.');
    let [major, minor] = [numbers.next()?, numbers.next()?].map(|it| it.parse().ok());
    Some((major?, minor?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_compare_by_number() {
        assert_eq!(glibc("GLIBC_2.2.5"), Some((2, 2)));
        assert_eq!(glibc("GCC_3.0"), None);
        assert!(glibc("GLIBC_2.9") < glibc("GLIBC_2.17"));
    }

    #[test]
    fn this_program_needs_a_glibc_that_is_not_newer_than_the_newest() {
        let own = std::env::current_exe().and_then(fs::read);
        let needed = newest_glibc(&own.expect("the test is a file")).expect("it is an ELF file");
        assert!(
            needed.is_some_and(|it| ((2, 2)..(3, 0)).contains(&it)),
            "{needed:?}"
        );
    }
}
