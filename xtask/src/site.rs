//! The site: the pages of `docs/`, the README and a live report.

use std::path::PathBuf;

use anyhow::Result;

use crate::project::Project;
use crate::python::Environment;
use crate::run;

/// Builds the site strictly: a link that leads nowhere is an error. `recorder` has gpumem.
pub(crate) fn build(project: &Project, recorder: &Environment) -> Result<PathBuf> {
    let report = project.target("site-report.html");
    run::output(
        recorder
            .python()
            .arg(project.path("xtask/python/example_session.py"))
            .arg(&report)
            .current_dir(project.root()),
    )?;
    let environment = Environment::with(project, "site")?;
    run::output(
        environment
            .module("mkdocs")
            // With `--quiet` it would not see its own warnings, and none would be an error.
            .args(["build", "--clean", "--config-file"])
            .arg(project.path("mkdocs.yml"))
            .env("GPUMEM_SITE_REPORT", &report)
            // Its theme's maintainers advertise there.
            .env("NO_MKDOCS_2_WARNING", "1"),
    )?;
    Ok(project.target("site"))
}
