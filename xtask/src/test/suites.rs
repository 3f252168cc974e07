//! The suites: which tests run where.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, ExitStatus};
use std::sync::atomic::{AtomicU32, Ordering};

use anyhow::{Result, bail};

use super::{Lane, Ran, Suite, SuiteContext, TorchVariant, is_set, without_frameworks};
use crate::played::{self, PlayedDriver};
use crate::python::Environment;
use crate::tally::Tally;
use crate::{lint, run, site, step, system, wheel};

pub(super) const SUITES: [Suite; 17] = [
    suite("js", Lane::Compiles, js),
    suite("rust", Lane::Compiles, rust),
    suite("lint", Lane::Compiles, lint),
    suite("packaging", Lane::Compiles, packaging),
    // The longest first.
    suite("python", Lane::Waits, python),
    suite("browser", Lane::Waits, browser),
    suite("cuda", Lane::Waits, cuda),
    suite("harm", Lane::Waits, harm),
    suite("frameworks", Lane::Waits, frameworks),
    suite("sessions", Lane::Waits, sessions),
    suite("museum", Lane::Waits, museum),
    suite("demo", Lane::Waits, demo),
    suite("oldest", Lane::Waits, oldest),
    suite("between", Lane::Waits, between),
    suite(NEWEST, Lane::Waits, newest),
    suite(TORCHES, Lane::Waits, torches),
    suite("gpu", Lane::Waits, gpu),
];

const fn suite(name: &'static str, lane: Lane, run: fn(&SuiteContext<'_>) -> Result<Ran>) -> Suite {
    Suite { name, lane, run }
}

/// Runs only if it is named: what others release must not fail a change of ours.
pub(super) const NEWEST: &str = "newest";
/// Runs only if it is named, or all would take too long: the same tests beside torches of other versions.
pub(super) const TORCHES: &str = "torches";

/// Not for other systems: that takes a twentieth of all tests' time, and CI compiles and tries it on them.
fn lint(setting: &SuiteContext<'_>) -> Result<Ran> {
    lint::run_all(setting.without_arguments()?, &[]).map(Ran::Tests)
}

/// Units, properties, snapshots and doctests, and the rules of the repository.
fn rust(setting: &SuiteContext<'_>) -> Result<Ran> {
    let environment = Environment::main(setting.project)?;
    // Beside the other packages, xtask's dependencies would have other features than `cargo xtask`
    // built them with, and be compiled a second time. A test that is named may be in either.
    let selections: &[&[&str]] = if setting.arguments.is_empty() {
        &[&["--workspace", "--exclude=xtask"], &["--package=xtask"]]
    } else {
        &[&["--workspace"]]
    };
    let mut sum = Tally::default();
    for selection in selections {
        let mut cargo = setting.project.cargo("test");
        cargo
            .args(["--quiet", "--locked", "--all-features", "--no-fail-fast"])
            .args(*selection)
            .args(setting.arguments)
            .env("INSTA_UPDATE", "no")
            .env("PYO3_PYTHON", environment.python_path());
        sum += count(&mut cargo, Tally::from_cargo)?;
    }
    Ok(Ran::Tests(sum))
}

fn js(setting: &SuiteContext<'_>) -> Result<Ran> {
    if system::find("node").is_none() {
        return Ok(Ran::Nothing("Node is not installed".to_owned()));
    }
    let mut node = run::command("node");
    node.args(["--test", "--test-reporter=tap"])
        .args(setting.arguments)
        .current_dir(setting.project.path("js"));
    count(&mut node, Tally::from_node).map(Ran::Tests)
}

fn python(setting: &SuiteContext<'_>) -> Result<Ran> {
    in_shells(setting, &setting.installed()?, &[]).map(Ran::Tests)
}

fn oldest(setting: &SuiteContext<'_>) -> Result<Ran> {
    let oldest = Environment::oldest(setting.project)?;
    in_shells_of_others(setting, oldest, &["python", "ipython"])
}

/// The newest versions of all that gpumem needs, on the newest Python that is here.
fn newest(setting: &SuiteContext<'_>) -> Result<Ran> {
    in_shells_of_others(setting, Environment::newest(setting.project)?, &[])
}

fn in_shells_of_others(
    setting: &SuiteContext<'_>,
    environment: Environment,
    marks: &[&str],
) -> Result<Ran> {
    let environment = setting.with_wheel(environment)?;
    let (ipython, minor) = (environment.version_of("ipython")?, environment.minor());
    run::say(&format!("IPython {ipython} on Python 3.{minor}"));
    in_shells(setting, &environment, marks).map(Ran::Tests)
}

/// What rests on the insides of Python, on every one between the oldest and ours.
fn between(setting: &SuiteContext<'_>) -> Result<Ran> {
    let others = Environment::between(setting.project)?;
    if others.is_empty() {
        let reason = "there is no Python between the oldest and ours";
        return Ok(Ran::Nothing(reason.to_owned()));
    }
    let mut sum = Tally::default();
    for environment in others {
        let environment = setting.with_wheel(environment)?;
        run::say(&format!("Python 3.{}", environment.minor()));
        sum += in_shells(setting, &environment, &["python"])?;
    }
    Ok(Ran::Tests(sum))
}

/// Test files per process: a look at all objects slows down with the number of collected tests.
const FILES_AT_ONCE: usize = 8;

/// The tests in shells and kernels, with GPUs that are played: those with one of the marks, or all.
fn in_shells(
    setting: &SuiteContext<'_>,
    environment: &Environment,
    marks: &[&str],
) -> Result<Tally> {
    let mut files = Vec::new();
    for folder in ["tests/python", "tests/python/assumed", "tests/gallery"] {
        for path in step::entries(&setting.project.path(folder))? {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            // A process that collects a file in which nothing is marked takes seconds for it.
            let is_marked =
                |text: &str| marks.iter().any(|it| text.contains(&format!("mark.{it}")));
            if name.starts_with("test_")
                && (marks.is_empty() || is_marked(&fs::read_to_string(&path)?))
            {
                files.push(format!("{folder}/{name}"));
            }
        }
    }
    files.sort();
    let marks = format!("-m={}", marks.join(" or "));
    let mut sum = Tally::default();
    for files in files.chunks(FILES_AT_ONCE) {
        let files = files.iter().map(String::as_str);
        let paths: Vec<&str> = files.chain([&*marks]).collect();
        sum += side_by_side(setting, environment, &paths)?;
    }
    Ok(sum)
}

/// The observer and the gallery with the real torch, JAX and TensorFlow.
fn frameworks(setting: &SuiteContext<'_>) -> Result<Ran> {
    let Some(environment) = setting.torch(TorchVariant::Frameworks)? else {
        return Ok(without_frameworks());
    };
    let mut sum = side_by_side(setting, &environment, &["tests/frameworks"])?;
    sum += side_by_side(setting, &environment, &["tests/gallery"])?;
    Ok(Ran::Tests(sum))
}

/// Sessions with known truth: those that import what is not installed are skipped.
fn sessions(setting: &SuiteContext<'_>) -> Result<Ran> {
    let torch = setting.torch(TorchVariant::Frameworks)?;
    let environment = torch.map_or_else(|| setting.installed(), Ok)?;
    side_by_side(setting, &environment, &["tests/sessions"]).map(Ran::Tests)
}

/// Known leaks with their real libraries.
fn museum(setting: &SuiteContext<'_>) -> Result<Ran> {
    let Some(environment) = setting.torch(TorchVariant::Frameworks)? else {
        return Ok(without_frameworks());
    };
    side_by_side(setting, &environment, &["tests/museum"]).map(Ran::Tests)
}

/// Of `harm`: what rests on the insides of Python. Files, copies and the system are the same on every one.
const HARM_OF_PYTHON: [&str; 5] = [
    "tests/harm/test_forks.py",
    "tests/harm/test_guards.py",
    "tests/harm/test_loops.py",
    "tests/harm/test_program.py",
    "tests/harm/test_threads.py",
];

/// Sessions that ended a kernel once; what rests on the insides of Python on each from 3.11 on; and beside torch.
fn harm(setting: &SuiteContext<'_>) -> Result<Ran> {
    let project = setting.project;
    let mut plain = vec![Environment::main(project)?];
    plain.extend(Environment::between(project)?);
    plain.extend(Environment::oldest_of_ours(project)?);
    let mut sum = Tally::default();
    for (idx, environment) in plain.into_iter().enumerate() {
        let environment = setting.with_wheel(environment)?;
        run::say(&format!("Python 3.{}", environment.minor()));
        sum += if idx == 0 {
            let all = ["tests/harm", "--ignore=tests/harm/test_torch.py"];
            side_by_side(setting, &environment, &all)?
        } else {
            side_by_side(setting, &environment, &HARM_OF_PYTHON)?
        };
    }
    sum += match setting.torch(TorchVariant::Frameworks)? {
        Some(environment) => beside_torch(setting, &environment, HARM_OF_TORCH)?,
        None => Tally::ONE_SKIPPED,
    };
    Ok(Ran::Tests(sum))
}

const HARM_OF_TORCH: &str = "tests/harm/test_torch.py";

fn beside_torch(setting: &SuiteContext<'_>, torch: &Environment, path: &str) -> Result<Tally> {
    say_torch(torch)?;
    side_by_side(setting, torch, &[path])
}

/// What runs on the older torch: nothing that needs the tensors that a graph keeps, which torch 2.8
/// shows only to who unpacks them, nor torch's newer statistics.
const ON_CUDA_12: [&str; 11] = [
    "tests/cuda/test_faults.py",
    "tests/cuda/test_fragmentation.py",
    "tests/cuda/test_levels.py",
    "tests/cuda/test_observer.py",
    "tests/cuda/test_oom.py",
    "tests/cuda/test_played.py",
    "tests/cuda/test_trace.py",
    "tests/cuda/test_runs.py",
    "tests/cuda/test_allocators.py::test_a_graph_keeps_its_pool_and_a_replay_keeps_nothing",
    "tests/cuda/test_release.py::test_every_step_in_turn",
    ASSUMED,
];

/// What is assumed of torch and `NumPy`: the tests whose names have `cuda` in them need a card.
const ASSUMED: &str = "tests/frameworks/assumed";

/// The real torch on a played CUDA: its allocator, its statistics and its errors, without a GPU.
fn cuda(setting: &SuiteContext<'_>) -> Result<Ran> {
    run::say(
        "the real torch on a played CUDA: levels and errors are torch's own, \
         computed numbers are garbage\n\
         it replaces no GPU: run `cargo xtask test gpu` on a machine that has one, too",
    );
    on_played_cuda(
        setting,
        TorchVariant::Cuda,
        &["tests/cuda", "tests/gallery", ASSUMED],
    )
}

/// The newest torch and JAX, which find no driver and run on the CPU, and the oldest torch.
fn torches(setting: &SuiteContext<'_>) -> Result<Ran> {
    if !played::CAN_BE_LINKED {
        return Ok(Ran::Nothing(NO_CUDA.to_owned()));
    }
    let (Some(newest), Some(oldest)) = (
        setting.torch(TorchVariant::Cuda)?,
        setting.torch(TorchVariant::Cuda12)?,
    ) else {
        return Ok(without_frameworks());
    };
    let mut sum = beside_torch(setting, &newest, "tests/frameworks")?;
    sum += beside_torch(setting, &oldest, ASSUMED)?;
    for environment in [&newest, &oldest] {
        sum += beside_torch(setting, environment, HARM_OF_TORCH)?;
    }
    if let Ran::Tests(on_cuda) = on_played_cuda(setting, TorchVariant::Cuda12, &ON_CUDA_12)? {
        sum += on_cuda;
    }
    Ok(Ran::Tests(sum))
}

const NO_CUDA: &str = "torch for CUDA is for Linux on x86-64";

fn on_played_cuda(setting: &SuiteContext<'_>, torch: TorchVariant, paths: &[&str]) -> Result<Ran> {
    let driver = setting.driver()?.filter(|_| played::CAN_BE_LINKED);
    let Some(driver) = driver else {
        return Ok(Ran::Nothing(NO_CUDA.to_owned()));
    };
    let Some(environment) = setting.torch(torch)? else {
        return Ok(without_frameworks());
    };
    say_torch(&environment)?;
    let mut pytest = pytest(setting, &environment)?;
    let programs = [driver.programs().to_path_buf()].into_iter();
    let search = environment.search_path();
    let search = std::env::join_paths(programs.chain(std::env::split_paths(&search)))?;
    pytest
        .args(["-p", "tests.cuda.on_played", "-rs", "-k", "cuda"])
        .args(SIDE_BY_SIDE)
        .args(paths)
        .env("LD_LIBRARY_PATH", driver.libraries())
        .env("PATH", search);
    count_pytest(setting, &mut pytest).map(Ran::Tests)
}

fn say_torch(environment: &Environment) -> Result<()> {
    let (torch, minor) = (environment.version_of("torch")?, environment.minor());
    run::say(&format!("torch {torch} on Python 3.{minor}"));
    Ok(())
}

/// The same claims on a real GPU, with whichever frameworks are there.
fn gpu(setting: &SuiteContext<'_>) -> Result<Ran> {
    if system::find("nvidia-smi").is_none() {
        let reason = "no NVIDIA driver was found: there is no nvidia-smi";
        return Ok(Ran::Nothing(reason.to_owned()));
    }
    let torch = setting.torch(TorchVariant::Frameworks)?;
    let environment = torch.map_or_else(|| setting.installed(), Ok)?;
    let mut pytest = pytest(setting, &environment)?;
    pytest.args(["-rs", "-k", "cuda", "tests/cuda", "tests/gallery", ASSUMED]);
    count_pytest(setting, &mut pytest).map(Ran::Tests)
}

fn browser(setting: &SuiteContext<'_>) -> Result<Ran> {
    let chromium = match system::chromium() {
        Err(missing) if !system::may_install() => return Ok(Ran::Nothing(format!("{missing:#}"))),
        found => found?,
    };
    let mut pytest = pytest(setting, &setting.installed()?)?;
    // By file: the tests of one may share a server, or what they did to it.
    pytest
        .args(["--numprocesses=auto", "--dist=loadfile", "tests/browser"])
        .env("GPUMEM_CHROMIUM", chromium);
    count_pytest(setting, &mut pytest).map(Ran::Tests)
}

/// The demonstration, by the command that people type.
fn demo(setting: &SuiteContext<'_>) -> Result<Ran> {
    let mut pytest = pytest(setting, &setting.installed()?)?;
    pytest.arg("tests/demo").env("GPUMEM_XTASK", own_program()?);
    count_pytest(setting, &mut pytest).map(Ran::Tests)
}

/// This program's path. Linux marks the file as deleted if the rust suite has rebuilt it since.
fn own_program() -> Result<PathBuf> {
    let path = std::env::current_exe()?;
    let text = path.to_string_lossy();
    let is_replaced = text.strip_suffix(" (deleted)").map(PathBuf::from);
    Ok(is_replaced.unwrap_or_else(|| path.clone()))
}

/// Set to this, nothing is compiled as it is published: the wheel that is tested stands for that.
const AS_TESTED: (&str, &str) = ("GPUMEM_PUBLISHED", "as tested");

fn packaging(setting: &SuiteContext<'_>) -> Result<Ran> {
    let tested = is_set(AS_TESTED).then(|| setting.wheel().cloned());
    let published = wheel::publish(setting.project, tested.transpose()?)?;
    let mut pytest = pytest(setting, &Environment::main(setting.project)?)?;
    pytest
        .arg("tests/packaging")
        .env("GPUMEM_WHEEL", published.wheel)
        .env("GPUMEM_SDIST", published.sources);
    let mut tally = count_pytest(setting, &mut pytest)?;
    // Arguments name tests of pytest's.
    if setting.arguments.is_empty() {
        site::build(setting.project, &setting.installed()?)?;
        tally += Tally::ONE_PASSED;
    }
    Ok(Ran::Tests(tally))
}

/// In as many processes as the machine has cores.
const SIDE_BY_SIDE: [&str; 2] = ["--numprocesses=auto", "--dist=worksteal"];

fn side_by_side(
    setting: &SuiteContext<'_>,
    environment: &Environment,
    paths: &[&str],
) -> Result<Tally> {
    let mut pytest = pytest(setting, environment)?;
    count_pytest(setting, pytest.args(SIDE_BY_SIDE).args(paths))
}

/// pytest in an environment; tests find the played driver.
fn pytest(setting: &SuiteContext<'_>, environment: &Environment) -> Result<Command> {
    let mut pytest = environment.module("pytest");
    let variables = setting
        .driver()?
        .into_iter()
        .flat_map(PlayedDriver::variables);
    pytest
        .args(["-c", "pyproject.toml", "--quiet", "--color=no"])
        .envs(variables)
        .current_dir(setting.project.root());
    Ok(pytest)
}

/// As which pytest ends if it was to run no test.
const NONE_SELECTED: i32 = 5;

/// So few tests may fail because the machine was busy. More are a fault.
const FEW: u32 = 5;

/// Runs pytest, and the few tests that fail a second time, alone: many wait for what another process
/// does, and CI's machine is busy. Those with the mark `first_try` have no second one.
fn count_pytest(setting: &SuiteContext<'_>, pytest: &mut Command) -> Result<Tally> {
    static N_RUN: AtomicU32 = AtomicU32::new(0);
    let number = N_RUN.fetch_add(1, Ordering::Relaxed);
    let failed = setting.project.target(&format!("failed-tests-{number}"));
    fs::write(&failed, "")?;
    pytest
        .args(setting.arguments)
        .env("GPUMEM_FAILED_TESTS", failed);
    let (status, printed) = run::tee(pytest)?;
    // Those that are wanted may all be in other files of the suite. One that runs none has failed.
    if status.code() == Some(NONE_SELECTED) {
        return Ok(Tally::default());
    }
    let mut tally = checked(status, Tally::from_pytest(&printed))?;
    if (1..=FEW).contains(&tally.failed) {
        run::say("a second try, alone:");
        pytest.arg("--numprocesses=0").env("GPUMEM_SECOND_TRY", "1");
        let (again, printed) = run::tee(pytest)?;
        if again.success() && Tally::from_pytest(&printed).passed == tally.failed {
            tally.passed_alone();
        }
    }
    Ok(tally)
}

fn count(runner: &mut Command, tally: fn(&str) -> Tally) -> Result<Tally> {
    let (status, printed) = run::tee(runner)?;
    checked(status, tally(&printed))
}

fn checked(status: ExitStatus, tally: Tally) -> Result<Tally> {
    if !status.success() && tally.failed == 0 {
        bail!("{tally}, but the runner ended with {status}");
    }
    Ok(tally)
}
