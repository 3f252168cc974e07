//! What gpumem costs, measured in one run with its floor.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::project::Project;
use crate::python::Environment;
use crate::run;

/// One benchmark: a script that writes its figures as JSON, and what they may be.
struct Bench {
    name: &'static str,
    script: &'static str,
    rows: &'static [Row],
}

/// One figure of a benchmark.
struct Row {
    key: &'static str,
    meaning: &'static str,
    budget: Option<f64>,
}

const BENCHES: [Bench; 1] = [Bench {
    name: "cell",
    script: "tests/python/bench_cell.py",
    rows: &[
        row("bare_us", "a trivial cell, without gpumem"),
        row("recorded_us", "the same cell, recorded"),
        Row {
            key: "added_us",
            meaning: "added by recording",
            budget: Some(150.0),
        },
        row("line_us", "printing the line after it"),
    ],
}];

const fn row(key: &'static str, meaning: &'static str) -> Row {
    Row {
        key,
        meaning,
        budget: None,
    }
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
    for bench in chosen {
        let figures = folder.join(bench.name).with_extension("json");
        run::run(
            environment
                .python()
                .arg(project.path(bench.script))
                .arg(&figures),
        )?;
        println!("{}", table(bench, &read(&figures)?)?);
    }
    Ok(())
}

fn read(figures: &Path) -> Result<Value> {
    let text =
        fs::read_to_string(figures).with_context(|| format!("reading {}", figures.display()))?;
    serde_json::from_str(&text).with_context(|| format!("reading {}", figures.display()))
}

fn table(bench: &Bench, figures: &Value) -> Result<String> {
    let mut lines = vec![format!("{}, medians", bench.name)];
    for row in bench.rows {
        let figure = figures[row.key]
            .as_f64()
            .with_context(|| format!("{} wrote no number `{}`", bench.script, row.key))?;
        let budget = row.budget.map_or_else(String::new, |budget| {
            let verdict = match figure {
                ..0.0 => "lost in the noise of a busy machine, not held against",
                _ if figure <= budget => "within",
                _ => "beyond",
            };
            format!("   {verdict} the budget of {budget} µs")
        });
        lines.push(format!("  {:<34}{figure:>9.1} µs{budget}", row.meaning));
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
        check(149.9, "within the budget of 150 µs");
        check(150.1, "beyond the budget of 150 µs");
        check(-3.0, "lost in the noise");
    }

    #[test]
    fn a_missing_figure_is_an_error_that_names_it() {
        let error =
            table(&BENCHES[0], &serde_json::json!({"bare_us": 1.0})).expect_err("incomplete");
        assert!(error.to_string().contains("recorded_us"), "{error}");
    }
}
