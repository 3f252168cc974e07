//! The extension as a wheel: one that is quickly built, and what is published.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;

use anyhow::{Context, Result, bail};

use crate::project::Project;
use crate::python::Environment;
use crate::{run, step, wasm};

const INPUTS: [&str; 10] = [
    "Cargo.toml",
    "Cargo.lock",
    "README.md",
    "pyproject.toml",
    "core",
    "pybind",
    "LICENSE-APACHE",
    "LICENSE-MIT",
    "LICENSE-THIRD-PARTY",
    "xtask/src/wheel.rs",
];

/// What a wheel of this checkout is for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum WheelPurpose {
    /// To be demonstrated and tested: compiled in cargo's `dev` profile, as Rust's tests are.
    Try,
    /// To be measured: optimised as what is published.
    Measure,
}

/// Builds a wheel of this checkout, if it is not current.
pub(crate) fn build(project: &Project, purpose: WheelPurpose) -> Result<PathBuf> {
    let (folder, options) = match purpose {
        WheelPurpose::Try => ("wheels-dev", &[][..]),
        WheelPurpose::Measure => ("wheels-optimised", &["--release"][..]),
    };
    let maturin = |environment: &Environment, folder: &Path| {
        run::output(maturin(project, environment, folder).args(options)).map(drop)
    };
    let is_first = !project.static_folder().exists();
    let environment = thread::scope(|scope| {
        let page = scope.spawn(|| wasm::build(project));
        let environment = Environment::main(project)?;
        if is_first {
            // The page goes into the wheel. It takes as long as the extension, compiled beside it.
            let folder = project.target("wheels-no-page");
            step::timed("compiling the extension", || maturin(&environment, &folder))?;
        }
        let page = page.join();
        page.unwrap_or_else(|_| bail!("the page's thread panicked"))?;
        anyhow::Ok(environment)
    })?;
    let name = format!("building {folder}");
    let folder = project.target(folder);
    step::unless_current(project, &name, &folder, &INPUTS, || {
        remove_folder(&folder)?;
        maturin(&environment, &folder)
    })?;
    only(&folder, ".whl")
}

/// maturin's command that builds a wheel of the extension into a folder.
pub(crate) fn maturin(project: &Project, environment: &Environment, folder: &Path) -> Command {
    let mut build = environment.module("maturin");
    build
        .current_dir(project.root())
        .args(["build", "--locked", "--quiet", "--interpreter"])
        .arg(environment.python_path())
        .arg("--target-dir")
        .arg(project.cargo_target())
        .arg("--out")
        .arg(folder);
    build
}

/// The private environment with such a wheel in it.
pub(crate) fn install(project: &Project, purpose: WheelPurpose) -> Result<Environment> {
    let wheel = build(project, purpose)?;
    let environment = Environment::main(project)?;
    environment.install(project, &wheel)?;
    Ok(environment)
}

/// What is published of this system: the sources, and the wheel that is built from them alone.
pub(crate) struct Published {
    pub(crate) sources: PathBuf,
    pub(crate) wheel: PathBuf,
}

/// Builds the source distribution, and from it the optimised wheel, if no other wheel stands for that.
pub(crate) fn publish(project: &Project, instead: Option<PathBuf>) -> Result<Published> {
    let environment = Environment::main(project)?;
    wasm::build(project)?;
    let (name, folder, options) = match instead {
        None => ("building the sources and their wheel", "wheels", None),
        Some(_) => ("packing the sources", "sources", Some("--sdist")),
    };
    let folder = project.target(folder);
    let apart = project.target("wheels-apart");
    step::unless_current(project, name, &folder, &INPUTS, || {
        remove_folder(&folder)?;
        let mut uv = environment.program("uv");
        uv.args(["build", "--quiet", "--offline", "--no-build-isolation"])
            .args(options)
            .arg("--python")
            .arg(environment.python_path())
            .arg("--out-dir")
            .arg(&folder)
            .arg(project.root())
            // maturin's own default is a name that no index takes, and a folder that may be this one. Not
            // `--locked`: the sources have a part of the workspace, whose lock file names what only the
            // others need.
            .env(
                "MATURIN_PEP517_ARGS",
                format!("--compatibility pypi --out '{}'", apart.display()),
            )
            .env("CARGO_TARGET_DIR", project.cargo_target())
            // It unpacks the sources there, and the wheel's bill of materials names the folder.
            .env("UV_CACHE_DIR", project.target("uv-cache"));
        run::output(project.without_local_paths(&mut uv)).map(drop)
    })?;
    Ok(Published {
        sources: only(&folder, ".tar.gz")?,
        wheel: instead.map_or_else(|| only(&folder, ".whl"), Ok)?,
    })
}

pub(crate) fn only(folder: &Path, ending: &str) -> Result<PathBuf> {
    step::entries(folder)?
        .into_iter()
        .find(|file| file.to_string_lossy().ends_with(ending))
        .with_context(|| format!("no *{ending} in {}", folder.display()))
}

/// An older version's files would stay beside the new ones.
pub(crate) fn remove_folder(folder: &Path) -> Result<()> {
    if folder.exists() {
        fs::remove_dir_all(folder).with_context(|| format!("removing {}", folder.display()))?;
    }
    Ok(())
}
