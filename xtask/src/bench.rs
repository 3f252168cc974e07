//! What gpumem costs, measured in one run with its floor.
//!
//! `xtask/benches.json` lists the benchmarks. Each is a script that writes its figures as JSON.

use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde::Deserialize;
use serde_json::Value;

use crate::played::{self, PlayedDriver};
use crate::project::Project;
use crate::python::Environment;
use crate::wheel::WheelPurpose;
use crate::{run, wheel};

/// One benchmark: a script, what its figures mean, and what is measured beside gpumem if it can be
/// installed.
#[derive(Deserialize)]
struct Bench {
    script: String,
    rows: Vec<BenchRow>,
    #[serde(default)]
    peers: Vec<String>,
}

/// The key of a figure, its meaning, its unit, and its budget. A key that ends in `?` may be missing:
/// something else is not installed.
#[derive(Deserialize)]
struct BenchRow(String, String, String, #[serde(default)] Option<f64>);

/// Runs one benchmark or all, and prints each as a table.
///
/// Figures beyond their budget are no failure: another machine has other figures.
pub(crate) fn measure(project: &Project, name: Option<&str>) -> Result<()> {
    let catalogue = fs::read_to_string(project.path("xtask/benches.json"))?;
    let mut benches: BTreeMap<String, Bench> = serde_json::from_str(&catalogue)?;
    if let Some(name) = name {
        let known = benches.keys().cloned().collect::<Vec<_>>().join(", ");
        benches.retain(|it, _| it == name);
        if benches.is_empty() {
            bail!("no benchmark `{name}`\nthere is: {known}");
        }
    }
    let environment = wheel::install(project, WheelPurpose::Measure)?;
    let driver = PlayedDriver::build(project)?;
    for (name, bench) in &benches {
        let figures = project.target("bench").join(name).with_extension("json");
        let peers = peers(project, &environment, name, bench)?;
        let is_on_cuda = bench.script.starts_with("tests/cuda/");
        let mut python = match (is_on_cuda, &driver) {
            (false, _) => environment.python(),
            (true, Some(driver)) if played::CAN_BE_LINKED => python_on_cuda(project, driver)?,
            (true, _) => {
                println!("{name}: torch for CUDA is for Linux on x86-64");
                continue;
            }
        };
        python
            .arg(project.path(&bench.script))
            .arg(&figures)
            // It opens the gates in the extension through which scripts order failures.
            .env("GPUMEM_TESTING", "1")
            .envs(driver.iter().flat_map(PlayedDriver::variables))
            .env(
                "PYTHONPATH",
                env::join_paths([peers.as_path(), project.root()])?,
            );
        if bench.script.starts_with("tests/browser/") {
            python.envs(sessions(project)?);
        }
        run::run(&mut python)?;
        let text = fs::read_to_string(&figures)
            .with_context(|| format!("reading {}", figures.display()))?;
        println!("{}", table(name, bench, &serde_json::from_str(&text)?)?);
    }
    Ok(())
}

/// Sessions longer than a recorder keeps, for the report to show: by the name of
/// the variable that tells where, how many runs, samples and cells.
const SESSIONS: [(&str, [&str; 3]); 4] = [
    ("GPUMEM_MILLION", ["1000", "1000000", "40"]),
    ("GPUMEM_MANY_RUNS", ["10000", "20000", "40"]),
    ("GPUMEM_MANY_CELLS", ["10000", "20000", "500"]),
    ("GPUMEM_USUAL", ["60", "3000", "40"]),
];

fn sessions(project: &Project) -> Result<Vec<(&'static str, PathBuf)>> {
    let write = |(name, counts): (&'static str, [&str; 3])| {
        let file = format!("bench/{}.recording", name.to_lowercase());
        let path = project.target(&file);
        let mut example = project.cargo("run");
        example
            .args(["--quiet", "--locked", "--package", "gpumem-wire"])
            .args(["--example", "long_session", "--"]);
        run::run(example.arg(&path).args(counts))?;
        Ok((name, path))
    };
    SESSIONS.into_iter().map(write).collect()
}

/// The Python of an environment with the real torch, on a played CUDA.
fn python_on_cuda(project: &Project, driver: &PlayedDriver) -> Result<Command> {
    let cuda = Environment::with(project, "cuda")?;
    cuda.install(project, &wheel::build(project, WheelPurpose::Measure)?)?;
    driver.furnish(project, &cuda)?;
    let mut python = cuda.python();
    python.env("LD_LIBRARY_PATH", driver.libraries());
    Ok(python)
}

/// The folder with the peers of a benchmark: empty if they cannot be installed.
///
/// They are kept out of the environment that gpumem is tested in.
fn peers(
    project: &Project,
    environment: &Environment,
    name: &str,
    bench: &Bench,
) -> Result<PathBuf> {
    let folder = project.target("bench").join(name);
    if folder.exists() {
        return Ok(folder);
    }
    fs::create_dir_all(&folder)?;
    if !bench.peers.is_empty() {
        let mut pip = environment.module("pip");
        pip.args(["install", "--quiet", "--no-deps", "--target"])
            .arg(&folder)
            .args(&bench.peers);
        if let Err(error) = run::run(&mut pip) {
            println!("measured without {}: {error:#}", bench.peers.join(", "));
        }
    }
    Ok(folder)
}

fn table(name: &str, bench: &Bench, figures: &Value) -> Result<String> {
    let mut lines = vec![format!("{name}, medians")];
    for BenchRow(key, meaning, unit, budget) in &bench.rows {
        let optional = key.strip_suffix('?');
        let (key, is_optional) = (optional.unwrap_or(key), optional.is_some());
        if is_optional && figures[key].is_null() {
            continue;
        }
        let figure = figures[key]
            .as_f64()
            .with_context(|| format!("{} wrote no number `{key}`", bench.script))?;
        let budget = budget.map_or_else(String::new, |budget| {
            let verdict = match figure {
                ..0.0 => "lost in the noise of a busy machine, not held against",
                _ if figure <= budget => "within",
                _ => "beyond",
            };
            format!("   {verdict} the budget of {budget} {unit}")
        });
        // A share is below one, a count has no fraction; times and sizes are not read to the thousandth.
        let n_decimals = match unit.as_str() {
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

    fn check(figures: &str, expected: &str) {
        let bench: Bench = serde_json::from_str(
            r#"{"script": "x.py", "rows": [["a", "added", "µs", 100], ["b?", "more", ""]]}"#,
        )
        .expect("it is a benchmark");
        let figures = serde_json::from_str(figures).expect("they are JSON");
        let table = table("x", &bench, &figures);
        let text = table.unwrap_or_else(|error| error.to_string());
        assert!(text.ends_with(expected), "{text}");
    }

    #[test]
    fn a_table_says_whether_the_budget_is_kept() {
        check(r#"{"a": 99.9}"#, "99.9 µs   within the budget of 100 µs");
        check(r#"{"a": 100.1}"#, "100.1 µs   beyond the budget of 100 µs");
        check(r#"{"a": -3, "b": 2}"#, "2 ");
        check(r#"{"b": 2}"#, "x.py wrote no number `a`");
    }
}
