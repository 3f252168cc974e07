//! What `cargo xtask` does: every step from a fresh clone to a tested wheel.
//!
//! Each command does the set-up that it needs, and a step that is up to date
//! costs nothing.

mod bundle;
mod project;
mod python;
mod run;
mod stamp;
mod system;
mod wasm;
mod wheel;

use std::process::ExitCode;

use anyhow::Result;
use clap::Parser;

use crate::project::Project;
use crate::python::Environment;

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
    Wheel,
}

fn main() -> ExitCode {
    match execute(&Command::parse(), &Project::here()) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn execute(command: &Command, project: &Project) -> Result<ExitCode> {
    match command {
        Command::Setup => {
            wasm::add_target()?;
            Environment::main(project)?;
        }
        Command::Build { widget_only: true } => wasm::build(project)?,
        Command::Build { widget_only: false } => {
            install(project)?;
        }
        Command::Wheel => {
            let environment = Environment::main(project)?;
            println!("{}", wheel::build(project, &environment)?.display());
            println!("{}", wheel::sources(project, &environment)?.display());
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// The private environment with the wheel in it.
fn install(project: &Project) -> Result<Environment> {
    let environment = Environment::main(project)?;
    let wheel = wheel::build(project, &environment)?;
    environment.install(project, &wheel)?;
    Ok(environment)
}
