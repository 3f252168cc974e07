//! Code for other systems than this one: it has to compile here, too.
//!
//! zig compiles what is written in C. A release is built where each system's libraries are.

use std::path::PathBuf;
use std::process::Command;

use anyhow::Result;

use crate::project::Project;
use crate::python::Environment;
use crate::{run, system};

/// The checks by their names, and what they compile for.
pub(crate) const SYSTEMS: [(&str, &str); 2] = [
    ("clippy, for Windows", "x86_64-pc-windows-gnu"),
    ("clippy, for macOS", "aarch64-apple-darwin"),
];

/// Lints the extension for another system.
pub(crate) fn check(project: &Project, triple: &str) -> Result<()> {
    let mut clippy = zigbuild(project, "clippy", triple)?;
    clippy
        .args(["--all-features", "--package", "gpumem-core"])
        .args(["--", "--deny", "warnings"]);
    run::run(&mut clippy)
}

/// Links the extension for Windows, and says where it is. maturin cannot: it exports a function by the
/// dotted name of the module, which none has.
pub(crate) fn link_for_windows(project: &Project, triple: &str) -> Result<PathBuf> {
    run::output(&mut zigbuild(project, "build", triple)?)?;
    let built = project.cargo_target().join(triple);
    Ok(built.join("debug/_gpumem.dll"))
}

/// Cargo on the extension, with zig in place of a C compiler and a linker.
fn zigbuild(project: &Project, subcommand: &str, triple: &str) -> Result<Command> {
    let environment = Environment::release(project)?;
    system::add_target(triple)?;
    let mut zigbuild = environment.program("cargo-zigbuild");
    zigbuild
        .args([subcommand, "--quiet", "--locked"])
        .args(["--package", "gpumem-pybind", "--target", triple])
        .arg("--target-dir")
        .arg(project.cargo_target())
        .env("PYO3_PYTHON", environment.python_path())
        // zig brings Windows' import libraries by their own names.
        .env("WINAPI_NO_BUNDLED_LIBRARIES", "1")
        .current_dir(project.root());
    Ok(zigbuild)
}
