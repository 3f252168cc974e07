//! The played CUDA of `tests/played-cuda`: built here, found only by the tests that want it.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::project::Project;
use crate::python::Environment;
use crate::{run, step};

const SOURCES: &str = "tests/played-cuda";

/// What cargo builds, and where a process looks for it. In cargo's own folder under that name it
/// would be found by everything that cargo starts.
const PRODUCTS: [(&str, &str); 3] = [
    ("libplayed_cuda.so", "libraries/libcuda.so.1"),
    ("libplayed_nvml.so", "libraries/libnvidia-ml.so.1"),
    ("played_nvidia_smi", "programs/nvidia-smi"),
];

/// Whether there is a torch for CUDA that could run on it.
pub(crate) const CAN_BE_LINKED: bool = cfg!(all(target_os = "linux", target_arch = "x86_64"));

/// The driver's libraries and programs.
pub(crate) struct PlayedDriver {
    libraries: PathBuf,
    programs: PathBuf,
    /// The archive of CUDA's runtime and its libraries.
    toolkit: PathBuf,
}

impl PlayedDriver {
    /// Builds them into folders of their own; `None` if drivers are found in another way.
    pub(crate) fn build(project: &Project) -> Result<Option<Self>> {
        if !cfg!(target_os = "linux") {
            return Ok(None);
        }
        let folder = project.target("played-cuda");
        let inputs = [SOURCES, "Cargo.toml", "Cargo.lock", "xtask/src/played.rs"];
        let built = project.cargo_target().join("debug");
        step::unless_current(
            project,
            "building the played CUDA",
            &folder,
            &inputs,
            || {
                let mut build = project.cargo("build");
                build.args(["--quiet", "--locked"]);
                for package in ["machine", "cuda", "nvml", "toolkit"] {
                    build.arg("--package").arg(format!("played_{package}"));
                }
                run::run(&mut build)?;
                let products = PRODUCTS.iter();
                products
                    .clone()
                    .try_for_each(|(file, name)| copy(&built.join(file), &folder.join(name)))
            },
        )?;
        Ok(Some(Self {
            libraries: folder.join("libraries"),
            programs: folder.join("programs"),
            toolkit: built.join("libplayed_toolkit.a"),
        }))
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

    /// Puts every library that an environment's torch links where that torch looks for it.
    pub(crate) fn furnish(&self, project: &Project, environment: &Environment) -> Result<()> {
        let torch = environment.site_packages().join("torch");
        let name = format!("playing CUDA in {}", environment.name());
        let about = torch.join("version.py");
        let inputs = [SOURCES, &about.to_string_lossy()];
        step::unless_current(project, &name, &torch, &inputs, || {
            let script = project.path("tests/played-cuda/link.py");
            let mut link = environment.python();
            run::run(link.arg(script).arg(&torch).arg(&self.toolkit))
        })
    }
}

/// Replaced in one step: a process may have the old one open.
fn copy(built: &Path, product: &Path) -> Result<()> {
    let new = product.with_extension("new");
    fs::create_dir_all(product.parent().unwrap_or(product))?;
    fs::copy(built, &new).with_context(|| format!("copying {}", built.display()))?;
    Ok(fs::rename(new, product)?)
}
