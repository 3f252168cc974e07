//! The checks that read the code without running it.

use std::path::Path;
use std::process::{Command, ExitCode};

use anyhow::Result;

use crate::project::Project;
use crate::python::Environment;
use crate::tally::Tally;
use crate::{run, system, wasm};

/// Python that people write: the package, its build, its tests and our scripts.
const PYTHON: [&str; 3] = ["pybind", "tests", "xtask/python"];

/// A check and what came of it.
pub(crate) enum Outcome {
    Passed,
    Failed(String),
    /// Not run, with the reason.
    Skipped(&'static str),
}

/// Runs every check, also after one has failed.
pub(crate) fn outcomes(
    project: &Project,
    environment: &Environment,
) -> Result<Vec<(&'static str, Outcome)>> {
    wasm::add_target()?;
    let mut outcomes: Vec<_> = commands(project, environment)
        .into_iter()
        .map(|(name, mut command)| {
            eprintln!("lint: {name}");
            (name, outcome(run::run(&mut command)))
        })
        .collect();
    eprintln!("lint: js");
    outcomes.push(("js", check_js(project)));
    Ok(outcomes)
}

/// Runs every check and says which failed.
pub(crate) fn check(project: &Project, environment: &Environment) -> Result<ExitCode> {
    let tally = report(&outcomes(project, environment)?);
    println!("{tally}");
    Ok(tally.exit_code())
}

/// Prints what did not pass, and counts.
pub(crate) fn report(outcomes: &[(&str, Outcome)]) -> Tally {
    let mut tally = Tally::default();
    for (name, outcome) in outcomes {
        match outcome {
            Outcome::Passed => tally.passed += 1,
            Outcome::Skipped(reason) => {
                println!("{name}: skipped, {reason}");
                tally.skipped += 1;
            }
            Outcome::Failed(reason) => {
                println!("{name}: {reason}");
                tally.failed += 1;
            }
        }
    }
    tally
}

fn commands(project: &Project, environment: &Environment) -> Vec<(&'static str, Command)> {
    let cargo = |subcommand: &str, arguments: &[&str]| {
        let mut command = project.cargo(subcommand);
        command
            .args(arguments)
            .env("PYO3_PYTHON", environment.python_path());
        command
    };
    let ruff = |arguments: &[&str]| {
        let mut command = environment.module("ruff");
        command
            .args(arguments)
            .args(PYTHON)
            .current_dir(project.root());
        command
    };
    let mut rustdoc = cargo(
        "doc",
        &[
            "--quiet",
            "--locked",
            "--workspace",
            "--no-deps",
            "--document-private-items",
            "--all-features",
        ],
    );
    rustdoc.env("RUSTDOCFLAGS", "--deny warnings");
    let mut mypy = environment.module("mypy");
    mypy.current_dir(project.root());
    vec![
        ("rustfmt", cargo("fmt", &["--all", "--check"])),
        (
            "clippy",
            cargo(
                "clippy",
                &[
                    "--quiet",
                    "--locked",
                    "--workspace",
                    "--all-targets",
                    "--all-features",
                    "--",
                    "--deny",
                    "warnings",
                ],
            ),
        ),
        (
            "clippy, for the page",
            cargo(
                "clippy",
                &[
                    "--quiet",
                    "--locked",
                    "--package",
                    "gpumem-widget",
                    "--lib",
                    "--target",
                    wasm::TARGET,
                    "--",
                    "--deny",
                    "warnings",
                ],
            ),
        ),
        ("rustdoc", rustdoc),
        ("ruff format", ruff(&["format", "--quiet", "--check"])),
        ("ruff check", ruff(&["check", "--quiet"])),
        ("mypy", mypy),
    ]
}

/// Node is wanted here only, so it may be missing.
fn check_js(project: &Project) -> Outcome {
    if system::find("npm").is_none() {
        return Outcome::Skipped("Node is not installed");
    }
    outcome(run_biome(&project.path("js")))
}

/// Runs Biome at the one version that `package.json` names.
///
/// Without a lock file: it needs nothing but its own program for this system,
/// and a lock written where a registry lacks one of those is refused elsewhere.
fn run_biome(js: &Path) -> Result<()> {
    let biome = js.join("node_modules/.bin/biome");
    if !biome.exists() {
        let install = [
            "install",
            "--no-package-lock",
            "--no-audit",
            "--no-fund",
            "--silent",
        ];
        run::output(run::command("npm").args(install).current_dir(js))?;
    }
    run::run(
        run::command(biome)
            .args(["ci", "--colors=off", "."])
            .current_dir(js),
    )
}

fn outcome(result: Result<()>) -> Outcome {
    match result {
        Ok(()) => Outcome::Passed,
        Err(error) => Outcome::Failed(format!("{error:#}")),
    }
}
