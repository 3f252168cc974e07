//! The folder of the sessions: names of files, who may read them, what may be deleted.
//!
//! Only what gpumem wrote is ever deleted: a regular file of this user with exactly such a name, whose header
//! says the same as its name, in a folder that carries the marker. A folder gets the marker if gpumem makes it,
//! or finds it empty: in one that has files of somebody else nothing is deleted.

use std::cmp::Reverse;
use std::fs::{self, Metadata};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use gpumem_model::recording::Header;
use gpumem_model::source_text;
use gpumem_model::units::Nanos;

use super::file::{self, facts_of};
use super::origin::KEPT;
use super::owner;
use crate::recording::child;
use gpumem_base::errors::system_message;
use gpumem_base::files;
use gpumem_machine::processes::data_dir;

/// The file extension of sessions.
pub(crate) const EXTENSION: &str = "gpumem";
/// The marker of a folder in which old sessions are deleted.
pub(crate) const MARKER: &str = ".gpumem-folder";
const MARKED: &[u8] =
    b"gpumem keeps recordings in this folder and deletes the oldest of them, and nothing else.\n";
/// The most names that are read from a folder.
const MAX_NAMES: usize = 100_000;

/// The default folder of sessions.
pub(super) fn usual() -> Option<PathBuf> {
    Some(data_dir()?.join("gpumem"))
}

/// The file of a session in its folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SessionFile {
    pub(super) path: PathBuf,
    /// When it began, in milliseconds since 1970.
    pub(super) started: u64,
    /// The first eight characters of the session's id.
    pub(super) id: String,
    /// A short hash of its notebook's path.
    pub(super) notebook: String,
    /// Counts the files of one session: the first was lost.
    pub(super) nth: u32,
}

impl SessionFile {
    /// `1795404830123-3f9a1c2b-91ac02de.gpumem`: the name identifies the notebook.
    /// `…-91ac02de-2.gpumem` if the first file was lost.
    pub(super) fn new(
        folder: &Path,
        started: Nanos,
        session: &str,
        notebook: Option<&str>,
        nth: u32,
    ) -> Self {
        let started = started.get() / Nanos::millis(1).get();
        let id = short_id(session);
        let notebook = notebook_hash(notebook);
        Self {
            path: folder.join(name_of(started, &id, &notebook, nth)),
            started,
            id,
            notebook,
            nth,
        }
    }

    /// The name of a session whose file may have been renamed.
    pub(super) fn named(path: &Path, session: &str) -> Self {
        Self::from_path(path).unwrap_or_else(|| Self {
            path: path.to_owned(),
            started: 0,
            id: short_id(session),
            notebook: String::new(),
            nth: 1,
        })
    }

    /// `None` if the name is not exactly one that a session has.
    pub(super) fn from_path(path: &Path) -> Option<Self> {
        let name = path.file_name()?.to_str()?;
        let mut fields = name
            .strip_suffix(EXTENSION)?
            .strip_suffix('.')?
            .splitn(4, '-');
        let started = fields.next()?.parse().ok()?;
        let (id, notebook) = (hex(fields.next()?)?, hex(fields.next()?)?);
        let nth = match fields.next() {
            None => 1,
            Some(again) => again.parse().ok()?,
        };
        // A number may be written in several ways.
        (name_of(started, id, notebook, nth) == name).then(|| Self {
            started,
            id: id.to_owned(),
            notebook: notebook.to_owned(),
            nth,
            path: path.to_owned(),
        })
    }

    pub(super) fn size(&self) -> u64 {
        fs::symlink_metadata(&self.path).map_or(0, |found| found.len())
    }

    /// Whether the file belongs to a session of this user.
    pub(super) fn is_own(&self) -> bool {
        is_own_file(&self.path, |header| {
            let mut facts = header.process.iter();
            let notebook = facts.find(|(name, _)| name == "notebook");
            let notebook = notebook.map(|(_, path)| path.as_str());
            let folder = self.path.parent().unwrap_or(Path::new(""));
            let expected = Self::new(
                folder,
                header.wall_anchor,
                &header.session,
                notebook,
                self.nth,
            );
            expected.path == self.path
        })
    }

    /// Deletes the session and its children. That another process has done so is no failure.
    pub(super) fn delete(&self) {
        if self.is_own() {
            drop(fs::remove_file(&self.path));
            if let Some(folder) = self.path.parent() {
                child::delete(folder, &self.id);
            }
        }
    }
}

/// The first eight characters of a session's id.
pub(crate) fn short_id(session: &str) -> String {
    session.chars().take(8).collect()
}

fn name_of(started: u64, id: &str, notebook: &str, nth: u32) -> String {
    let name = format!("{started:013}-{id}-{notebook}");
    if nth > 1 {
        format!("{name}-{nth}.{EXTENSION}")
    } else {
        format!("{name}.{EXTENSION}")
    }
}

/// Eight hexadecimal digits.
pub(crate) fn hex(text: &str) -> Option<&str> {
    let is_hex = |it: u8| matches!(it, b'0'..=b'9' | b'a'..=b'f');
    (text.len() == 8 && text.bytes().all(is_hex)).then_some(text)
}

/// Eight hexadecimal digits that stand for a notebook.
pub(super) fn notebook_hash(notebook: Option<&str>) -> String {
    let hash = notebook.map_or(0, |path| source_text::hash(path).0);
    format!("{:08x}", hash & 0xffff_ffff)
}

/// The sessions in a folder, the newest first; none where there is no such folder. Those that began
/// after `now` (milliseconds since 1970) come last: the clock was wrong then, or is now.
pub(super) fn entries(folder: &Path, now: u64) -> Vec<SessionFile> {
    let mut entries: Vec<SessionFile> = names(folder)
        .filter_map(|path| SessionFile::from_path(&path))
        .collect();
    entries.sort_by_key(|it| {
        let latest = Reverse((it.started, it.nth));
        (it.started > now, latest, it.path.clone())
    });
    entries
}

/// The paths in a folder, of a very full one only some.
pub(crate) fn names(folder: &Path) -> impl Iterator<Item = PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten();
    let entries = entries.take(MAX_NAMES).flatten();
    entries.map(|entry| entry.path())
}

/// A regular file of this user, no link, that begins with such a header.
pub(crate) fn is_own_file(path: &Path, is_so: impl FnOnce(&Header) -> bool) -> bool {
    is_own(path, Metadata::is_file)
        && file::read_header(path).is_some_and(|header| is_kept(&header) && is_so(&header))
}

/// A file or a folder of this user, whichever `is_of_kind` says, and no link to one.
pub(crate) fn is_own(path: &Path, is_of_kind: fn(&Metadata) -> bool) -> bool {
    let is_own = |found: Metadata| is_of_kind(&found) && is_of_this_user(&found);
    fs::symlink_metadata(path).is_ok_and(is_own)
}

fn is_kept(header: &Header) -> bool {
    header.process.iter().any(|(name, _)| name == KEPT)
}

#[cfg(unix)]
#[expect(unsafe_code, reason = "who this user is only libc tells")]
fn is_of_this_user(found: &Metadata) -> bool {
    use std::os::unix::fs::MetadataExt;

    // SAFETY: the call takes nothing and cannot fail.
    found.uid() == unsafe { libc::geteuid() }
}

#[cfg(not(unix))]
fn is_of_this_user(_: &Metadata) -> bool {
    true
}

/// A folder, and those to it, that nobody but the user can read. It gets the marker if it is new or empty.
pub(crate) fn create_folder(folder: &Path) -> io::Result<()> {
    if !folder.is_dir() {
        let mut builder = fs::DirBuilder::new();
        builder.recursive(true);
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        builder.create(folder).map_err(|error| {
            let words = system_message(&error);
            let message = format!("the folder {} cannot be made: {words}", folder.display());
            io::Error::new(error.kind(), message)
        })?;
    }
    let is_ours = usual().is_some_and(|usual| usual == folder);
    if is_ours || fs::read_dir(folder)?.next().is_none() {
        mark(folder)?;
    }
    Ok(())
}

fn mark(folder: &Path) -> io::Result<()> {
    match files::create(&folder.join(MARKER)) {
        Ok(mut marker) => {
            let written = marker.write_all(MARKED);
            if written.is_err() {
                // An unfinished one would never be completed.
                drop(fs::remove_file(folder.join(MARKER)));
            }
            written
        }
        // Another process was faster.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(error),
    }
}

/// Old files of gpumem's may be deleted there. No link leads to it.
pub(crate) fn is_marked(folder: &Path) -> bool {
    let marker = folder.join(MARKER);
    is_own(&marker, Metadata::is_file)
        && files::read_own(&marker, MARKED.len() as u64).is_ok_and(|content| content == MARKED)
}

/// Deletes the folder if nothing but the marker is left in it.
pub(crate) fn delete_empty(folder: &Path) {
    let marker = folder.join(MARKER);
    if is_marked(folder) && names(folder).all(|path| path == marker) {
        drop(fs::remove_file(marker));
        drop(fs::remove_dir(folder));
    }
}

/// Deletes what processes that are gone did not finish writing.
pub(crate) fn delete_unfinished(folder: &Path) {
    for path in names(folder) {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let is_gone = |header: &Header| owner::is_running(&path, &facts_of(header)) == Some(false);
        if files::is_unfinished(&name) && is_own_file(&path, is_gone) {
            drop(fs::remove_file(path));
        }
    }
}
