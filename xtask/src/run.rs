//! Starting other programs, and saying which one failed.

use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};

use anyhow::{Context, Result, bail};

/// A command without the library path that cargo sets for what it runs.
///
/// Cargo puts its build folders on `LD_LIBRARY_PATH` of `xtask`, and so of
/// everything `xtask` starts. A test driver built there would then be found by
/// every Python process as if it were the system's.
pub(crate) fn command(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(program);
    for variable in ["LD_LIBRARY_PATH", "DYLD_FALLBACK_LIBRARY_PATH"] {
        let Some(value) = std::env::var_os(variable) else {
            continue;
        };
        let kept: Vec<_> = std::env::split_paths(&value)
            .filter(|folder| !is_set_by_cargo(folder))
            .collect();
        if kept.is_empty() {
            command.env_remove(variable);
        } else if let Ok(joined) = std::env::join_paths(kept) {
            command.env(variable, joined);
        }
    }
    command
}

fn is_set_by_cargo(folder: &Path) -> bool {
    let parts: Vec<_> = folder.iter().filter_map(OsStr::to_str).collect();
    parts
        .iter()
        .any(|part| matches!(*part, "target" | "rustlib" | "toolchains"))
}

/// Runs to the end with our own output; an exit status other than 0 is an error.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    let status = command.status().with_context(|| start_failed(command))?;
    if !status.success() {
        bail!("{} ended with {status}", line(command));
    }
    Ok(())
}

/// Runs to the end, silent unless it fails, and returns its standard output.
pub(crate) fn output(command: &mut Command) -> Result<String> {
    let output = command
        .stdin(Stdio::null())
        .output()
        .with_context(|| start_failed(command))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        bail!(
            "{} ended with {}\n{}",
            line(command),
            output.status,
            said.trim_end()
        );
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Runs to the end, passing standard output on line by line and keeping a copy.
pub(crate) fn tee(command: &mut Command) -> Result<(ExitStatus, String)> {
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .with_context(|| start_failed(command))?;
    let mut kept = String::new();
    if let Some(stdout) = child.stdout.take() {
        for text in BufReader::new(stdout).split(b'\n') {
            let text = text.with_context(|| format!("reading what {} prints", line(command)))?;
            let text = String::from_utf8_lossy(&text);
            println!("{text}");
            kept.push_str(&text);
            kept.push('\n');
        }
        std::io::stdout().flush()?;
    }
    Ok((child.wait()?, kept))
}

fn start_failed(command: &Command) -> String {
    format!(
        "{} could not be started",
        command.get_program().to_string_lossy()
    )
}

/// The command as one would type it.
fn line(command: &Command) -> String {
    std::iter::once(command.get_program())
        .chain(command.get_args())
        .map(OsStr::to_string_lossy)
        .collect::<Vec<_>>()
        .join(" ")
}
