//! The quickstart in JupyterLab, or run once without a screen.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::Args;

use crate::project::Project;
use crate::python::Environment;
use crate::{run, system};

/// No question about news and no check for updates: a demonstration is no place for either.
const LAB_SETTINGS: &str = r#"{
  "@jupyterlab/apputils-extension:notification": {"fetchNews": "false", "checkForUpdates": false}
}"#;

#[derive(Args)]
pub(crate) struct DemoOptions {
    /// Run the notebook once in a real kernel and write its page and picture, without JupyterLab
    #[arg(long)]
    headless: bool,
    /// A notebook to show instead of the quickstart
    #[arg(long, value_name = "FILE")]
    notebook: Option<PathBuf>,
}

/// Shows a copy of the notebook, so that the checkout stays as it is.
pub(crate) fn show(
    project: &Project,
    environment: &Environment,
    options: &DemoOptions,
) -> Result<ExitCode> {
    let folder = project.target("demo");
    let quickstart = project.path("notebooks/quickstart.ipynb");
    let notebook = copy(options.notebook.as_ref().unwrap_or(&quickstart), &folder)?;
    if options.headless {
        run_once(project, environment, &notebook)
    } else {
        open_lab(environment, &notebook, &folder)
    }
}

fn copy(notebook: &Path, folder: &Path) -> Result<PathBuf> {
    let name = notebook
        .file_name()
        .context("the notebook's path names no file")?;
    fs::create_dir_all(folder)?;
    let copy = folder.join(name);
    fs::copy(notebook, &copy).with_context(|| format!("copying {}", notebook.display()))?;
    Ok(copy)
}

fn run_once(project: &Project, environment: &Environment, notebook: &Path) -> Result<ExitCode> {
    let script = project.path("xtask/python/run_notebook.py");
    let status = environment.python().arg(script).arg(notebook).status()?;
    Ok(ExitCode::from(u8::from(!status.success())))
}

fn open_lab(environment: &Environment, notebook: &Path, folder: &Path) -> Result<ExitCode> {
    let settings = environment.jupyter_config().join("labconfig");
    fs::create_dir_all(&settings)?;
    fs::write(
        settings.join("default_setting_overrides.json"),
        LAB_SETTINGS,
    )?;
    let name = notebook.file_name().unwrap_or_default().to_string_lossy();
    let mut lab = environment.module("jupyterlab");
    lab.arg("--log-level=WARN")
        .arg(format!("--LabApp.default_url=/lab/tree/{name}"))
        .arg("--ServerApp.root_dir=.")
        .current_dir(folder);
    if !system::has_display() {
        lab.arg("--no-browser");
    }
    if system::is_root() {
        lab.arg("--allow-root");
    }
    println!("JupyterLab prints its address below; Ctrl-C twice ends it");
    run::run(&mut lab)?;
    Ok(ExitCode::SUCCESS)
}
