//! What is published: one wheel for every Python, and the sources.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::project::Project;
use crate::python::Environment;
use crate::run;
use crate::stamp::{self, Stamp};
use crate::wasm;

const INPUTS: [&str; 8] = [
    "Cargo.toml",
    "Cargo.lock",
    "README.md",
    "core",
    "pybind",
    "LICENSE-APACHE",
    "LICENSE-MIT",
    "xtask/src/wheel.rs",
];

/// What a wheel is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Use {
    /// What users get.
    Release,
    /// The same with `gpumem._gpumem._testing`, by which tests order failures and give looks time.
    Testing,
}

impl Use {
    /// The folder under `target/`, and the stamp.
    fn names(self) -> (&'static str, &'static str) {
        match self {
            Self::Release => ("wheels", "wheel"),
            Self::Testing => ("wheels-testing", "wheel-testing"),
        }
    }

    fn features(self) -> &'static [&'static str] {
        match self {
            Self::Release => &[],
            Self::Testing => &["--features", "testing"],
        }
    }
}

/// Builds the wheel, and the widget in it, where they are not current.
pub(crate) fn build(project: &Project, environment: &Environment, for_: Use) -> Result<PathBuf> {
    wasm::build(project)?;
    let (folder, stamp) = for_.names();
    let folder = project.target(folder);
    let stamp = Stamp::of(project, stamp, &INPUTS, &[])?;
    if let (true, Ok(wheel)) = (stamp.is_current(), only(&folder, ".whl")) {
        return Ok(wheel);
    }
    eprintln!("building the wheel in {}", folder.display());
    fs::create_dir_all(&folder)?;
    remove(&folder, ".whl")?;
    let mut build = maturin(project, environment, "build");
    build
        .args(["--release", "--locked", "--quiet", "--interpreter"])
        .arg(environment.python_path())
        .args(for_.features())
        .arg("--target-dir")
        .arg(project.cargo_target())
        .arg("--out")
        .arg(&folder);
    run::output(project.without_local_paths(&mut build))?;
    stamp.set()?;
    only(&folder, ".whl")
}

/// The private environment with the current wheel in it.
pub(crate) fn install(project: &Project, for_: Use) -> Result<Environment> {
    let environment = Environment::main(project)?;
    let wheel = build(project, &environment, for_)?;
    environment.install(project, &wheel)?;
    Ok(environment)
}

/// Packs the sources, with the built widget among them.
pub(crate) fn sources(project: &Project, environment: &Environment) -> Result<PathBuf> {
    wasm::build(project)?;
    let folder = project.target("wheels");
    let stamp = Stamp::of(project, "sdist", &INPUTS, &[])?;
    if let (true, Ok(sdist)) = (stamp.is_current(), only(&folder, ".tar.gz")) {
        return Ok(sdist);
    }
    remove(&folder, ".tar.gz")?;
    run::output(
        maturin(project, environment, "sdist")
            .arg("--out")
            .arg(&folder),
    )?;
    stamp.set()?;
    only(&folder, ".tar.gz")
}

fn maturin(project: &Project, environment: &Environment, subcommand: &str) -> Command {
    let mut command = environment.module("maturin");
    command
        .arg(subcommand)
        .arg("--manifest-path")
        .arg(project.path("pybind/Cargo.toml"))
        .current_dir(project.path("pybind"));
    command
}

fn only(folder: &Path, ending: &str) -> Result<PathBuf> {
    stamp::entries(folder)?
        .into_iter()
        .find(|file| file.to_string_lossy().ends_with(ending))
        .with_context(|| format!("no *{ending} in {}", folder.display()))
}

fn remove(folder: &Path, ending: &str) -> Result<()> {
    while let Ok(file) = only(folder, ending) {
        fs::remove_file(&file).with_context(|| format!("removing {}", file.display()))?;
    }
    Ok(())
}
