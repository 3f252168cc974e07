//! The checks that read the code without running it.

use std::path::Path;
use std::process::{Command, ExitCode};

use anyhow::Result;

use crate::project::Project;
use crate::python::Environment;
use crate::tally::Tally;
use crate::{run, step, system};

/// Python that people write: the package, its build, its tests and our scripts.
const PYTHON: &str = "pybind tests xtask/python";

/// Systems that the extension has to compile for, too, by their names.
const OTHERS: [(&str, &str); 2] = [
    ("Windows", "x86_64-pc-windows-gnu"),
    ("macOS", "aarch64-apple-darwin"),
];

/// Runs every check and ends with failure if one failed.
pub(crate) fn check(project: &Project) -> Result<ExitCode> {
    let tally = run_all(project, &OTHERS)?;
    println!("{tally}");
    Ok(tally.exit_code())
}

/// Runs every check of this system, and compiles for others, also after one has failed, and counts them.
pub(crate) fn run_all(project: &Project, others: &[(&str, &str)]) -> Result<Tally> {
    let environment = Environment::main(project)?;
    let mut tally = Tally::default();
    let mut note = |name: &str, check: &mut dyn FnMut() -> Result<()>| {
        let name = format!("lint: {name}");
        let outcome = step::timed(&name, check);
        run::say(&match outcome {
            Ok(()) => format!("{name}: passed"),
            Err(ref error) => format!("{name}: {error:#}"),
        });
        tally += match outcome {
            Ok(()) => Tally::ONE_PASSED,
            Err(_) => Tally::ONE_FAILED,
        };
    };
    for (name, mut command) in commands(project, &environment) {
        note(name, &mut || run::run(&mut command));
    }
    // The standard libraries of other systems come by rustup only.
    let has_systems = others.is_empty() || system::find("rustup").is_some();
    for (name, triple) in others.iter().filter(|_| has_systems) {
        note(name, &mut || check_for(project, &environment, triple));
    }
    // Node is needed here and in the tests of `js/` only.
    let has_node = system::find("npm").is_some();
    if has_node {
        note("js", &mut || run_biome(&project.path("js")));
    }
    for (is_here, what) in [
        (has_systems, "rustup: other systems"),
        (has_node, "Node: js"),
    ] {
        if !is_here {
            run::say(&format!("lint: skipped without {what}"));
            tally += Tally::ONE_SKIPPED;
        }
    }
    Ok(tally)
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
    let mut rustdoc = cargo(
        "doc",
        &format!("{whole} --no-deps --document-private-items"),
    );
    // Nothing of this workspace is published as a crate: its readers read what is private.
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

/// Checks the extension for another system. C is not compiled: `true` stands in for its compiler.
fn check_for(project: &Project, environment: &Environment, triple: &str) -> Result<()> {
    system::add_target(triple)?;
    let mut check = project.cargo("check");
    check
        .args(["--quiet", "--locked", "--package", "gpumem-pybind"])
        .args(["--target", triple])
        .env("PYO3_PYTHON", environment.python_path())
        .env("RUSTFLAGS", "--deny warnings");
    let triple = triple.replace('-', "_");
    for tool in ["CC", "AR"] {
        check.env(format!("{tool}_{triple}"), "true");
    }
    run::run(&mut check)
}

/// Runs Biome at the one version that `package.json` names.
///
/// Without a lock file: it needs nothing but its own program for this system,
/// and a lock written where a registry lacks one of those is refused elsewhere.
fn run_biome(js: &Path) -> Result<()> {
    let biome = js.join("node_modules/.bin/biome");
    if !biome.exists() {
        let install = "install --no-package-lock --no-audit --no-fund --silent".split(' ');
        run::output(run::command("npm").args(install).current_dir(js))?;
    }
    run::run(
        run::command(biome)
            .args(["ci", "--colors=off", "--error-on-warnings", "."])
            .current_dir(js),
    )
}
