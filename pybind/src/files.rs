//! Writing a file: whole or not at all, and for its owner alone.
//!
//! Recordings and reports hold the user's source text. A notebook's folder is shared more often
//! than its author thinks, and a disk is full when a session has been long.

use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process;
use std::sync::atomic::{AtomicU32, Ordering};

/// More links than this lead nowhere.
const MAX_LINKS: usize = 40;

/// Puts `bytes` in the place of a file's content; where that fails the file is as it was.
///
/// What a symbolic link points to is written, and the link stays. A device or a pipe is written to.
pub(crate) fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    match target(path)? {
        Target::Stream => OpenOptions::new()
            .write(true)
            .open(path)
            .and_then(|mut stream| stream.write_all(bytes)),
        Target::File(path) => replace(&path, bytes),
    }
}

/// What a path leads to.
enum Target {
    /// A device, a pipe, or an open file of this process: it cannot be replaced.
    Stream,
    /// A file, there already or not.
    File(PathBuf),
}

fn target(path: &Path) -> io::Result<Target> {
    if fs::metadata(path).is_ok_and(|found| !found.is_file()) {
        return Ok(Target::Stream);
    }
    let mut path = path.to_owned();
    for _ in 0..MAX_LINKS {
        let Ok(link) = fs::read_link(&path) else {
            return Ok(Target::File(path));
        };
        // `/dev/stdout` may be a file that the shell has opened: a new one in its place would be lost.
        if path.starts_with("/dev") || path.starts_with("/proc") {
            return Ok(Target::Stream);
        }
        path = path.parent().unwrap_or(Path::new("")).join(link);
    }
    Err(io::Error::other("too many symbolic links"))
}

/// Writes beside the file, and renames when all of it is on the disk.
fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let folder = match path.parent() {
        Some(folder) if folder != OsStr::new("") => folder,
        _ => Path::new("."),
    };
    let (beside, mut file) = create_in(folder)?;
    let written = file
        .write_all(bytes)
        .and_then(|()| file.sync_all())
        .and_then(|()| fs::rename(&beside, path));
    if written.is_err() {
        // The first failure is the one to tell of.
        drop(fs::remove_file(&beside));
    }
    written
}

/// A new file of a name that nobody else has.
fn create_in(folder: &Path) -> io::Result<(PathBuf, File)> {
    static N_FILES: AtomicU32 = AtomicU32::new(0);
    loop {
        let number = N_FILES.fetch_add(1, Ordering::Relaxed);
        let path = folder.join(format!(".gpumem-{}-{number}.tmp", process::id()));
        match create(&path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            created => return Ok((path, created?)),
        }
    }
}

fn create(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}
