//! The checks that read the code without running it.

use std::fs;
use std::path::Path;
use std::process::{Command, ExitCode};

use anyhow::Result;

use crate::project::Project;
use crate::python::Environment;
use crate::tally::Tally;
use crate::{licenses, portable, run, system, wasm};

/// Python that people write: the package, its build, its tests and our scripts.
const PYTHON: &str = "pybind tests xtask/python";

/// Lines from which on the length of a file is a question, not an error.
const LONG: usize = 400;

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
    for (name, triple) in portable::SYSTEMS {
        eprintln!("lint: {name}");
        outcomes.push((name, check_system(project, triple)));
    }
    eprintln!("lint: licenses");
    outcomes.push(("licenses", outcome(licenses::check(project))));
    eprintln!("lint: js");
    outcomes.push(("js", check_js(project)));
    Ok(outcomes)
}

/// Runs every check and says which failed.
pub(crate) fn check(project: &Project, environment: &Environment) -> Result<ExitCode> {
    let tally = report(&outcomes(project, environment)?);
    question_long_files(project)?;
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
    let cargo = |subcommand: &str, arguments: &str| {
        let mut command = project.cargo(subcommand);
        command
            .args(arguments.split_whitespace())
            .env("PYO3_PYTHON", environment.python_path());
        command
    };
    let python = |tool: &str, arguments: &str| {
        let mut command = environment.module(tool);
        command
            .args(arguments.split_whitespace())
            .current_dir(project.root());
        command
    };
    let whole = "--quiet --locked --workspace --all-features";
    let page = format!(
        "--quiet --locked --package gpumem-widget --package gpumem-files-page --lib --target {}",
        wasm::TARGET
    );
    let mut rustdoc = cargo(
        "doc",
        &format!("{whole} --no-deps --document-private-items"),
    );
    // Of a workspace that is not published as crates, what is private is what one reads.
    rustdoc.env(
        "RUSTDOCFLAGS",
        "--deny warnings --allow rustdoc::private-intra-doc-links",
    );
    vec![
        ("rustfmt", cargo("fmt", "--all --check")),
        (
            "clippy",
            cargo(
                "clippy",
                &format!("{whole} --all-targets -- --deny warnings"),
            ),
        ),
        (
            // All packages: by itself, the extension's dependencies would have other features.
            "clippy, of what is released",
            cargo("clippy", "--quiet --locked --workspace -- --deny warnings"),
        ),
        (
            "clippy, for the page",
            cargo("clippy", &format!("{page} -- --deny warnings")),
        ),
        ("rustdoc", rustdoc),
        (
            "ruff format",
            python("ruff", &format!("format --quiet --check {PYTHON}")),
        ),
        (
            "ruff check",
            python("ruff", &format!("check --quiet {PYTHON}")),
        ),
        ("mypy", python("mypy", "")),
    ]
}

/// Says which files have grown so long that one may ask whether they hold two things.
fn question_long_files(project: &Project) -> Result<()> {
    let list = ["ls-files", "*.rs", "*.py", "*.js"];
    let listed = run::output(run::command("git").args(list).current_dir(project.root()))?;
    for path in listed.lines() {
        let n_lines = fs::read_to_string(project.path(path))
            .unwrap_or_default()
            .lines()
            .count();
        if n_lines > LONG {
            println!("{path} has {n_lines} lines: does it hold two things?");
        }
    }
    Ok(())
}

/// The standard libraries of other systems come by rustup only.
fn check_system(project: &Project, triple: &str) -> Outcome {
    if system::find("rustup").is_none() {
        return Outcome::Skipped("rustup is not installed");
    }
    outcome(portable::check(project, triple))
}

/// Node is wanted here and in the tests of `js/` only, so it may be missing.
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
            .args(["ci", "--colors=off", "--error-on-warnings", "."])
            .current_dir(js),
    )
}

fn outcome(result: Result<()>) -> Outcome {
    match result {
        Ok(()) => Outcome::Passed,
        Err(error) => Outcome::Failed(format!("{error:#}")),
    }
}
