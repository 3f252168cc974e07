//! Linking one library: what is played of it, and stubs for the rest, under the version that
//! its users want.

use std::fmt::Write;
use std::fs;
use std::path::Path;

use anyhow::Result;

use super::wheel::Library;
use crate::run;

/// What every library is linked with.
pub(super) struct Linker<'a> {
    /// What is played of all libraries.
    pub(super) archive: &'a Path,
    /// For sources and scripts.
    pub(super) scratch: &'a Path,
    pub(super) cuda_version: u32,
}

/// Functions that return a version, and not a status; torch compares cuDNN's with its own.
const VERSIONS: [(&str, i32); 2] = [("cudnnGetVersion", 92600), ("cudnnGetCudartVersion", 13020)];

impl Linker<'_> {
    /// Links a library into a folder, replaced in one step.
    pub(super) fn link(&self, library: &Library, folder: &Path) -> Result<()> {
        fs::create_dir_all(self.scratch)?;
        fs::create_dir_all(folder)?;
        let name = &library.name;
        let stubs = self.scratch.join(format!("{name}.c"));
        let exports = self.scratch.join(format!("{name}.map"));
        let linked = self.scratch.join(name);
        fs::write(&stubs, self.stubs(library))?;
        fs::write(&exports, exported(library))?;
        let mut cc = run::command("cc");
        cc.args(["-shared", "-fPIC", "-O1", "-w", "-o"])
            .arg(&linked);
        cc.arg(format!("-Wl,-soname,{name}"));
        cc.arg(format!("-Wl,--version-script={}", exports.display()));
        cc.arg(&stubs);
        if library.is_played {
            // Weak stubs give way to what is played, and what nobody wants is left out.
            cc.arg("-Wl,--gc-sections,--whole-archive")
                .arg(self.archive)
                .args([
                    "-Wl,--no-whole-archive",
                    "-lgcc_s",
                    "-lpthread",
                    "-ldl",
                    "-lm",
                ]);
        }
        run::output(&mut cc)?;
        // The folder may be on another disk: beside its place first.
        let beside = folder.join(format!("{name}.new"));
        fs::copy(&linked, &beside)?;
        fs::rename(beside, folder.join(name))?;
        Ok(())
    }

    /// The source of a function for each that the library's users want.
    fn stubs(&self, library: &Library) -> String {
        let mut source = format!(
            "const int played_cuda_version = {};\nint played_missing(const char *);\n",
            self.cuda_version
        );
        for function in &library.functions {
            let _ = writeln!(source, "__attribute__((weak)) {}", stub(library, function));
        }
        source
    }
}

fn stub(library: &Library, function: &str) -> String {
    if function.ends_with("String") {
        return format!("const char *{function}(void) {{ return \"not played\"; }}");
    }
    let version = VERSIONS.iter().find(|(name, _)| *name == function);
    let status = match version {
        Some((_, version)) => version.to_string(),
        None if library.name.starts_with("libcudart.") => format!("played_missing(\"{function}\")"),
        None => library.status.to_string(),
    };
    format!("long {function}(void) {{ return {status}; }}")
}

/// The linker's script: those functions and nothing else, under the version of the first name.
fn exported(library: &Library) -> String {
    let names: Vec<String> = library
        .functions
        .iter()
        .map(|it| format!("{it};"))
        .collect();
    let mut versions = library.versions.iter();
    let first = versions.next().map_or("", String::as_str);
    // A library may be linked though nobody calls it.
    let global = if names.is_empty() { "" } else { "global:" };
    let mut script = format!("{first} {{ {global} {} local: *; }};\n", names.join(" "));
    for version in versions {
        let _ = writeln!(script, "{version} {{ }};");
    }
    script
}
