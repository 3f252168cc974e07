//! The Pythons of this machine, and the environments under `target/`.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{LazyLock, Mutex};

use anyhow::{Context, Result};

use crate::project::Project;
use crate::wheel::remove_folder;
use crate::{run, step, system};

const OLDEST_MINOR: u32 = 10;
/// The pinned packages of the project's own environment are for this one and later.
const OWN_MINOR: u32 = 11;
const NEWEST_MINOR: u32 = 15;

/// The folder of the project's own environment.
const MAIN: &str = "python";

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
    /// None if the program is missing, too old or incomplete.
    fn probe(program: &Path) -> Option<Self> {
        let answer = run::output(run::command(program).args(["-c", PROBE])).ok()?;
        let (minor, program) = answer.trim().split_once(' ')?;
        let minor = minor.parse().ok()?;
        (minor >= OLDEST_MINOR).then(|| Self {
            program: program.into(),
            minor,
        })
    }
}

/// Every suitable Python, newest first, one of each minor version.
static INTERPRETERS: LazyLock<Vec<Interpreter>> = LazyLock::new(search);

/// Searches by name and among pyenv's versions, whose names on the path only work
/// once they are activated.
fn search() -> Vec<Interpreter> {
    let named =
        (OLDEST_MINOR..=NEWEST_MINOR).map(|minor| PathBuf::from(format!("python3.{minor}")));
    let mut found: Vec<Interpreter> = named
        .chain(["python3".into(), "python".into()])
        .chain(pyenv_versions())
        .filter_map(|program| Interpreter::probe(&program))
        .collect();
    found.sort_by_key(|interpreter| std::cmp::Reverse(interpreter.minor));
    found.dedup_by_key(|interpreter| interpreter.minor);
    found
}

fn pyenv_versions() -> Vec<PathBuf> {
    let root = std::env::var_os("PYENV_ROOT")
        .map(PathBuf::from)
        .or_else(|| std::env::home_dir().map(|home| home.join(".pyenv")));
    let versions = root.and_then(|root| step::entries(&root.join("versions")).ok());
    let program = |version: PathBuf| version.join("bin/python");
    versions.into_iter().flatten().map(program).collect()
}

/// The Python of the project's own environment: the newest, or the one that `GPUMEM_PYTHON` names.
fn best() -> Result<Interpreter> {
    let is_recent = |found: &Interpreter| found.minor >= OWN_MINOR;
    if let Some(chosen) = std::env::var_os("GPUMEM_PYTHON") {
        let found = Interpreter::probe(Path::new(&chosen)).filter(is_recent);
        return found.with_context(|| {
            format!(
                "GPUMEM_PYTHON={} is not a CPython >= 3.{OWN_MINOR} with venv and pip",
                chosen.display()
            )
        });
    }
    if let Some(best) = INTERPRETERS.first().filter(|found| is_recent(found)) {
        return Ok(best.clone());
    }
    system::install("python3-venv")?;
    let newest = search().into_iter().next().filter(is_recent);
    newest.with_context(|| {
        format!(
            "no CPython >= 3.{OWN_MINOR} with venv and pip was found\n\
             install one, or name it: GPUMEM_PYTHON=/path/to/python3"
        )
    })
}

fn oldest() -> Result<Interpreter> {
    INTERPRETERS.last().cloned().map_or_else(best, Ok)
}

/// A private environment under `target/`, with pinned packages.
#[derive(Clone)]
pub(crate) struct Environment {
    folder: PathBuf,
    minor: u32,
}

impl Environment {
    /// The environment that builds, tests and demonstrates. It has the installer of the others.
    pub(crate) fn main(project: &Project) -> Result<Self> {
        Self::prepare(project, MAIN, &best()?, "requirements")
    }

    /// Our Python with what `requirements-KIND.txt` names: `frameworks` for the CPU, `cuda` with the
    /// newest torch and nothing of NVIDIA's, `site`, `release`.
    pub(crate) fn with(project: &Project, kind: &str) -> Result<Self> {
        let [name, pins] = [format!("python-{kind}"), format!("requirements-{kind}")];
        Self::prepare(project, &name, &best()?, &pins)
    }

    /// The oldest Python that is here, with exactly the versions that pyproject.toml declares.
    pub(crate) fn oldest(project: &Project) -> Result<Self> {
        Self::prepare(project, "python-oldest", &oldest()?, "requirements-oldest")
    }

    /// The newest Python, with the newest versions. Made again each time.
    pub(crate) fn newest(project: &Project) -> Result<Self> {
        remove_folder(&project.target("python-newest"))?;
        Self::with(project, "newest")
    }

    /// One for every Python of this machine that is neither the oldest nor ours.
    pub(crate) fn between(project: &Project) -> Result<Vec<Self>> {
        let (own, oldest) = (best()?.minor, oldest()?.minor);
        let is_between =
            |it: &&Interpreter| it.minor >= OWN_MINOR && it.minor != own && it.minor != oldest;
        let others = INTERPRETERS.iter().filter(is_between);
        let prepare = |it: &Interpreter| {
            let name = format!("python-3.{}", it.minor);
            Self::prepare(project, &name, it, "requirements-between")
        };
        others.map(prepare).collect()
    }

    /// The same, if its Python is one that ours could have and has not.
    pub(crate) fn oldest_of_ours(project: &Project) -> Result<Option<Self>> {
        let could_be_ours = (OWN_MINOR..best()?.minor).contains(&oldest()?.minor);
        could_be_ours.then(|| Self::oldest(project)).transpose()
    }

    /// As `cuda`, with a torch for CUDA 12, on another Python than ours if there is one.
    pub(crate) fn cuda_12(project: &Project) -> Result<Self> {
        let own = best()?;
        let is_older = |it: &&Interpreter| (OWN_MINOR..own.minor).contains(&it.minor);
        let python = INTERPRETERS.iter().find(is_older).unwrap_or(&own);
        Self::prepare(project, "python-cuda-12", python, "requirements-cuda-12")
    }

    fn prepare(
        project: &Project,
        name: &str,
        interpreter: &Interpreter,
        requirements: &str,
    ) -> Result<Self> {
        // Two steps that run side by side may need it first.
        static MAKING: Mutex<()> = Mutex::new(());
        let environment = Self {
            folder: project.target(name),
            minor: interpreter.minor,
        };
        let _making = (name == MAIN).then(|| MAKING.lock());
        let requirements = project.path(&format!("xtask/python/{requirements}.txt"));
        let pins = fs::read_to_string(&requirements)
            .with_context(|| format!("reading {}", requirements.display()))?;
        let made_of = format!("{}\n{pins}", interpreter.program.display());
        let note = environment.folder.join("made-of.txt");
        if fs::read_to_string(&note).is_ok_and(|it| it == made_of) {
            return Ok(environment);
        }
        let installer = if name == MAIN {
            environment.clone()
        } else {
            Self::main(project)?
        };
        let step = format!("making target/{name} with Python 3.{}", interpreter.minor);
        eprintln!("{step}");
        step::timed(&step, || {
            environment.make(interpreter, &installer, &requirements)
        })?;
        fs::write(note, made_of)?;
        Ok(environment)
    }

    fn make(&self, interpreter: &Interpreter, installer: &Self, requirements: &Path) -> Result<()> {
        remove_folder(&self.folder)?;
        let mut venv = run::command(&interpreter.program);
        venv.args(["-m", "venv"]).arg(&self.folder);
        if installer.folder == self.folder {
            run::run(&mut venv)?;
            let mut pip = self.module("pip");
            pip.args(["install", "--quiet", "--disable-pip-version-check"]);
            run::output(pip.arg("--constraint").arg(requirements).arg("uv"))?;
        } else {
            run::run(venv.arg("--without-pip"))?;
        }
        let mut arguments = vec!["--requirement".into(), requirements.into()];
        if self.name().starts_with("python-cuda") {
            // NVIDIA's packages are played.
            arguments.push("--no-deps".into());
        }
        self.add(installer, &arguments)?;
        // Python compiles a module at its first import, and for these that takes longer than tests wait.
        for large in ["torch", "jax", "tensorflow"] {
            let _ = run::output(self.python().arg("-c").arg(format!("import {large}")));
        }
        Ok(())
    }

    /// Installs packages with uv, which takes a ninth of pip's CPU time. If uv fails, pip tries: it
    /// knows the indexes and certificates of its own configuration.
    fn add(&self, installer: &Self, arguments: &[OsString]) -> Result<()> {
        let mut uv = installer.program("uv");
        uv.args(["pip", "install", "--quiet"])
            .arg("--python")
            .arg(self.python_path())
            .args(arguments)
            .env("UV_HTTP_TIMEOUT", "180");
        let Err(error) = run::output(&mut uv) else {
            return Ok(());
        };
        eprintln!("{error:#}\ntrying pip");
        let mut pip = installer.module("pip");
        pip.arg("--python")
            .arg(self.python_path())
            .args(["install", "--quiet", "--disable-pip-version-check"])
            .args(arguments);
        run::output(&mut pip).map(drop)
    }

    /// Installs a wheel in place of the one that may be there.
    pub(crate) fn install(&self, project: &Project, wheel: &Path) -> Result<()> {
        let name = format!("installing the wheel in {}", self.name());
        let product = self.site_packages().join("gpumem");
        let inputs = [&*wheel.to_string_lossy()];
        step::unless_current(project, &name, &product, &inputs, || {
            let mut arguments = ["--force-reinstall", "--no-deps", "--no-cache-dir"]
                .map(OsString::from)
                .to_vec();
            arguments.push(wheel.into());
            self.add(&Self::main(project)?, &arguments)
        })
    }

    /// Its folder's name.
    pub(crate) fn name(&self) -> String {
        let name = self.folder.file_name().unwrap_or_default();
        name.to_string_lossy().into_owned()
    }

    pub(crate) fn site_packages(&self) -> PathBuf {
        let python = format!("lib/python3.{}/site-packages", self.minor);
        self.folder.join(python)
    }

    /// The version of a package in it.
    pub(crate) fn version_of(&self, package: &str) -> Result<String> {
        let ask = format!("import importlib.metadata as m; print(m.version({package:?}))");
        let version = run::output(self.python().args(["-c", &ask]))?;
        Ok(version.trim().to_owned())
    }

    /// The 12 of 3.12.
    pub(crate) fn minor(&self) -> u32 {
        self.minor
    }

    pub(crate) fn python_path(&self) -> PathBuf {
        let python = self.programs().join("python");
        python.with_extension(std::env::consts::EXE_EXTENSION)
    }

    fn programs(&self) -> PathBuf {
        self.folder
            .join(if cfg!(windows) { "Scripts" } else { "bin" })
    }

    /// Where programs are searched once the environment is activated.
    pub(crate) fn search_path(&self) -> OsString {
        let usual = std::env::var_os("PATH").unwrap_or_default();
        let folders = std::iter::once(self.programs()).chain(std::env::split_paths(&usual));
        std::env::join_paths(folders).unwrap_or(usual.clone())
    }

    /// This environment's Python, apart from the user's own packages, kernels and settings.
    pub(crate) fn python(&self) -> Command {
        let mut command = run::command(self.python_path());
        command
            .env("PATH", self.search_path())
            .env_remove("PYTHONPATH")
            .env_remove("PYTHONHOME")
            // Many images of containers set it: each of our processes would compile what it imports.
            .env_remove("PYTHONDONTWRITEBYTECODE")
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
}
