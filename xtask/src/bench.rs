//! What gpumem costs, measured in one run with its floor.

mod catalogue;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use catalogue::{BENCHES, Bench, Row};

use crate::played::{self, Driver};
use crate::project::Project;
use crate::python::Environment;
use crate::wheel::Use;
use crate::{run, wheel};

/// Sessions longer than a recorder keeps, for the report to show: by the name of
/// the variable that tells where, how many runs, samples and cells.
const SESSIONS: [(&str, [&str; 3]); 4] = [
    ("GPUMEM_MILLION", ["1000", "1000000", "40"]),
    ("GPUMEM_MANY_RUNS", ["10000", "20000", "40"]),
    ("GPUMEM_MANY_CELLS", ["10000", "20000", "500"]),
    ("GPUMEM_USUAL", ["60", "3000", "40"]),
];

/// Writes them, where the report is to be measured.
fn sessions(project: &Project, chosen: &[&Bench]) -> Result<Vec<(&'static str, PathBuf)>> {
    if !chosen.iter().any(|bench| bench.name == "widget") {
        return Ok(Vec::new());
    }
    let folder = project.target("bench");
    let write = |(name, counts): (&'static str, [&str; 3])| {
        let path = folder.join(name.to_lowercase()).with_extension("recording");
        let arguments = [
            "--quiet",
            "--locked",
            "--package",
            "gpumem-core",
            "--example",
        ];
        let mut example = project.cargo("run");
        example.args(arguments).args(["long_session", "--"]);
        run::run(example.arg(&path).args(counts))?;
        Ok((name, path))
    };
    SESSIONS.into_iter().map(write).collect()
}

/// Runs one benchmark or all, and prints each as a table.
///
/// Figures beyond their budget are said, and are no failure: another machine
/// has other figures.
pub(crate) fn measure(
    project: &Project,
    environment: &Environment,
    name: Option<&str>,
) -> Result<()> {
    let chosen: Vec<_> = BENCHES
        .iter()
        .filter(|bench| name.is_none_or(|name| name == bench.name))
        .collect();
    if chosen.is_empty() {
        let known: Vec<_> = BENCHES.iter().map(|bench| bench.name).collect();
        bail!(
            "no benchmark `{}`\nthere is: {}",
            name.unwrap_or_default(),
            known.join(", ")
        );
    }
    let folder = project.target("bench");
    fs::create_dir_all(&folder)?;
    let driver = Driver::build(project)?;
    let sessions = sessions(project, &chosen)?;
    for bench in chosen {
        let figures = folder.join(bench.name).with_extension("json");
        let mut python = match (bench.is_on_cuda(), &driver) {
            (false, _) => environment.python(),
            (true, Some(driver)) if played::CAN_BE_LINKED => {
                python_on_cuda(project, environment, driver)?
            }
            (true, _) => {
                println!("{}: torch for CUDA is for Linux on x86-64", bench.name);
                continue;
            }
        };
        run::run(
            python
                .arg(project.path(bench.script))
                .arg(&figures)
                .envs(driver.iter().flat_map(Driver::variables))
                .envs(sessions.iter().map(|(name, path)| (*name, path)))
                .env("PYTHONPATH", peers(project, environment, bench)?),
        )?;
        println!("{}", table(bench, &read(&figures)?)?);
    }
    Ok(())
}

/// The Python of an environment with the real torch, on a played CUDA.
fn python_on_cuda(project: &Project, main: &Environment, driver: &Driver) -> Result<Command> {
    let cuda = Environment::cuda(project)?;
    cuda.install(project, &wheel::build(project, main, Use::Testing)?)?;
    played::furnish(project, &cuda)?;
    let mut python = cuda.python();
    python.env("LD_LIBRARY_PATH", driver.libraries());
    Ok(python)
}

/// The folder with the peers of a benchmark: empty where they cannot be installed.
///
/// They are kept out of the environment that gpumem is tested in.
fn peers(project: &Project, environment: &Environment, bench: &Bench) -> Result<PathBuf> {
    let folder = project.target("bench").join(bench.name);
    if bench.peers.is_empty() || folder.exists() {
        return Ok(folder);
    }
    let mut install = environment.module("pip");
    install
        .args(["install", "--quiet", "--no-deps", "--target"])
        .arg(&folder)
        .args(bench.peers);
    if let Err(error) = run::run(&mut install) {
        println!("measured without {}: {error:#}", bench.peers.join(", "));
        fs::create_dir_all(&folder)?;
    }
    Ok(folder)
}

fn read(figures: &Path) -> Result<Value> {
    let text =
        fs::read_to_string(figures).with_context(|| format!("reading {}", figures.display()))?;
    serde_json::from_str(&text).with_context(|| format!("reading {}", figures.display()))
}

fn table(bench: &Bench, figures: &Value) -> Result<String> {
    let mut lines = vec![format!("{}, medians", bench.name)];
    for row in bench.rows {
        if row.is_optional && figures[row.key].is_null() {
            continue;
        }
        let figure = figures[row.key]
            .as_f64()
            .with_context(|| format!("{} wrote no number `{}`", bench.script, row.key))?;
        let budget = row.budget.map_or_else(String::new, |budget| {
            let verdict = match figure {
                ..0.0 => "lost in the noise of a busy machine, not held against",
                _ if figure <= budget => "within",
                _ => "beyond",
            };
            format!("   {verdict} the budget of {budget} {}", row.unit)
        });
        let Row { meaning, unit, .. } = row;
        // A share is below one, a count has no fraction; times and sizes are not read to the thousandth.
        let n_decimals = match *unit {
            "" if figure.fract() == 0.0 => 0,
            "" => 3,
            "%" => 2,
            _ => 1,
        };
        lines.push(format!(
            "  {meaning:<34}{figure:>9.n_decimals$} {unit}{budget}"
        ));
    }
    Ok(lines.join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_says_whether_the_budget_is_kept() {
        let check = |added_us: f64, verdict: &str| {
            let figures = serde_json::json!({
                "bare_us": 300.0, "recorded_us": 400.0, "added_us": added_us, "line_us": 500.0,
            });
            let table = table(&BENCHES[0], &figures).expect("complete figures");
            assert!(table.contains(verdict), "{table}");
        };
        check(99.9, "within the budget of 100 µs");
        check(100.1, "beyond the budget of 100 µs");
        check(-3.0, "lost in the noise");
    }

    #[test]
    fn a_table_leaves_out_what_is_not_installed() {
        let rows = BENCHES[3].rows.iter().filter(|row| !row.is_optional);
        let figures: Value = rows
            .map(|row| (row.key.to_owned(), Value::from(1)))
            .collect();
        let table = table(&BENCHES[3], &figures).expect("complete figures");
        assert!(!table.contains("gpu-memory-profiler"), "{table}");
    }

    #[test]
    fn a_missing_figure_is_an_error_that_names_it() {
        let error =
            table(&BENCHES[0], &serde_json::json!({"bare_us": 1.0})).expect_err("incomplete");
        assert!(error.to_string().contains("recorded_us"), "{error}");
    }
}
