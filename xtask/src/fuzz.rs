//! Fuzzing every reader with libFuzzer, on the compiler that is there.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::project::Project;
use crate::{run, step};

/// What `cargo fuzz --sanitizer none` builds with; a stable compiler takes these, too.
const FLAGS: [&str; 7] = [
    "--cfg=fuzzing",
    "-Cpasses=sancov-module",
    "-Cllvm-args=-sanitizer-coverage-level=4",
    "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
    "-Cllvm-args=-sanitizer-coverage-pc-table",
    "-Cllvm-args=-sanitizer-coverage-trace-compares",
    "-Ccodegen-units=1",
];

/// Fuzzes one reader or all, each for `seconds`, and prints the number of executions.
///
/// # Errors
///
/// If a reader fails: the error names the file that it failed at.
pub(crate) fn run(project: &Project, reader: Option<&str>, seconds: u32) -> Result<()> {
    let binary = build(project)?;
    let mut n_all = 0;
    for name in readers(project)? {
        if reader.is_some_and(|wanted| wanted != name) {
            continue;
        }
        let n = fuzz(project, &binary, &name, seconds)?;
        println!("{name:<20} {n:>12} executions");
        n_all += n;
    }
    println!("{:<20} {n_all:>12} executions", "all");
    Ok(())
}

fn build(project: &Project) -> Result<PathBuf> {
    let target = project.cargo_target().join("fuzz");
    // With a target, build scripts are built without the flags.
    let version = run::output(run::command("rustc").arg("-vV"))?;
    let host = version.lines().find_map(|line| line.strip_prefix("host: "));
    let host = host.context("rustc names no host")?;
    let mut cargo = run::command("cargo");
    cargo
        .args(["build", "--release", "--locked", "--target", host])
        .arg("--manifest-path")
        .arg(project.path("tests/fuzz/Cargo.toml"))
        .env("CARGO_TARGET_DIR", &target)
        .env("RUSTFLAGS", FLAGS.join(" "));
    run::run(&mut cargo)?;
    Ok(target.join(host).join("release/gpumem-fuzz"))
}

/// The names of the readers: each has a folder in the corpus.
fn readers(project: &Project) -> Result<Vec<String>> {
    let folders = step::entries(&project.path("tests/fuzz/corpus"))?;
    let names = folders.iter().filter_map(|it| it.file_name());
    Ok(names.map(|it| it.to_string_lossy().into_owned()).collect())
}

/// Returns libFuzzer's own count of executions.
fn fuzz(project: &Project, binary: &Path, name: &str, seconds: u32) -> Result<u64> {
    let found = project.target("fuzz-corpus").join(name);
    fs::create_dir_all(&found)?;
    let mut command = Command::new(binary);
    command
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
    let words = match name {
        "snapshot_change" | "snapshot_explorer" => "torch_snapshot",
        name => name,
    };
    let words = project.path(&format!("tests/fuzz/dictionaries/{words}.dict"));
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
