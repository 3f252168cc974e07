//! The Pythons of this machine, and the project's own environment.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use anyhow::{Context, Result};

use crate::project::Project;
use crate::run;
use crate::stamp::{self, Stamp};
use crate::system;

const OLDEST_MINOR: u32 = 10;
/// The pinned packages of the project's own environment are for this one and later.
const OWN_MINOR: u32 = 11;
const NEWEST_MINOR: u32 = 14;

/// Prints the minor version of a CPython 3 that can make environments, and where it is.
///
/// In an activated environment that is the Python that it was made from: our
/// own environment is never made from itself.
const PROBE: &str = "import ensurepip, os, ssl, sqlite3, sys, venv; \
    assert sys.implementation.name == 'cpython' and sys.version_info[0] == 3; \
    print(sys.version_info[1], os.path.realpath(sys._base_executable))";

/// A CPython on this machine that is recent enough.
#[derive(Clone)]
pub(crate) struct Interpreter {
    program: PathBuf,
    /// The 12 of 3.12.
    minor: u32,
}

impl Interpreter {
    /// Asks a program what it is; none where it is missing, too old or incomplete.
    fn ask(program: &Path) -> Option<Self> {
        let said = run::output(run::command(program).args(["-c", PROBE])).ok()?;
        let (minor, program) = said.trim().split_once(' ')?;
        let minor = minor.parse().ok()?;
        (minor >= OLDEST_MINOR).then(|| Self {
            program: program.into(),
            minor,
        })
    }
}

/// Every suitable Python, newest first, one of each minor version.
///
/// Asked only once: a dozen programs are started for it.
pub(crate) fn interpreters() -> Vec<Interpreter> {
    static FOUND: OnceLock<Vec<Interpreter>> = OnceLock::new();
    FOUND.get_or_init(search).clone()
}

/// Looks by name and among pyenv's versions, whose names on the path only work
/// once they are activated.
fn search() -> Vec<Interpreter> {
    let named =
        (OLDEST_MINOR..=NEWEST_MINOR).map(|minor| PathBuf::from(format!("python3.{minor}")));
    let mut found: Vec<Interpreter> = named
        .chain(["python3".into(), "python".into()])
        .chain(pyenv_versions())
        .filter_map(|program| Interpreter::ask(&program))
        .collect();
    found.sort_by_key(|interpreter| std::cmp::Reverse(interpreter.minor));
    found.dedup_by_key(|interpreter| interpreter.minor);
    found
}

fn pyenv_versions() -> Vec<PathBuf> {
    let root = std::env::var_os("PYENV_ROOT")
        .map(PathBuf::from)
        .or_else(|| std::env::home_dir().map(|home| home.join(".pyenv")));
    let versions = root.and_then(|root| stamp::entries(&root.join("versions")).ok());
    versions
        .unwrap_or_default()
        .iter()
        .map(|version| version.join("bin/python"))
        .collect()
}

/// The Python that the project's own environment is made from.
pub(crate) fn best() -> Result<Interpreter> {
    let is_recent = |found: &Interpreter| found.minor >= OWN_MINOR;
    if let Some(chosen) = std::env::var_os("GPUMEM_PYTHON") {
        let asked = Interpreter::ask(Path::new(&chosen)).filter(is_recent);
        return asked.with_context(|| {
            format!(
                "GPUMEM_PYTHON={} is not a CPython >= 3.{OWN_MINOR} with venv and pip",
                chosen.display()
            )
        });
    }
    let newest = |found: Vec<Interpreter>| found.into_iter().next().filter(is_recent);
    if let Some(best) = newest(interpreters()) {
        return Ok(best);
    }
    system::install("python3-venv")?;
    newest(search()).with_context(|| {
        format!(
            "no CPython >= 3.{OWN_MINOR} with venv and pip was found\n\
             install one, or name it: GPUMEM_PYTHON=/path/to/python3"
        )
    })
}

/// The newest Python before ours that the pinned packages are for.
fn other_than(own: &Interpreter) -> Option<Interpreter> {
    let is_older = |it: &Interpreter| (OWN_MINOR..own.minor).contains(&it.minor);
    interpreters().into_iter().find(is_older)
}

/// Folders to search for programs before those of this process.
fn joined(first: impl IntoIterator<Item = PathBuf>) -> OsString {
    let usual = std::env::var_os("PATH").unwrap_or_default();
    let folders = first.into_iter().chain(std::env::split_paths(&usual));
    std::env::join_paths(folders).unwrap_or(usual.clone())
}

/// A private environment under `target/`, with pinned packages.
pub(crate) struct Environment {
    folder: PathBuf,
    minor: u32,
}

impl Environment {
    /// The environment that builds, tests and demonstrates.
    pub(crate) fn main(project: &Project) -> Result<Self> {
        Self::prepare(project, "python", &best()?, "xtask/python/requirements.txt")
    }

    /// The oldest Python that is here, with exactly the versions that pyproject.toml declares.
    pub(crate) fn oldest(project: &Project) -> Result<Self> {
        let oldest = interpreters().pop().map_or_else(best, Ok)?;
        Self::prepare(
            project,
            "python-oldest",
            &oldest,
            "xtask/python/requirements-oldest.txt",
        )
    }

    /// The same, if its Python is one that ours could have and has not.
    pub(crate) fn oldest_of_ours(project: &Project) -> Result<Option<Self>> {
        let own = best()?.minor;
        let oldest = interpreters().pop();
        oldest
            .filter(|it| (OWN_MINOR..own).contains(&it.minor))
            .map(|_| Self::oldest(project))
            .transpose()
    }

    /// The newest Python, with the newest versions. Made anew each time.
    pub(crate) fn newest(project: &Project) -> Result<Self> {
        let name = "python-newest";
        let old = project.target(name);
        if old.exists() {
            fs::remove_dir_all(&old)?;
        }
        Self::prepare(
            project,
            name,
            &best()?,
            "xtask/python/requirements-newest.txt",
        )
    }

    /// With the real frameworks: torch, JAX and TensorFlow, on the CPU.
    pub(crate) fn frameworks(project: &Project, interpreter: &Interpreter) -> Result<Self> {
        Self::prepare(
            project,
            "python-frameworks",
            interpreter,
            "xtask/python/requirements-frameworks.txt",
        )
    }

    /// One for every Python of this machine that is neither the oldest nor ours.
    pub(crate) fn between(project: &Project) -> Result<Vec<Self>> {
        let own = best()?.minor;
        let mut others = interpreters();
        others.pop();
        others.retain(|interpreter| interpreter.minor != own && interpreter.minor >= OWN_MINOR);
        let requirements = "xtask/python/requirements-between.txt";
        others
            .iter()
            .map(|it| {
                let name = format!("python-3.{}", it.minor);
                Self::prepare(project, &name, it, requirements)
            })
            .collect()
    }

    /// What builds the site.
    pub(crate) fn site(project: &Project) -> Result<Self> {
        let requirements = "xtask/python/requirements-site.txt";
        Self::prepare(project, "python-site", &best()?, requirements)
    }

    /// What builds the wheels of a release.
    pub(crate) fn release(project: &Project) -> Result<Self> {
        let requirements = "xtask/python/requirements-release.txt";
        Self::prepare(project, "python-release", &best()?, requirements)
    }

    /// With the newest torch for CUDA, and nothing of NVIDIA's; and the newest JAX, on the CPU.
    pub(crate) fn cuda(project: &Project) -> Result<Self> {
        let requirements = "xtask/python/requirements-cuda.txt";
        Self::prepare_with(
            project,
            "python-cuda",
            &best()?,
            requirements,
            &["--no-deps"],
        )
    }

    /// The same with a torch for CUDA 12, on another Python than ours where there is one.
    pub(crate) fn cuda_12(project: &Project) -> Result<Self> {
        let own = best()?;
        Self::prepare_with(
            project,
            "python-cuda-12",
            &other_than(&own).unwrap_or(own),
            "xtask/python/requirements-cuda-12.txt",
            &["--no-deps"],
        )
    }

    fn prepare(
        project: &Project,
        name: &str,
        interpreter: &Interpreter,
        requirements: &str,
    ) -> Result<Self> {
        Self::prepare_with(project, name, interpreter, requirements, &[])
    }

    fn prepare_with(
        project: &Project,
        name: &str,
        interpreter: &Interpreter,
        requirements: &str,
        options: &[&str],
    ) -> Result<Self> {
        let environment = Self {
            folder: project.target(name),
            minor: interpreter.minor,
        };
        let made_from = interpreter.program.to_string_lossy();
        let stamp = Stamp::of(project, name, &[requirements], &[&made_from])?;
        if stamp.is_current() && environment.python_path().exists() {
            return Ok(environment);
        }
        eprintln!(
            "making a Python 3.{} environment in target/{name} (once per change of {requirements})",
            interpreter.minor
        );
        if environment.folder.exists() {
            fs::remove_dir_all(&environment.folder)?;
        }
        run::run(
            run::command(&interpreter.program)
                .args(["-m", "venv"])
                .arg(&environment.folder),
        )?;
        // What pip says belongs to its failure: another environment may be made at the same time.
        run::output(
            environment
                .pip_install()
                .args(options)
                .arg("--requirement")
                .arg(project.path(requirements)),
        )?;
        stamp.set()?;
        Ok(environment)
    }

    /// Its folder's name.
    pub(crate) fn name(&self) -> String {
        let name = self.folder.file_name().unwrap_or_default();
        name.to_string_lossy().into_owned()
    }

    /// Where its packages are.
    pub(crate) fn site_packages(&self) -> PathBuf {
        let python = format!("lib/python3.{}/site-packages", self.minor);
        self.folder.join(python)
    }

    /// The version of a package in it.
    pub(crate) fn installed_version(&self, package: &str) -> Result<String> {
        let ask = format!("import importlib.metadata as m; print(m.version({package:?}))");
        let said = run::output(self.python().args(["-c", &ask]))?;
        Ok(said.trim().to_owned())
    }

    /// The 12 of 3.12.
    pub(crate) fn minor(&self) -> u32 {
        self.minor
    }

    pub(crate) fn python_path(&self) -> PathBuf {
        let name = if cfg!(windows) {
            "python.exe"
        } else {
            "python"
        };
        self.programs().join(name)
    }

    fn programs(&self) -> PathBuf {
        let name = if cfg!(windows) { "Scripts" } else { "bin" };
        self.folder.join(name)
    }

    /// What a shell would search in this environment once it is activated.
    fn search_path(&self) -> OsString {
        joined([self.programs()])
    }

    /// The same after another folder.
    pub(crate) fn search_path_after(&self, first: &Path) -> OsString {
        joined([first.to_path_buf(), self.programs()])
    }

    /// This environment's Python, apart from the user's own packages, kernels and settings.
    pub(crate) fn python(&self) -> Command {
        let mut command = run::command(self.python_path());
        command
            .env("PATH", self.search_path())
            .env_remove("PYTHONPATH")
            .env_remove("PYTHONHOME")
            .env("PYTHONNOUSERSITE", "1")
            .env("IPYTHONDIR", self.folder.join("ipython"))
            .env("JUPYTER_DATA_DIR", self.folder.join("jupyter"))
            .env("JUPYTER_CONFIG_DIR", self.jupyter_config());
        command
    }

    /// Where the Jupyter of this environment keeps its settings.
    pub(crate) fn jupyter_config(&self) -> PathBuf {
        self.folder.join("jupyter-config")
    }

    /// A program that one of its packages brings.
    pub(crate) fn program(&self, name: &str) -> Command {
        let mut command = run::command(self.programs().join(name));
        command.env("PATH", self.search_path());
        command
    }

    pub(crate) fn module(&self, name: &str) -> Command {
        let mut command = self.python();
        command.args(["-m", name]);
        command
    }

    fn pip_install(&self) -> Command {
        let mut command = self.module("pip");
        command.args([
            "install",
            "--quiet",
            "--disable-pip-version-check",
            "--no-input",
        ]);
        command
    }

    /// Installs a wheel in place of the one that may be there.
    pub(crate) fn install(&self, project: &Project, wheel: &Path) -> Result<()> {
        let name = self.name();
        let relative = wheel
            .strip_prefix(project.root())
            .unwrap_or(wheel)
            .to_string_lossy();
        let stamp = Stamp::of(project, &format!("{name}-wheel"), &[&relative], &[])?;
        if stamp.is_current() && self.has_gpumem() {
            return Ok(());
        }
        run::run(
            self.pip_install()
                .args(["--force-reinstall", "--no-deps"])
                .arg(wheel),
        )?;
        stamp.set()
    }

    fn has_gpumem(&self) -> bool {
        let find = "import importlib.metadata as m; m.version('jupyter-gpumem')";
        run::output(self.python().args(["-c", find])).is_ok()
    }
}
