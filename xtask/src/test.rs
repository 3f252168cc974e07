//! Every suite, one after the other, and what they ran together.

mod cuda;

use std::cell::{OnceCell, RefCell};
use std::ffi::OsStr;
use std::path::PathBuf;
use std::process::{Command, ExitCode, ExitStatus};
use std::thread::{self, ScopedJoinHandle};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::played::{self, Driver};
use crate::project::Project;
use crate::python::{self, Environment};
use crate::tally::Tally;
use crate::wheel::Use;
use crate::{lint, run, site, system, wheel};

/// Tests that one runner runs.
struct Suite {
    name: &'static str,
    /// What it tests, built while the suites before it run; `None` if it may come to no test.
    wheel: Option<Use>,
    run: fn(&Setting<'_>) -> Result<Ran>,
}

/// What every suite is run with.
struct Setting<'scope> {
    project: &'scope Project,
    /// What the runner of the one suite is told: which tests, and how.
    arguments: &'scope [String],
    /// torch, JAX and TensorFlow.
    frameworks: Installation<'scope>,
    /// Torch for CUDA without NVIDIA's packages: the newest, and one for CUDA 12.
    cuda: [Installation<'scope>; 2],
    /// The wheels of the suites, while they are being built.
    wheels: RefCell<Option<ScopedJoinHandle<'scope, ()>>>,
}

impl Setting<'_> {
    /// For a suite whose checks cannot be picked.
    fn without_arguments(&self) -> Result<&Project> {
        if !self.arguments.is_empty() {
            bail!("this suite takes nothing after `--`");
        }
        Ok(self.project)
    }

    /// The wheel, once nothing is being compiled beside the tests any more.
    fn wheel(&self, for_: Use) -> Result<PathBuf> {
        if let Some(under_way) = self.wheels.take()
            && under_way.join().is_err()
        {
            bail!("the thread that builds the wheels panicked");
        }
        wheel::build(self.project, &Environment::main(self.project)?, for_)
    }

    /// The private environment with the wheel in it.
    fn installed(&self, for_: Use) -> Result<Environment> {
        let wheel = self
            .wheel(for_)
            .context("the wheel is not there to be tested")?;
        let environment = Environment::main(self.project)?;
        environment.install(self.project, &wheel)?;
        Ok(environment)
    }
}

/// An environment of some 5 GB, if any: pip is at it while other suites compile and run.
#[derive(Default)]
struct Installation<'scope> {
    under_way: RefCell<Option<ScopedJoinHandle<'scope, Result<Environment>>>>,
    done: OnceCell<Result<Environment, String>>,
}

impl<'scope> Installation<'scope> {
    fn start(under_way: ScopedJoinHandle<'scope, Result<Environment>>) -> Self {
        Self {
            under_way: RefCell::new(Some(under_way)),
            done: OnceCell::new(),
        }
    }

    /// Waits for it; `None` where nothing is being installed.
    fn environment(&self) -> Result<Option<&Environment>> {
        if let Some(under_way) = self.under_way.take() {
            if !under_way.is_finished() {
                println!("waiting for pip");
            }
            let joined = under_way
                .join()
                .unwrap_or_else(|_| bail!("pip's thread panicked"));
            // More than one suite asks: the error is the same for each.
            let _ = self.done.set(joined.map_err(|error| format!("{error:#}")));
        }
        match self.done.get() {
            None => Ok(None),
            Some(Ok(environment)) => Ok(Some(environment)),
            Some(Err(error)) => bail!("a framework could not be installed: {error}"),
        }
    }
}

/// What makes an environment.
type Make = fn(&Project) -> Result<Environment>;

/// Set to this, the frameworks are not installed, and their suite is skipped.
const NO_FRAMEWORKS: (&str, &str) = ("GPUMEM_FRAMEWORKS", "none");

/// What a suite did.
enum Ran {
    Tests(Tally),
    /// Nothing, because this machine cannot, with the reason.
    Nothing(String),
}

const SUITES: [Suite; 16] = [
    Suite {
        name: "lint",
        wheel: None,
        run: lint,
    },
    Suite {
        name: "rust",
        wheel: None,
        run: rust,
    },
    Suite {
        name: "js",
        wheel: None,
        run: js,
    },
    Suite {
        name: "stubs",
        wheel: Some(Use::Testing),
        run: stubs,
    },
    Suite {
        name: "python",
        wheel: Some(Use::Testing),
        run: python,
    },
    Suite {
        name: "oldest",
        wheel: Some(Use::Testing),
        run: oldest,
    },
    Suite {
        name: NEWEST,
        wheel: Some(Use::Testing),
        run: newest,
    },
    Suite {
        name: "between",
        wheel: Some(Use::Testing),
        run: between,
    },
    Suite {
        name: "frameworks",
        wheel: Some(Use::Testing),
        run: frameworks,
    },
    Suite {
        name: "sessions",
        wheel: Some(Use::Testing),
        run: sessions,
    },
    Suite {
        name: "harm",
        wheel: Some(Use::Testing),
        run: harm,
    },
    Suite {
        name: "cuda",
        wheel: Some(Use::Testing),
        run: cuda::run,
    },
    Suite {
        name: "gpu",
        wheel: None,
        run: gpu,
    },
    Suite {
        name: "browser",
        wheel: Some(Use::Testing),
        run: browser,
    },
    Suite {
        name: "demo",
        wheel: Some(Use::Release),
        run: demo,
    },
    Suite {
        name: "packaging",
        wheel: Some(Use::Release),
        run: packaging,
    },
];

/// Runs only if it is named: what others release must not fail a change of ours.
const NEWEST: &str = "newest";

/// The names that `cargo xtask test` takes.
pub(crate) fn names() -> [&'static str; SUITES.len()] {
    SUITES.map(|suite| suite.name)
}

/// Runs the named suites, or all, also after one has failed.
pub(crate) fn run(project: &Project, chosen: &[String], arguments: &[String]) -> Result<ExitCode> {
    if let (true, [_, _, ..]) = (!arguments.is_empty(), chosen) {
        bail!("what stands after `--` is for one suite: name one");
    }
    let chosen: Vec<&Suite> = SUITES
        .iter()
        .filter(|suite| match chosen {
            [] => suite.name != NEWEST,
            names => names.iter().any(|name| name == suite.name),
        })
        .collect();
    let is_chosen = |name| chosen.iter().any(|suite| suite.name == name);
    Ok(thread::scope(|scope| {
        let is_without = is_without_frameworks();
        let with_frameworks = ["frameworks", "sessions", "harm"];
        let frameworks = with_frameworks.into_iter().any(is_chosen) && !is_without;
        let frameworks = frameworks.then(python::best).map(|interpreter| {
            Installation::start(
                scope.spawn(move || Environment::frameworks(project, &interpreter?)),
            )
        });
        // Both ends of what is supported are newer and older than the frameworks' own.
        let newest = ["cuda", "frameworks", "harm"].into_iter().any(is_chosen);
        let oldest = ["cuda", "harm"].into_iter().any(is_chosen);
        let made = [
            (Environment::cuda as Make, newest),
            (Environment::cuda_12, oldest),
        ];
        let cuda = made.map(|(make, is_chosen)| {
            let is_wanted = is_chosen && !is_without && played::CAN_BE_LINKED;
            is_wanted.then(|| Installation::start(scope.spawn(move || make(project))))
        });
        let wheels = ahead(project, &chosen).map(|(environment, uses)| {
            scope.spawn(move || build_all(project, &environment, &uses))
        });
        let setting = Setting {
            project,
            arguments,
            frameworks: frameworks.unwrap_or_default(),
            cuda: cuda.map(Option::unwrap_or_default),
            wheels: RefCell::new(wheels),
        };
        run_all(&setting, &chosen)
    }))
}

/// The wheels that the suites test, and what builds them.
fn ahead(project: &Project, chosen: &[&Suite]) -> Option<(Environment, Vec<Use>)> {
    let mut uses = vec![Use::Testing, Use::Release];
    uses.retain(|&for_| chosen.iter().any(|suite| suite.wheel == Some(for_)));
    // Without an environment each suite says why there is none.
    (!uses.is_empty())
        .then(|| Environment::main(project).ok())
        .flatten()
        .map(|environment| (environment, uses))
}

/// Builds wheels. Where one fails, the suite that needs it tries again and says why.
fn build_all(project: &Project, environment: &Environment, uses: &[Use]) {
    for &for_ in uses {
        let _ = wheel::build(project, environment, for_);
    }
}

fn run_all(setting: &Setting<'_>, chosen: &[&Suite]) -> ExitCode {
    let mut sum = Tally::default();
    let mut table = Vec::new();
    let mut reasons = Vec::new();
    for suite in chosen {
        println!("\n== {} ==", suite.name);
        let start = Instant::now();
        let (tally, reason) = judge((suite.run)(setting));
        table.push(line(suite.name, start.elapsed(), tally));
        reasons.extend(reason.map(|reason| format!("{}: {reason}", suite.name)));
        sum += tally;
    }
    println!("\n{}", [table, reasons].concat().join("\n"));
    println!("{sum}");
    sum.exit_code()
}

/// Counts what a suite did. One that broke, or ran nothing without saying why, has failed.
fn judge(result: Result<Ran>) -> (Tally, Option<String>) {
    let failed = |reason: String| {
        (
            Tally {
                failed: 1,
                ..Tally::default()
            },
            Some(reason),
        )
    };
    match result {
        Err(error) => failed(format!("{error:#}")),
        Ok(Ran::Nothing(reason)) => (
            Tally {
                skipped: 1,
                ..Tally::default()
            },
            Some(format!("skipped, {reason}")),
        ),
        Ok(Ran::Tests(Tally {
            passed: 0,
            failed: 0,
            ..
        })) => failed("ran no test".to_owned()),
        Ok(Ran::Tests(tally)) => (tally, None),
    }
}

fn line(name: &str, took: Duration, tally: Tally) -> String {
    format!("{name:<10}{:>6.0} s   {tally}", took.as_secs_f64())
}

fn lint(setting: &Setting<'_>) -> Result<Ran> {
    let project = setting.without_arguments()?;
    let outcomes = lint::outcomes(project, &Environment::main(project)?)?;
    Ok(Ran::Tests(lint::report(&outcomes)))
}

/// Units, properties, snapshots and doctests, and the rules of the repository.
fn rust(setting: &Setting<'_>) -> Result<Ran> {
    let project = setting.project;
    let environment = Environment::main(project)?;
    // Beside the other packages, xtask's dependencies would have other features than `cargo xtask`
    // built them with, and be compiled a second time. A test that is asked for may be in either.
    let selections: &[&[&str]] = if setting.arguments.is_empty() {
        &[&["--workspace", "--exclude=xtask"], &["--package=xtask"]]
    } else {
        &[&["--workspace"]]
    };
    let mut sum = Tally::default();
    for selection in selections {
        let mut cargo = project.cargo("test");
        cargo
            .args(["--quiet", "--locked", "--all-features", "--no-fail-fast"])
            .args(*selection)
            .args(setting.arguments)
            .env("INSTA_UPDATE", "no")
            .env("PYO3_PYTHON", environment.python_path());
        sum += count(&mut cargo, Tally::of_cargo)?;
    }
    Ok(Ran::Tests(sum))
}

fn js(setting: &Setting<'_>) -> Result<Ran> {
    if system::find("node").is_none() {
        return Ok(Ran::Nothing("Node is not installed".to_owned()));
    }
    let mut node = run::command("node");
    node.args(["--test", "--test-reporter=tap"])
        .args(setting.arguments)
        .current_dir(setting.project.path("js"));
    count(&mut node, Tally::of_node).map(Ran::Tests)
}

/// What the stub promises against what the extension has.
fn stubs(setting: &Setting<'_>) -> Result<Ran> {
    let project = setting.without_arguments()?;
    let environment = setting.installed(Use::Testing)?;
    let mut stubtest = environment.module("mypy.stubtest");
    stubtest.arg("gpumem._gpumem").current_dir(project.root());
    run::run(&mut stubtest)?;
    Ok(Ran::Tests(Tally {
        passed: 1,
        ..Tally::default()
    }))
}

fn python(setting: &Setting<'_>) -> Result<Ran> {
    in_shells(setting, &setting.installed(Use::Testing)?, &[])
}

fn oldest(setting: &Setting<'_>) -> Result<Ran> {
    let project = setting.project;
    let oldest = Environment::oldest(project)?;
    oldest.install(project, &setting.wheel(Use::Testing)?)?;
    let ipython = oldest.installed_version("ipython")?;
    println!("IPython {ipython} on Python 3.{}", oldest.minor());
    in_shells(setting, &oldest, &["-m", "internals"])
}

/// The newest versions of all that gpumem needs, on the newest Python that is here.
fn newest(setting: &Setting<'_>) -> Result<Ran> {
    let project = setting.project;
    let newest = Environment::newest(project)?;
    newest.install(project, &setting.wheel(Use::Testing)?)?;
    let ipython = newest.installed_version("ipython")?;
    println!("IPython {ipython} on Python 3.{}", newest.minor());
    // One binary serves every Python, and drivers know of none.
    in_shells(setting, &newest, &["--ignore=tests/python/test_drivers.py"])
}

/// What rests on the insides of Python and IPython, on every Python between the oldest and ours.
fn between(setting: &Setting<'_>) -> Result<Ran> {
    let project = setting.project;
    let others = Environment::between(project)?;
    if others.is_empty() {
        return Ok(Ran::Nothing(
            "there is no Python between the oldest and ours".to_owned(),
        ));
    }
    let mut sum = Tally::default();
    for environment in others {
        environment.install(project, &setting.wheel(Use::Testing)?)?;
        println!("Python 3.{}", environment.minor());
        let selection = ["tests/python", "tests/gallery", "-m", "internals"];
        sum += side_by_side(setting, &environment, &selection, &[])?;
    }
    Ok(Ran::Tests(sum))
}

/// The tests in shells and kernels, with GPUs that are played.
fn in_shells(setting: &Setting<'_>, environment: &Environment, without: &[&str]) -> Result<Ran> {
    let driver = Driver::build(setting.project)?;
    let variables: Vec<_> = driver.iter().flat_map(Driver::variables).collect();
    // Whoever looks at all objects, as the gallery does in each test, is the slower the more
    // tests the process has collected.
    let mut sum = Tally::default();
    for folder in ["tests/python", "tests/gallery"] {
        let paths = [&[folder], without].concat();
        sum += side_by_side(setting, environment, &paths, &variables)?;
    }
    Ok(Ran::Tests(sum))
}

/// The observer and the gallery with the real torch, JAX and TensorFlow.
fn frameworks(setting: &Setting<'_>) -> Result<Ran> {
    let Some(environment) = setting.frameworks.environment()? else {
        return Ok(without_frameworks());
    };
    environment.install(setting.project, &setting.wheel(Use::Testing)?)?;
    let folders = ["tests/frameworks", "tests/gallery"];
    let mut sum = side_by_side(setting, environment, &folders, &[])?;
    // The newest ones: torch for CUDA, which finds no driver here and runs on the CPU.
    if let Some(newest) = setting.cuda[0].environment()? {
        newest.install(setting.project, &setting.wheel(Use::Testing)?)?;
        played::furnish(setting.project, newest)?;
        println!("the newest torch and JAX");
        sum += side_by_side(setting, newest, &["tests/frameworks"], &[])?;
    }
    Ok(Ran::Tests(sum))
}

/// Sessions with known truth: those that import what is not installed are skipped.
fn sessions(setting: &Setting<'_>) -> Result<Ran> {
    let folder = ["tests/sessions"];
    let Some(environment) = setting.frameworks.environment()? else {
        let environment = setting.installed(Use::Testing)?;
        return side_by_side(setting, &environment, &folder, &[]).map(Ran::Tests);
    };
    environment.install(setting.project, &setting.wheel(Use::Testing)?)?;
    side_by_side(setting, environment, &folder, &[]).map(Ran::Tests)
}

fn without_frameworks() -> Ran {
    let (variable, value) = NO_FRAMEWORKS;
    Ran::Nothing(format!("{variable} is {value}"))
}

/// Sessions that ended a kernel once: on each Python from 3.11 on, and beside each torch.
fn harm(setting: &Setting<'_>) -> Result<Ran> {
    let project = setting.project;
    let wheel = setting.wheel(Use::Testing)?;
    let mut sum = Tally::default();
    let mut plain = vec![Environment::main(project)?];
    plain.extend(Environment::between(project)?);
    plain.extend(Environment::oldest_of_ours(project)?);
    let apart = ["tests/harm", "--ignore=tests/harm/test_torch.py"];
    for environment in &plain {
        environment.install(project, &wheel)?;
        println!("Python 3.{}", environment.minor());
        sum += side_by_side(setting, environment, &apart, &[])?;
    }
    let [newest, oldest] = &setting.cuda;
    for (installation, is_for_cuda) in
        [(&setting.frameworks, false), (newest, true), (oldest, true)]
    {
        let Some(environment) = installation.environment()? else {
            println!("without torch: {} is {}", NO_FRAMEWORKS.0, NO_FRAMEWORKS.1);
            sum.skipped += 1;
            continue;
        };
        environment.install(project, &wheel)?;
        // A torch for CUDA does not load without the libraries that it links.
        if is_for_cuda {
            played::furnish(project, environment)?;
        }
        println!(
            "torch {} on Python 3.{}",
            environment.installed_version("torch")?,
            environment.minor()
        );
        sum += side_by_side(setting, environment, &["tests/harm/test_torch.py"], &[])?;
    }
    Ok(Ran::Tests(sum))
}

/// The same claims on a real GPU, with whichever frameworks are there.
fn gpu(setting: &Setting<'_>) -> Result<Ran> {
    let project = setting.project;
    if system::find("nvidia-smi").is_none() {
        let reason = "no NVIDIA driver was found: there is no nvidia-smi";
        return Ok(Ran::Nothing(reason.to_owned()));
    }
    let environment = if is_without_frameworks() {
        Environment::main(project)?
    } else {
        Environment::frameworks(project, &python::best()?)?
    };
    environment.install(project, &setting.wheel(Use::Testing)?)?;
    let only = ["-rs", "-k", "cuda"];
    let folders = ["tests/cuda", "tests/gallery"];
    tests_in(setting, &environment, &only, &folders, &[]).map(Ran::Tests)
}

fn is_without_frameworks() -> bool {
    let (variable, value) = NO_FRAMEWORKS;
    std::env::var_os(variable).is_some_and(|said| said == value)
}

fn browser(setting: &Setting<'_>) -> Result<Ran> {
    let project = setting.project;
    let environment = setting.installed(Use::Testing)?;
    let chromium = match system::chromium() {
        Err(missing) if !system::may_install() => return Ok(Ran::Nothing(format!("{missing:#}"))),
        found => found?,
    };
    let driver = Driver::build(project)?;
    let mut variables = vec![("GPUMEM_CHROMIUM", chromium.as_os_str())];
    variables.extend(driver.iter().flat_map(Driver::variables));
    // By file: the tests of one may share a server, or what they did to it.
    let by_file = ["--numprocesses=auto", "--dist=loadfile"];
    tests_in(
        setting,
        &environment,
        &by_file,
        &["tests/browser"],
        &variables,
    )
    .map(Ran::Tests)
}

/// This program's path. Linux says that a file is deleted where the rust suite
/// has built it anew since.
fn own_program() -> Result<PathBuf> {
    let path = std::env::current_exe()?;
    let text = path.to_string_lossy();
    Ok(text
        .strip_suffix(" (deleted)")
        .map_or_else(|| path.clone(), PathBuf::from))
}

/// The demonstration, by the command that people type.
fn demo(setting: &Setting<'_>) -> Result<Ran> {
    let environment = setting.installed(Use::Release)?;
    let xtask = own_program()?;
    pytest(
        setting,
        &environment,
        &["tests/demo"],
        &[("GPUMEM_XTASK", xtask.as_os_str())],
    )
    .map(Ran::Tests)
}

fn packaging(setting: &Setting<'_>) -> Result<Ran> {
    let project = setting.project;
    let environment = Environment::main(project)?;
    let wheel = setting.wheel(Use::Release)?;
    let sdist = wheel::sources(project, &environment)?;
    let built = [
        ("GPUMEM_WHEEL", wheel.as_os_str()),
        ("GPUMEM_SDIST", sdist.as_os_str()),
    ];
    let mut tally = pytest(setting, &environment, &["tests/packaging"], &built)?;
    // What is asked for after `--` is a test of pytest's.
    if setting.arguments.is_empty() {
        site::build(project, &setting.installed(Use::Release)?)?;
        tally.passed += 1;
    }
    Ok(Ran::Tests(tally))
}

fn pytest(
    setting: &Setting<'_>,
    environment: &Environment,
    paths: &[&str],
    variables: &[(&str, &OsStr)],
) -> Result<Tally> {
    tests_in(setting, environment, &[], paths, variables)
}

/// Runs tests in as many processes as the machine has cores.
fn side_by_side(
    setting: &Setting<'_>,
    environment: &Environment,
    paths: &[&str],
    variables: &[(&str, &OsStr)],
) -> Result<Tally> {
    tests_in(setting, environment, &SIDE_BY_SIDE, paths, variables)
}

/// In as many processes as the machine has cores.
const SIDE_BY_SIDE: [&str; 2] = ["--numprocesses=auto", "--dist=worksteal"];

fn tests_in(
    setting: &Setting<'_>,
    environment: &Environment,
    options: &[&str],
    paths: &[&str],
    variables: &[(&str, &OsStr)],
) -> Result<Tally> {
    let mut pytest = environment.module("pytest");
    pytest
        .args(["-c", ".pytest.ini", "--quiet", "--color=no"])
        .args(options)
        .args(paths)
        .args(setting.arguments)
        .envs(variables.iter().copied())
        .current_dir(setting.project.root());
    let (status, said) = run::tee(&mut pytest)?;
    // The tests that are asked for may all be in another folder of the suite.
    if !setting.arguments.is_empty() && status.code() == Some(NONE_SELECTED) {
        return Ok(Tally::default());
    }
    checked(status, Tally::of_pytest(&said))
}

/// As which pytest ends where it was to run no test.
const NONE_SELECTED: i32 = 5;

fn count(runner: &mut Command, tally: fn(&str) -> Tally) -> Result<Tally> {
    let (status, said) = run::tee(runner)?;
    checked(status, tally(&said))
}

fn checked(status: ExitStatus, tally: Tally) -> Result<Tally> {
    if !status.success() && tally.failed == 0 && tally.passed > 0 {
        bail!("{tally}, but the runner ended with {status}");
    }
    if !status.success() && tally.failed == 0 {
        bail!("ran no test, the runner ended with {status}");
    }
    Ok(tally)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_suite_that_runs_nothing_has_failed_unless_it_says_why() {
        let check = |ran: Result<Ran>, expected: &str| {
            assert_eq!(judge(ran).0.to_string(), expected);
        };
        let tests = |passed, failed, skipped| {
            Ok(Ran::Tests(Tally {
                passed,
                failed,
                skipped,
            }))
        };
        check(tests(3, 1, 0), "3 passed, 1 failed");
        check(tests(0, 0, 0), "0 passed, 1 failed");
        check(tests(0, 0, 5), "0 passed, 1 failed");
        check(
            Ok(Ran::Nothing("no such program".to_owned())),
            "0 passed, 0 failed, 1 skipped",
        );
        check(
            Err(anyhow::anyhow!("did not compile")),
            "0 passed, 1 failed",
        );
    }
}
