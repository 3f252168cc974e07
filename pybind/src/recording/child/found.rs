//! The files of a session's children: their names, what they hold, which have to go.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, Metadata, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use gpumem_jobs::processes::{ChildProcess, Exit};
use gpumem_model::units::{Bytes, Nanos};

use crate::recording::store::{self, EXTENSION, short_id};
use gpumem_base::files;

/// Extension of the folder of a session's children; its stem is a short form of the session's id.
const FOLDER: &str = "processes";
/// Extension of a file beside the child's: its exit status, as its parent saw it.
const EXIT: &str = "exit";
/// Extension of a file beside the child's: what the parent read of its GPU use, one line per reading.
const DEVICE: &str = "device";
/// The most bytes of a `device` file.
const MAX_DEVICE_BYTES: u64 = 1 << 18;
/// Exit status of a child that somebody else has waited for.
const UNKNOWN: &str = "?";
/// The most children that a session keeps: the latest.
const MAX_CHILDREN: usize = 256;
/// The most bytes that a child writes.
const MAX_BYTES: u64 = 32 << 20;
/// Timeout for reading all children of a session.
const MAX_TIME: Duration = Duration::from_secs(10);

/// The folder of a session's children, beside its file.
pub(crate) fn folder(sessions: &Path, session: &str) -> PathBuf {
    sessions.join(format!("{}.{FOLDER}", short_id(session)))
}

/// `4123-1795404830.gpumem`: the process and when it began.
pub(super) fn file(folder: &Path, pid: u32, began: Nanos) -> PathBuf {
    folder.join(format!("{pid}-{}.{EXTENSION}", began.get()))
}

/// The process of a child's file; `None` if the name is not exactly that of one.
pub(super) fn pid(file: &Path) -> Option<u32> {
    let name = file.file_name()?.to_str()?;
    let stem = name.strip_suffix(EXTENSION)?.strip_suffix('.')?;
    let (pid, began) = stem.split_once('-')?;
    let (pid, began): (u32, u64) = (pid.parse().ok()?, began.parse().ok()?);
    (format!("{pid}-{began}.{EXTENSION}") == name).then_some(pid)
}

/// The children that are kept in a folder.
pub(crate) fn found(folder: &Path) -> Vec<ChildProcess> {
    let began = Instant::now();
    files(folder)
        .iter()
        .take(MAX_CHILDREN)
        .take_while(|_| began.elapsed() < MAX_TIME)
        .filter_map(|path| child(path))
        .collect()
}

/// Deletes the oldest children if there is no room for another.
pub(super) fn make_room(folder: &Path) {
    let files = files(folder);
    if files.len() < MAX_CHILDREN || !is_deletable(folder) {
        return;
    }
    let written = |path: &PathBuf| {
        let written = fs::symlink_metadata(path).and_then(|it| it.modified());
        written.unwrap_or(SystemTime::UNIX_EPOCH)
    };
    let mut files: Vec<_> = files.into_iter().map(|it| (written(&it), it)).collect();
    files.sort();
    let n_doomed = files.len() + 1 - MAX_CHILDREN;
    for (_, path) in files.into_iter().take(n_doomed) {
        delete_child(&path);
    }
}

/// Deletes the children of a session that is deleted.
pub(crate) fn delete(sessions: &Path, session: &str) {
    delete_folder(&folder(sessions, session));
}

/// Deletes the children of sessions that are not kept any more: those of `kept` are.
pub(crate) fn prune(sessions: &Path, kept: &BTreeSet<String>) {
    for path in store::names(sessions) {
        let is_kept = session(&path).is_none_or(|id| kept.contains(id));
        // The session's first run may not be on the disk yet.
        if !is_kept && !found(&path).iter().any(|child| child.is_running) {
            delete_folder(&path);
        }
    }
}

/// The session of a folder of children; `None` if its name is not exactly that of one.
fn session(folder: &Path) -> Option<&str> {
    let name = folder.file_name()?.to_str()?;
    store::hex(name.strip_suffix(FOLDER)?.strip_suffix('.')?)
}

/// What is in it is deleted file by file, and the folder if nothing else is left.
fn delete_folder(folder: &Path) {
    if is_deletable(folder) {
        for path in files(folder) {
            delete_child(&path);
        }
        store::delete_unfinished(folder);
        store::delete_empty(folder);
    }
}

/// A folder of children that gpumem made for this user, and no link to one.
fn is_deletable(folder: &Path) -> bool {
    session(folder).is_some() && store::is_own(folder, Metadata::is_dir) && store::is_marked(folder)
}

/// Deletes a child of this session, and what was noted of it. That another process has done so is no failure.
fn delete_child(path: &Path) {
    let id = path.parent().and_then(session);
    let (Some(pid), Some(id)) = (pid(path), id) else {
        return;
    };
    let is_own = |of: &str| of.starts_with(id) && of.ends_with(&format!("-{pid}"));
    if store::is_own_file(path, |header| is_own(&header.session)) {
        for noted in [path.with_extension(EXIT), path.with_extension(DEVICE)] {
            if store::is_own(&noted, Metadata::is_file) && is_note(&noted) {
                drop(fs::remove_file(noted));
            }
        }
        drop(fs::remove_file(path));
    }
}

/// Each line is two numbers, of which the first may be unknown.
fn is_note(path: &Path) -> bool {
    let is_number = |text: &str| text == UNKNOWN || text.parse::<i64>().is_ok();
    read_note(path).is_some_and(|text| {
        let mut lines = text.lines();
        lines.all(|line| {
            line.split_once(' ')
                .is_some_and(|(a, b)| is_number(a) && is_number(b))
        })
    })
}

fn read_note(path: &Path) -> Option<String> {
    // The last line may be longer than the room for it.
    let text = files::read_own(path, MAX_DEVICE_BYTES + 64).ok()?;
    String::from_utf8(text).ok()
}

/// The files of children, in the order of their names.
pub(super) fn files(folder: &Path) -> Vec<PathBuf> {
    let is_child = |path: &PathBuf| pid(path).is_some();
    let mut files: Vec<PathBuf> = store::names(folder).filter(is_child).collect();
    files.sort();
    files
}

/// Notes when a child ended, and how if that is known: the exit code or, as a negative number, the signal.
/// A failure to write is ignored.
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
        let known = pid(&path).and_then(|pid| codes.iter().find(|(of, _)| *of == pid));
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
    let words = read_note(&file.with_extension(EXIT))?;
    let (code, at) = words.trim().split_once(' ')?;
    Some(Exit {
        code: (code != UNKNOWN).then(|| code.parse()).transpose().ok()?,
        at: Nanos::new(at.parse().ok()?),
    })
}

/// Adds what children use of GPUs now, by their process ids. What cannot be written is not known.
pub(crate) fn note_device_used(folder: &Path, used: &BTreeMap<u32, Bytes>, now: Nanos) {
    for path in files(folder) {
        let used = pid(&path).and_then(|pid| used.get(&pid));
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
    let text = read_note(&file.with_extension(DEVICE)).unwrap_or_default();
    let noted = text.lines().filter_map(|line| {
        let (at, used) = line.split_once(' ')?;
        Some((Nanos::new(at.parse().ok()?), Bytes::new(used.parse().ok()?)))
    });
    noted.collect()
}

fn child(path: &Path) -> Option<ChildProcess> {
    let recording = store::read(path, MAX_BYTES).ok()?.recording;
    let facts = recording.header().process.iter().cloned().collect();
    let exit = noted(path);
    let ended = exit.is_some() || recording.finish().is_some();
    Some(ChildProcess {
        is_running: !ended && store::is_process_running(path, &facts) == Some(true),
        was_killed: store::process_was_killed(&facts),
        exit,
        device_used: device_used(path),
        recording,
    })
}
