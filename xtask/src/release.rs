//! The wheels of a release for each kind of Linux, built on this machine.
//!
//! zig brings each target's C library, so that the wheels run on systems that are older than this
//! one. maturin fails if a wheel needs more than the system that it is for has. Wheels for macOS
//! and Windows are built where their libraries are: `release.yml`.

use std::path::PathBuf;

use anyhow::{Context, Result, bail};

use crate::project::Project;
use crate::python::Environment;
use crate::{run, system, wasm, wheel};

/// What is compiled for, and the oldest system that the wheel claims to run on.
const TARGETS: [(&str, &str); 3] = [
    ("x86_64-unknown-linux-gnu", "manylinux2014"),
    ("aarch64-unknown-linux-gnu", "manylinux2014"),
    ("x86_64-unknown-linux-musl", "musllinux_1_2"),
];

/// Builds the wheels that are released, or those of the triples that are named.
pub(crate) fn build(project: &Project, only: &[String]) -> Result<Vec<PathBuf>> {
    let known = TARGETS.map(|(triple, _)| triple);
    if let Some(unknown) = only.iter().find(|it| !known.contains(&it.as_str())) {
        bail!("{unknown} is none of {}", known.join(", "));
    }
    wasm::build(project)?;
    let environment = Environment::with(project, "release")?;
    let is_wanted = |triple: &str| only.is_empty() || only.iter().any(|it| it == triple);
    let wanted = TARGETS.iter().filter(|(triple, _)| is_wanted(triple));
    let build = |&(triple, compatibility): &(&str, &str)| {
        eprintln!("building the wheel for {triple}");
        system::add_target(triple)?;
        let folder = project.target("wheels-release").join(triple);
        wheel::remove_folder(&folder)?;
        let mut maturin = wheel::maturin(project, &environment, &folder);
        maturin
            .args(["--release", "--zig", "--target", triple])
            .args(["--compatibility", compatibility]);
        run::output(project.without_local_paths(&mut maturin))?;
        wheel::only(&folder, ".whl").context("maturin built no wheel")
    };
    wanted.map(build).collect()
}
