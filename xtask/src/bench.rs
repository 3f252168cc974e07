//! What gpumem costs, measured in one run with its floor.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::project::Project;
use crate::python::Environment;
use crate::{fake_driver, run};

/// One benchmark: a script that writes its figures as JSON, and what they may be.
struct Bench {
    name: &'static str,
    script: &'static str,
    rows: &'static [Row],
    /// What is measured beside gpumem, where it can be installed.
    peers: &'static [&'static str],
}

/// One figure of a benchmark.
struct Row {
    key: &'static str,
    meaning: &'static str,
    unit: &'static str,
    budget: Option<f64>,
    /// It is there only where something else is installed.
    is_optional: bool,
}

const BENCHES: &[Bench] = &[
    Bench {
        name: "cell",
        script: "tests/python/bench_cell.py",
        rows: &[
            row("bare_us", "a trivial cell, without gpumem", "µs"),
            row("recorded_us", "the same cell, recorded", "µs"),
            row("added_us", "added by recording", "µs").within(100.0),
            row("line_us", "printing the line after it", "µs"),
            row("driven_added_us", "added, with CUDA and NVML", "µs")
                .within(100.0)
                .optional(),
            row("driven_line_us", "the line, with CUDA and NVML", "µs").optional(),
        ],
        peers: &[],
    },
    Bench {
        name: "load",
        script: "tests/python/bench_load.py",
        rows: &[
            row("load_ms", "%load_ext gpumem, no driver", "ms"),
            row("no_library_more_ms", "more, a library that is none", "ms")
                .within(50.0)
                .optional(),
            row("broken_more_ms", "more, a driver that does not start", "ms")
                .within(50.0)
                .optional(),
            row("hanging_more_ms", "more, a driver that hangs", "ms")
                .within(50.0)
                .optional(),
            row("working_more_ms", "more, a driver that answers", "ms")
                .within(50.0)
                .optional(),
            row("first_cell_ms", "the first recorded cell, no driver", "ms"),
            row("hanging_cell_more_ms", "more, a driver that hangs", "ms")
                .within(50.0)
                .optional(),
        ],
        peers: &[],
    },
    Bench {
        name: "analyze",
        script: "tests/python/bench_analyze.py",
        rows: &[
            row("classic_1e3_ms", "classic rules, 1e3 results", "ms").within(1.0),
            row("classic_1e4_ms", "classic rules, 1e4 results", "ms"),
            row("classic_1e5_ms", "classic rules, 1e5 results", "ms"),
            row("classic_1e6_ms", "classic rules, 1e6 results", "ms").within(300.0),
            row("extra_mib", "memory beyond those results", "MiB").within(150.0),
            row("evidence_1e6_ms", "evidence, a series of 1e6 levels", "ms").within(150.0),
            row("peer_1e5_ms", "gpu-memory-profiler, 1e5 results", "ms").optional(),
            row("peer_1e5_ratio", "its time over ours", "×").optional(),
        ],
        peers: &["gpu-memory-profiler==0.2.3.post1", "numpy", "scipy"],
    },
    Bench {
        name: "trace",
        script: "tests/python/bench_trace.py",
        rows: &[
            row("plain_us", "a simulated allocation and its free", "µs"),
            row("traced_us", "the same, traced ten calls deep", "µs"),
            row("added_us", "added by tracing", "µs"),
            row("read_1e5_ms", "reading 1e5 events at a run's end", "ms").within(1000.0),
        ],
        peers: &[],
    },
    Bench {
        name: "sampler",
        script: "tests/python/bench_sampler.py",
        rows: &[
            row("core_percent", "share of a core in a run", "%").within(1.0),
            row("samples_per_second", "at so many samples", "/s"),
            row("slowdown_percent", "slowdown of a Python loop", "%").within(0.5),
            row(
                "slowdown_noise_percent",
                "give or take, on this machine now",
                "%",
            ),
            row("loop_core_percent", "the loop's own time on a core", "%").within(0.5),
            row("driven_core_percent", "share, with CUDA and NVML", "%")
                .within(1.0)
                .optional(),
            row(
                "driven_slowdown_percent",
                "slowdown, with CUDA and NVML",
                "%",
            )
            .within(0.5)
            .optional(),
            row(
                "driven_slowdown_noise_percent",
                "give or take, on this machine now",
                "%",
            )
            .optional(),
            row("idle_core_percent", "share of a core between runs", "%").within(0.0),
            row("idle_wakings", "woken between runs", "times").within(0.0),
            row("idle_mib", "memory that resting takes", "MiB").within(0.0),
            row("spikes_seen", "of 100 spikes of 20 ms seen", ""),
            row("readings_of_a_day", "readings in a run of 24 h", ""),
            row("points_of_a_day", "points that are kept of them", "").within(512.0),
            row("recorder_mib", "memory of 10,000 cells, 1e6 marks", "MiB").within(128.0),
        ],
        peers: &[],
    },
    Bench {
        name: "holders",
        script: "tests/python/bench_holders.py",
        rows: &[
            row("ms_1e4", "found among 1e4 live objects", "ms"),
            row("ms_1e5", "found among 1e5 live objects", "ms"),
            row("ms_1e6", "found among 1e6 live objects", "ms"),
            row("collect_ms_1e6", "gc.collect() of those", "ms"),
            row("budget_share_1e6", "of 250 ms, or of 3 collections", "%").within(100.0),
            row("by_hand_ms_1e6", "isinstance and get_referrers", "ms"),
            row("by_hand_ratio_1e6", "its time over ours", "×"),
            row("unnamed_percent", "of the planted bytes not named", "%").within(1.0),
            row("told_ms_1e6", "asked and told, 1e6 nodes of a graph", "ms"),
            row("end_ms", "a run's end where nothing grew, 1e6", "ms").within(2.0),
            row("grown_end_ms", "a run that grew, 1e6 live objects", "ms"),
            row("oom_ms", "an out-of-memory error, caught, 1e6", "ms").within(250.0),
        ],
        peers: &[],
    },
    Bench {
        name: "widget",
        script: "tests/browser/bench_widget.py",
        rows: &[
            row("first_paint_ms", "first paint of 1e6 samples", "ms").within(150.0),
            row(
                "zoom_frame_ms",
                "script of a frame of zooming in them, p95",
                "ms",
            )
            .within(8.0),
            row("pan_frame_ms", "the same, panning", "ms").within(8.0),
            row("slider_ms", "a threshold moved, 10,000 runs judged", "ms").within(100.0),
            row("rerun_kb", "left in the page by a re-run of the cell", "kB").within(50.0),
            row("module_kb", "the module, packed", "kB").within(250.0),
            row("picture_kb", "a saved report's picture", "kB").within(90.0),
            row("state_kb", "its state", "kB").within(20.0),
        ],
        peers: &[],
    },
    Bench {
        name: "leaks",
        script: "tests/python/bench_leaks.py",
        rows: &[
            row("leak_precision", "leak, nine runs and more: precision", ""),
            row("leak_recall", "recall", ""),
            row("leak_f1", "F1", ""),
            row("leak_false_positive_rate", "false-positive rate", ""),
            row("leak_or_watch_precision", "leak or watch: precision", ""),
            row("leak_or_watch_recall", "recall", ""),
            row("leak_or_watch_f1", "F1", ""),
            row(
                "leak_or_watch_false_positive_rate",
                "false-positive rate",
                "",
            ),
        ],
        peers: &[],
    },
];

const fn row(key: &'static str, meaning: &'static str, unit: &'static str) -> Row {
    Row {
        key,
        meaning,
        unit,
        budget: None,
        is_optional: false,
    }
}

impl Row {
    const fn within(self, budget: f64) -> Self {
        Self {
            budget: Some(budget),
            ..self
        }
    }

    const fn optional(self) -> Self {
        Self {
            is_optional: true,
            ..self
        }
    }
}

/// Sessions longer than a recorder keeps, for the report to show: by the name of
/// the variable that tells where, how many runs and how many samples.
const SESSIONS: [(&str, &str, &str); 3] = [
    ("GPUMEM_MILLION", "1000", "1000000"),
    ("GPUMEM_MANY_RUNS", "10000", "20000"),
    ("GPUMEM_USUAL", "60", "3000"),
];

/// Writes them, where the report is to be measured.
fn sessions(project: &Project, chosen: &[&Bench]) -> Result<Vec<(&'static str, PathBuf)>> {
    if !chosen.iter().any(|bench| bench.name == "widget") {
        return Ok(Vec::new());
    }
    let folder = project.target("bench");
    let write = |(name, n_runs, n_samples): (&'static str, &str, &str)| {
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
        run::run(example.arg(&path).args([n_runs, n_samples]))?;
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
    let driver = fake_driver::build(project)?;
    let sessions = sessions(project, &chosen)?;
    for bench in chosen {
        let figures = folder.join(bench.name).with_extension("json");
        run::run(
            environment
                .python()
                .arg(project.path(bench.script))
                .arg(&figures)
                .envs(driver.iter().map(|it| ("GPUMEM_FAKE_DRIVER", it)))
                .envs(sessions.iter().map(|(name, path)| (*name, path)))
                .env("PYTHONPATH", peers(project, environment, bench)?),
        )?;
        println!("{}", table(bench, &read(&figures)?)?);
    }
    Ok(())
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
        let rows = BENCHES[2].rows.iter().filter(|row| !row.is_optional);
        let figures: Value = rows
            .map(|row| (row.key.to_owned(), Value::from(1)))
            .collect();
        let table = table(&BENCHES[2], &figures).expect("complete figures");
        assert!(!table.contains("gpu-memory-profiler"), "{table}");
    }

    #[test]
    fn a_missing_figure_is_an_error_that_names_it() {
        let error =
            table(&BENCHES[0], &serde_json::json!({"bare_us": 1.0})).expect_err("incomplete");
        assert!(error.to_string().contains("recorded_us"), "{error}");
    }
}
