//! What `cargo xtask` does: every step from a fresh clone to a tested wheel.
//!
//! Each command does the set-up that it needs, and a step that is up to date
//! costs nothing.

mod bench;
mod bundle;
mod demo;
mod fuzz;
mod lint;
mod played;
mod project;
mod python;
mod release;
mod run;
mod site;
mod step;
mod system;
mod tally;
mod test;
mod wasm;
mod wheel;

use std::process::ExitCode;

use anyhow::Result;
use clap::Parser;

use crate::project::Project;
use crate::python::Environment;
use crate::wheel::WheelPurpose;

/// Build, test and demonstrate gpumem.
#[derive(Parser)]
#[command(bin_name = "cargo xtask", disable_help_subcommand = true)]
enum Command {
    /// Prepare this machine: the compiler's wasm target and a private Python environment
    Setup,
    /// Build the widget and the extension, and install both into the private environment
    Build {
        /// Build only the widget's files in the Python package
        #[arg(long)]
        widget_only: bool,
    },
    /// Build the wheel and the source distribution into target/wheels
    Wheel {
        /// Build a wheel for each kind of Linux instead, with zig, into target/wheels-release
        #[arg(long)]
        release: bool,
        /// Build only these, such as x86_64-unknown-linux-musl
        #[arg(long, requires = "release")]
        target: Vec<String>,
    },
    /// Build the site into target/site
    Site,
    /// Write the schema, the Python types and the tables of findings and runs, from what is declared
    Findings,
    /// Write the notices of the crates and fonts that the wheel contains
    Licenses,
    /// Show the quickstart in JupyterLab
    Demo(demo::DemoOptions),
    /// Update the README's picture of the report and the quickstart's outputs
    Picture,
    /// Run every test, or the named suites
    Test {
        #[arg(value_parser = test::names())]
        suites: Vec<String>,
        /// Arguments of pytest, cargo or Node for the one suite that is named, such as `-k NAME`
        #[arg(last = true, requires = "suites")]
        arguments: Vec<String>,
    },
    /// Check format, lints, documentation and types
    Lint,
    /// Fuzz every reader with damaged and hostile bytes, and count how often
    Fuzz {
        /// One reader instead of all
        reader: Option<String>,
        /// For how long each reader is fuzzed
        #[arg(long, default_value_t = 60)]
        seconds: u32,
    },
    /// Measure what gpumem costs
    Bench {
        /// One benchmark instead of all
        name: Option<String>,
    },
}

fn main() -> ExitCode {
    execute(&Command::parse(), &Project::here()).unwrap_or_else(|error| {
        eprintln!("error: {error:#}");
        ExitCode::FAILURE
    })
}

fn execute(command: &Command, project: &Project) -> Result<ExitCode> {
    match command {
        Command::Setup => {
            wasm::add_target()?;
            Environment::main(project)?;
        }
        Command::Build { widget_only: true } => wasm::build(project)?,
        Command::Build { widget_only: false } => {
            wheel::install(project, WheelPurpose::Try)?;
        }
        Command::Wheel {
            release: true,
            target,
        } => {
            for wheel in release::build(project, target)? {
                println!("{}", wheel.display());
            }
        }
        Command::Wheel { release: false, .. } => {
            let published = wheel::publish(project, None)?;
            println!("{}", published.wheel.display());
            println!("{}", published.sources.display());
        }
        Command::Site => {
            let recorder = wheel::install(project, WheelPurpose::Try)?;
            println!("{}", site::build(project, &recorder)?.display());
        }
        Command::Findings => {
            let tidy = "--quiet --package xtask --test tidy declares".split(' ');
            let mut cargo = project.cargo("test");
            run::run(cargo.args(tidy).env("GPUMEM_WRITE_FINDINGS", "1"))?;
        }
        Command::Licenses => {
            let script = project.path("xtask/python/notices.py");
            run::run(Environment::main(project)?.python().arg(script))?;
        }
        Command::Demo(options) => {
            let environment = wheel::install(project, WheelPurpose::Try)?;
            eprintln!("{}", step::times().join("\n"));
            return demo::show(project, &environment, options);
        }
        Command::Picture => {
            let script = project.path("xtask/python/take_picture.py");
            let environment = wheel::install(project, WheelPurpose::Try)?;
            let picture = project.path("docs/report.png");
            run::run(environment.python().arg(script).arg(picture))?;
            let store = project.path("xtask/python/store_notebook.py");
            let notebooks = ["quickstart", "quickstart-with-outputs"]
                .map(|name| project.path(&format!("notebooks/{name}.ipynb")));
            run::run(environment.python().arg(store).args(notebooks))?;
        }
        Command::Test { suites, arguments } => return test::run(project, suites, arguments),
        Command::Lint => return lint::check(project),
        Command::Fuzz { reader, seconds } => fuzz::run(project, reader.as_deref(), *seconds)?,
        Command::Bench { name } => bench::measure(project, name.as_deref())?,
    }
    Ok(ExitCode::SUCCESS)
}
