//! Fuzzing every reader with libFuzzer, on the compiler that is there.

use std::fs;
use std::process::Stdio;

use anyhow::{Context, Result, bail, ensure};

use crate::project::Project;
use crate::{run, step};

/// Fuzzes one reader or all, each for `seconds`, and prints the number of executions.
///
/// # Errors
///
/// If a reader fails: the error names the file that it failed at.
pub(crate) fn run(project: &Project, reader: Option<&str>, seconds: u32) -> Result<()> {
    let mut readers = readers(project)?;
    if let Some(wanted) = reader {
        let known = readers.join(", ");
        readers.retain(|name| name == wanted);
        ensure!(
            !readers.is_empty(),
            "no reader `{wanted}`\nthere is: {known}"
        );
    }
    let mut n_all = 0;
    for name in readers {
        let n = fuzz(project, &name, seconds)?;
        println!("{name:<20} {n:>12} executions");
        n_all += n;
    }
    println!("{:<20} {n_all:>12} executions", "all");
    Ok(())
}

/// The names of the readers: each has a folder in the corpus.
fn readers(project: &Project) -> Result<Vec<String>> {
    let folders = step::entries(&project.path("tests/fuzz/corpus"))?;
    let names = folders.iter().filter_map(|it| it.file_name());
    Ok(names.map(|it| it.to_string_lossy().into_owned()).collect())
}

/// Returns libFuzzer's own count of executions.
fn fuzz(project: &Project, name: &str, seconds: u32) -> Result<u64> {
    let found = project.target("fuzz-corpus").join(name);
    fs::create_dir_all(&found)?;
    let mut command = run::command("cargo");
    command
        .args(["run", "--release", "--locked", "--quiet", "--"])
        // How it is built is said there, in `.cargo/config.toml`.
        .current_dir(project.path("tests/fuzz"))
        .env_remove("RUSTFLAGS")
        .env("CARGO_TARGET_DIR", project.cargo_target().join("fuzz"))
        .env("READER", name)
        .arg(&found)
        .arg(project.path("tests/fuzz/corpus").join(name))
        .args(["-timeout=5", "-print_final_stats=1"])
        .args(["-verbosity=0", "-max_len=4096"])
        .arg(format!("-max_total_time={seconds}"))
        .arg(format!(
            "-artifact_prefix={}/failed-{name}-",
            found.parent().unwrap_or(&found).display()
        ))
        .stdin(Stdio::null());
    let words = project.path(&format!("tests/fuzz/dictionaries/{name}.dict"));
    if words.is_file() {
        command.arg(format!("-dict={}", words.display()));
    }
    let output = command
        .output()
        .with_context(|| format!("{name} does not start"))?;
    let said = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() {
        bail!("{name} failed:\n{said}");
    }
    let count = said
        .lines()
        .find_map(|line| line.strip_prefix("stat::number_of_executed_units:"));
    let count = count.context("libFuzzer printed no statistics")?;
    Ok(count.trim().parse()?)
}
