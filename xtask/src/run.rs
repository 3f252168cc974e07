//! Starting other programs, and saying which one failed.

use std::cell::RefCell;
use std::ffi::OsStr;
use std::io::{BufRead, BufReader};
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
        if let Some(value) = std::env::var_os(variable) {
            let kept = std::env::split_paths(&value).filter(|folder| !is_set_by_cargo(folder));
            command.env(variable, std::env::join_paths(kept).unwrap_or_default());
        }
    }
    command
}

fn is_set_by_cargo(folder: &Path) -> bool {
    let is_cargos = |part: &OsStr| {
        ["target", "rustlib", "toolchains"]
            .iter()
            .any(|it| part == *it)
    };
    folder.iter().any(is_cargos)
}

thread_local! {
    /// What this thread's programs print, if it is kept for later.
    static KEPT: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Runs `body` and returns what it and its programs print, so that it does not mix with what another
/// thread prints.
pub(crate) fn keeping<T>(body: impl FnOnce() -> T) -> (T, String) {
    KEPT.set(Some(String::new()));
    let outcome = body();
    (outcome, KEPT.take().unwrap_or_default())
}

fn is_kept() -> bool {
    KEPT.with_borrow(Option::is_some)
}

/// Prints a line, or keeps it.
pub(crate) fn say(line: &str) {
    KEPT.with_borrow_mut(|kept| match kept {
        Some(text) => text.extend([line, "\n"]),
        None => println!("{line}"),
    });
}

/// Runs to the end with our own output; an exit status other than 0 is an error.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    let status = if is_kept() {
        tee(command)?.0
    } else {
        command.status().with_context(|| start_failed(command))?
    };
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
        let (line, said) = (line(command), said.trim_end());
        bail!("{line} ended with {}\n{said}", output.status);
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Runs to the end, passing output on line by line and keeping a copy.
pub(crate) fn tee(command: &mut Command) -> Result<(ExitStatus, String)> {
    let (reader, writer) = std::io::pipe()?;
    if is_kept() {
        command.stderr(writer.try_clone()?);
    }
    command.stdin(Stdio::null()).stdout(writer);
    let mut child = command.spawn().with_context(|| start_failed(command))?;
    // The command has ends of the pipe, too: with them, reading would never end.
    command.stdout(Stdio::inherit()).stderr(Stdio::inherit());
    let mut copy = String::new();
    for text in BufReader::new(reader).split(b'\n') {
        let text = text.with_context(|| format!("reading what {} prints", line(command)))?;
        let text = String::from_utf8_lossy(&text);
        say(&text);
        copy.extend([&*text, "\n"]);
    }
    Ok((child.wait()?, copy))
}

fn start_failed(command: &Command) -> String {
    let program = command.get_program().to_string_lossy();
    format!("{program} could not be started")
}

/// The command as one would type it.
fn line(command: &Command) -> String {
    std::iter::once(command.get_program())
        .chain(command.get_args())
        .map(OsStr::to_string_lossy)
        .collect::<Vec<_>>()
        .join(" ")
}
