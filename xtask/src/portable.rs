//! Code for other systems than this one: it has to compile here, too.
//!
//! zig compiles what is written in C. A release is built where each system's libraries are.

use anyhow::{Context, Result};

use crate::project::Project;
use crate::python::Environment;
use crate::{run, wasm};

/// The checks by their names, and what they compile for.
pub(crate) const SYSTEMS: [(&str, &str); 2] = [
    ("clippy, for Windows", "x86_64-pc-windows-gnu"),
    ("clippy, for macOS", "aarch64-apple-darwin"),
];

/// Lints the extension for another system.
pub(crate) fn check(project: &Project, triple: &str) -> Result<()> {
    let environment = Environment::release(project)?;
    add_target(triple)?;
    let mut zigbuild = environment.program("cargo-zigbuild");
    zigbuild
        .args(["clippy", "--quiet", "--locked", "--all-features"])
        .args(["--package", "gpumem-core", "--package", "gpumem-pybind"])
        .args(["--target", triple])
        .arg("--target-dir")
        .arg(project.cargo_target())
        .args(["--", "--deny", "warnings"])
        .env("PYO3_PYTHON", environment.python_path())
        .current_dir(project.root());
    run::run(&mut zigbuild)
}

/// Makes sure that the compiler has the standard library for a system.
pub(crate) fn add_target(triple: &str) -> Result<()> {
    if wasm::has_target(triple)? {
        return Ok(());
    }
    run::output(run::command("rustup").args(["target", "add", triple]))
        .map(drop)
        .with_context(|| format!("the standard library for {triple}"))
}
