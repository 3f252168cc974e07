//! The GPU drivers that tests play: built here, found only by the tests that ask.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result};

use crate::project::Project;
use crate::run;

/// What cargo builds, and the name by which a process looks for it. In cargo's own folder under
/// that name it would be found by everything that cargo starts.
const LIBRARIES: [(&str, &str); 2] = [
    ("fake_cuda", "libcuda.so.1"),
    ("fake_nvml", "libnvidia-ml.so.1"),
];

/// Builds the libraries into a folder of their own; `None` where drivers are found in another way.
pub(crate) fn build(project: &Project) -> Result<Option<PathBuf>> {
    if !cfg!(target_os = "linux") {
        return Ok(None);
    }
    let mut build = project.cargo("build");
    build.args(["--quiet", "--locked"]);
    for (package, _) in LIBRARIES {
        build.args(["--package", package]);
    }
    run::run(&mut build)?;
    let folder = project.target("fake-driver");
    fs::create_dir_all(&folder)?;
    for (package, name) in LIBRARIES {
        let built = project
            .cargo_target()
            .join(format!("debug/lib{package}.so"));
        fs::copy(&built, folder.join(name))
            .with_context(|| format!("copying {}", built.display()))?;
    }
    Ok(Some(folder))
}
