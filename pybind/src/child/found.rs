//! The files of a session's children: their names, what they hold, which have to go.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use gpumem_core::format;
use gpumem_core::processes::{Child, Exit};
use gpumem_core::units::{Bytes, Nanos};

use crate::store;

/// Of the folder of a session's children, behind the beginning of the session's id.
const FOLDER: &str = "processes";
const EXTENSION: &str = "gpumem";
/// Of what a parent saw of a child's end, beside the child's file.
const EXIT: &str = "exit";
/// Of what the driver told a parent of a child's use of GPUs, beside the child's file: a line each time.
const DEVICE: &str = "device";
/// No more is noted of a child.
const MAX_DEVICE_BYTES: u64 = 1 << 18;
/// Somebody else has waited for the child.
const UNKNOWN: &str = "?";
/// A session keeps at most so many children, the latest.
const MAX_CHILDREN: usize = 256;
/// As much as a child can have written.
const MAX_BYTES: u64 = 32 << 20;

/// The folder of a session's children, beside its file.
pub(crate) fn folder(sessions: &Path, session: &str) -> PathBuf {
    let id: String = session.chars().take(8).collect();
    sessions.join(format!("{id}.{FOLDER}"))
}

/// `4123-1795404830.gpumem`: the process and when it began.
pub(super) fn file(folder: &Path, pid: u32, began: Nanos) -> PathBuf {
    folder.join(format!("{pid}-{}.{EXTENSION}", began.get()))
}

/// The process of a child's file.
pub(super) fn pid(name: &str) -> Option<u32> {
    let stem = name.strip_suffix(&format!(".{EXTENSION}"))?;
    stem.split_once('-')?.0.parse().ok()
}

/// The children that are kept in a folder.
pub(crate) fn found(folder: &Path) -> Vec<Child> {
    files(folder)
        .iter()
        .filter_map(|path| child(path))
        .collect()
}

/// Deletes the oldest children if there is no room for another.
pub(super) fn make_room(folder: &Path) {
    let files = files(folder);
    if files.len() < MAX_CHILDREN {
        return;
    }
    let written = |path: &PathBuf| {
        let written = fs::metadata(path).and_then(|it| it.modified());
        written.unwrap_or(SystemTime::UNIX_EPOCH)
    };
    let mut files: Vec<_> = files.into_iter().map(|it| (written(&it), it)).collect();
    files.sort();
    let n_doomed = files.len() + 1 - MAX_CHILDREN;
    for (_, path) in files.into_iter().take(n_doomed) {
        // Another child may have done so.
        drop(fs::remove_file(path.with_extension(EXIT)));
        drop(fs::remove_file(path.with_extension(DEVICE)));
        drop(fs::remove_file(path));
    }
}

/// Deletes the children of a session that is deleted.
pub(crate) fn delete(sessions: &Path, session: &str) {
    drop(fs::remove_dir_all(folder(sessions, session)));
}

/// Deletes the children of sessions that are not kept any more: those of `kept` are.
pub(crate) fn prune(sessions: &Path, kept: &BTreeSet<String>) {
    let entries = fs::read_dir(sessions).into_iter().flatten().flatten();
    for path in entries.map(|entry| entry.path()) {
        let is_ours = path.extension().is_some_and(|it| it == FOLDER);
        let session = path.file_stem().map(|it| it.to_string_lossy().into_owned());
        let is_kept = session.is_none_or(|session| kept.contains(&session));
        if is_ours && !is_kept && !is_in_use(&path) {
            drop(fs::remove_dir_all(path));
        }
    }
}

/// The session's first run is not on the disk yet.
fn is_in_use(folder: &Path) -> bool {
    found(folder).iter().any(|child| child.is_running)
}

pub(super) fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let paths = entries.map(|entry| entry.path());
    paths
        .filter(|path| path.extension().is_some_and(|it| it == EXTENSION))
        .collect()
}

/// Notes when a child ended, and how if that is known: the exit code or, as a negative number, the signal.
/// If it cannot be written, nobody knows.
pub(super) fn note(file: &Path, at: Nanos, code: Option<i32>) {
    let code = code.map_or_else(|| UNKNOWN.to_owned(), |code| code.to_string());
    drop(fs::write(
        file.with_extension(EXIT),
        format!("{code} {}\n", at.get()),
    ));
}

/// Adds how children ended, by their process ids, as Python knows it who waited for them. Until the
/// watcher says when, it was by now.
pub(crate) fn note_codes(folder: &Path, codes: &[(u32, i32)], now: Nanos) {
    for path in files(folder) {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let known = pid(&name).and_then(|pid| codes.iter().find(|(of, _)| *of == pid));
        if let Some((_, code)) = known {
            match noted(&path) {
                None => note(&path, now, Some(*code)),
                Some(Exit { at, code: None }) => note(&path, at, Some(*code)),
                Some(_) => {}
            }
        }
    }
}

pub(super) fn noted(file: &Path) -> Option<Exit> {
    let words = fs::read_to_string(file.with_extension(EXIT)).ok()?;
    let (code, at) = words.trim().split_once(' ')?;
    Some(Exit {
        code: (code != UNKNOWN).then(|| code.parse()).transpose().ok()?,
        at: Nanos::new(at.parse().ok()?),
    })
}

/// Adds what children use of GPUs now, by their process ids. What cannot be written is not known.
pub(crate) fn note_device_used(folder: &Path, used: &BTreeMap<u32, Bytes>, now: Nanos) {
    for path in files(folder) {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let used = pid(&name).and_then(|pid| used.get(&pid));
        // An id may be that of an earlier child, too.
        if let Some(used) = used
            && noted(&path).is_none()
        {
            drop(add_device_used(&path, *used, now));
        }
    }
}

fn add_device_used(file: &Path, used: Bytes, now: Nanos) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.append(true).create(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut noted = options.open(file.with_extension(DEVICE))?;
    if noted.metadata()?.len() < MAX_DEVICE_BYTES {
        noted.write_all(format!("{} {}\n", now.get(), used.get()).as_bytes())?;
    }
    Ok(())
}

fn device_used(file: &Path) -> Vec<(Nanos, Bytes)> {
    let text = fs::read_to_string(file.with_extension(DEVICE)).unwrap_or_default();
    let noted = text.lines().filter_map(|line| {
        let (at, used) = line.split_once(' ')?;
        Some((Nanos::new(at.parse().ok()?), Bytes::new(used.parse().ok()?)))
    });
    noted.collect()
}

fn child(path: &Path) -> Option<Child> {
    if fs::metadata(path).ok()?.len() > MAX_BYTES {
        return None;
    }
    let recording = format::decode(&fs::read(path).ok()?).ok()?;
    let facts = recording.header().process.iter().cloned().collect();
    let exit = noted(path);
    let ended = exit.is_some() || recording.finish().is_some();
    Some(Child {
        is_running: !ended && store::is_process_running(path, &facts),
        was_killed: store::process_was_killed(&facts),
        exit,
        device_used: device_used(path),
        recording,
    })
}
