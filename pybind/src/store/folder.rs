//! The folder of the sessions: names of files, who may read them, which have to go.

use std::cmp::Reverse;
use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

use gpumem_core::source_text;

use crate::child;
use crate::company::data_dir;

/// Of the files of sessions.
pub(super) const EXTENSION: &str = "sqlite3";
/// In the names of files that were damaged, before the time at which that was noticed.
pub(super) const ASIDE: &str = "-corrupt-";
/// What SQLite keeps beside a file.
pub(super) const BESIDE: [&str; 3] = ["-wal", "-shm", "-journal"];

/// What makes a file this one and no other of its name: device and number.
pub(super) type Identity = (u64, u64);

/// Where sessions are kept if nobody says otherwise.
pub(super) fn usual() -> Option<PathBuf> {
    Some(data_dir()?.join("gpumem"))
}

/// The file of a session in its folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) path: PathBuf,
    /// When it began, in milliseconds since 1970.
    pub(super) started: u64,
    /// The first eight characters of the session's id.
    pub(super) id: String,
    /// Of its notebook's path.
    pub(super) notebook: String,
}

impl Entry {
    /// `1795404830123-3f9a1c2b-91ac02de.sqlite3`: the notebook can be told without opening the file.
    pub(super) fn new(folder: &Path, started: u64, session: &str, notebook: Option<&str>) -> Self {
        let id: String = session.chars().take(8).collect();
        let notebook = notebook_hash(notebook);
        let name = format!("{started:013}-{id}-{notebook}.{EXTENSION}");
        Self {
            path: folder.join(name),
            started,
            id,
            notebook,
        }
    }

    /// Of a session whose file may have been renamed.
    pub(super) fn named(path: &Path, session: &str) -> Self {
        Self::of(path.to_owned()).unwrap_or_else(|| Self {
            path: path.to_owned(),
            started: 0,
            id: session.chars().take(8).collect(),
            notebook: String::new(),
        })
    }

    fn of(path: PathBuf) -> Option<Self> {
        if path.extension()? != EXTENSION {
            return None;
        }
        let mut parts = path.file_stem()?.to_str()?.split('-');
        let started = parts.next()?.parse().ok()?;
        let (id, notebook) = (parts.next()?.to_owned(), parts.next()?.to_owned());
        Some(Self {
            path,
            started,
            id,
            notebook,
        })
    }

    /// It was damaged, and put aside.
    pub(super) fn is_aside(&self) -> bool {
        let name = self.path.file_name().unwrap_or_default();
        name.to_string_lossy().contains(ASIDE)
    }

    /// The bytes of the file, and of what SQLite keeps beside it.
    pub(super) fn size(&self) -> u64 {
        let files = BESIDE.map(|ending| beside(&self.path, ending));
        let files = files.iter().chain([&self.path]);
        files
            .filter_map(|file| fs::metadata(file).ok())
            .map(|it| it.len())
            .sum()
    }

    /// Deletes the session. That another process has done so is no failure.
    pub(super) fn delete(&self) {
        drop(fs::remove_file(&self.path));
        for ending in BESIDE {
            drop(fs::remove_file(beside(&self.path, ending)));
        }
        if let Some(folder) = self.path.parent() {
            child::delete(folder, &self.id);
        }
    }
}

/// Eight hexadecimal digits that stand for a notebook.
pub(super) fn notebook_hash(notebook: Option<&str>) -> String {
    let hash = notebook.map_or(0, |path| source_text::hash(path).0);
    format!("{:08x}", hash & 0xffff_ffff)
}

/// The sessions in a folder, the newest first; none where there is no such folder. Those that began
/// after `now` (milliseconds since 1970) come last: the clock was wrong then, or is now.
pub(super) fn entries(folder: &Path, now: u64) -> Vec<Entry> {
    let files = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut entries: Vec<Entry> = files.filter_map(|file| Entry::of(file.path())).collect();
    entries.sort_by_key(|it| (it.started > now, Reverse((it.started, it.path.clone()))));
    entries
}

/// `file.sqlite3-wal`
pub(super) fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(ending);
    name.into()
}

/// An empty file, and the folders to it, which nobody but the user can read.
pub(super) fn create_file(path: &Path) -> io::Result<File> {
    if let Some(folder) = path.parent() {
        create_folder(folder)?;
    }
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

/// A folder, and those to it, that nobody but the user can read.
pub(crate) fn create_folder(folder: &Path) -> io::Result<()> {
    if folder.is_dir() {
        return Ok(());
    }
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder).map_err(|error| {
        let words = error.to_string();
        let words = words.split(" (os error").next().unwrap_or_default();
        let message = format!("the folder {} cannot be made: {words}", folder.display());
        io::Error::new(error.kind(), message)
    })
}

/// `None` where there is no such file.
#[cfg(unix)]
pub(super) fn identity(path: &Path) -> Option<Identity> {
    use std::os::unix::fs::MetadataExt;

    let found = fs::metadata(path).ok()?;
    Some((found.dev(), found.ino()))
}

/// `None` where there is no such file; an open one cannot be deleted here.
#[cfg(not(unix))]
pub(super) fn identity(path: &Path) -> Option<Identity> {
    fs::metadata(path).ok().map(|_| (0, 0))
}
