//! The played CUDA of `tests/played-cuda`: built here, found only by the tests that want it.

mod link;
mod wheel;

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::project::Project;
use crate::python::Environment;
use crate::run;
use crate::stamp::Stamp;

const SOURCES: &str = "tests/played-cuda";

/// What cargo builds, and the name by which a process looks for it. In cargo's own folder under
/// that name it would be found by everything that cargo starts.
const DRIVERS: [(&str, &str); 2] = [
    ("played_cuda", "libcuda.so.1"),
    ("played_nvml", "libnvidia-ml.so.1"),
];

/// Whether there is a torch for CUDA that could run on it.
pub(crate) const CAN_BE_LINKED: bool = cfg!(all(target_os = "linux", target_arch = "x86_64"));

/// The driver's libraries and programs.
pub(crate) struct Driver {
    libraries: PathBuf,
    programs: PathBuf,
}

impl Driver {
    /// Builds them into folders of their own; `None` where drivers are found in another way.
    pub(crate) fn build(project: &Project) -> Result<Option<Self>> {
        if !cfg!(target_os = "linux") {
            return Ok(None);
        }
        let packages = ["played_machine", "played_cuda", "played_nvml"];
        let built = cargo_build(project, &packages)?;
        let driver = Self {
            libraries: project.target("played-cuda/libraries"),
            programs: project.target("played-cuda/programs"),
        };
        for (package, name) in DRIVERS {
            let library = built.join(format!("lib{package}.so"));
            copy(&library, &driver.libraries, name)?;
        }
        copy(
            &built.join("played_nvidia_smi"),
            &driver.programs,
            "nvidia-smi",
        )?;
        Ok(Some(driver))
    }

    /// Where tests learn of them.
    pub(crate) fn variables(&self) -> [(&'static str, &OsStr); 2] {
        [
            ("PLAYED_CUDA_LIBRARIES", self.libraries.as_os_str()),
            ("PLAYED_CUDA_PROGRAMS", self.programs.as_os_str()),
        ]
    }

    /// The folder of `libcuda.so.1`.
    pub(crate) fn libraries(&self) -> &Path {
        &self.libraries
    }

    /// The folder of `nvidia-smi`.
    pub(crate) fn programs(&self) -> &Path {
        &self.programs
    }
}

/// Puts every library that an environment's torch links where that torch looks for it.
pub(crate) fn furnish(project: &Project, environment: &Environment) -> Result<()> {
    let torch = environment.site_packages().join("torch");
    let version = environment.installed_version("torch")?;
    let step = format!("{}-played", environment.name());
    let stamp = Stamp::of(project, &step, &[SOURCES, "xtask/src/played"], &[&version])?;
    let wheel = wheel::Wheel::at(&torch);
    let folder = wheel.search_folder()?;
    if stamp.is_current() && folder.exists() {
        return Ok(());
    }
    let built = cargo_build(project, &["played_toolkit"])?;
    let linker = link::Linker {
        archive: &built.join("libplayed_toolkit.a"),
        scratch: &project.target("played-cuda/stubs"),
        cuda_version: wheel.cuda_version()?,
    };
    for library in wheel.nvidia_libraries()? {
        linker
            .link(&library, &folder)
            .with_context(|| format!("linking {}", library.name))?;
    }
    stamp.set()
}

/// Builds packages; the folder where cargo puts what it built.
fn cargo_build(project: &Project, packages: &[&str]) -> Result<PathBuf> {
    let mut build = project.cargo("build");
    build.args(["--quiet", "--locked"]);
    for package in packages {
        build.args(["--package", package]);
    }
    run::run(&mut build)?;
    Ok(project.cargo_target().join("debug"))
}

/// Replaced in one step: a process may have the old one open.
fn copy(built: &Path, folder: &Path, name: &str) -> Result<()> {
    fs::create_dir_all(folder)?;
    let new = folder.join(format!("{name}.new"));
    fs::copy(built, &new).with_context(|| format!("copying {}", built.display()))?;
    fs::rename(new, folder.join(name))?;
    Ok(())
}
