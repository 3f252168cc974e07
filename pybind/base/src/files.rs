//! Files are written whole or not at all, and for their owner alone. Only regular files are read.
//!
//! Recordings and reports hold the user's source text. A notebook's folder is shared more often
//! than its author thinks, and a disk is full when a session has been long.

use std::ffi::OsStr;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::process;
use std::sync::atomic::{AtomicU32, Ordering};

use pyo3::prelude::*;

use crate::errors::file_error;

/// Opens a regular file to read. Anything else is refused, and not waited for: a pipe may never end, and
/// opening a device may already do something.
pub fn open(path: &Path) -> io::Result<File> {
    check_regular(&fs::metadata(path)?)?;
    open_with(OpenOptions::new().read(true), path, 0)
}

/// The same of a file in a folder that others may have written to: no link is followed.
pub fn open_own(path: &Path) -> io::Result<File> {
    open_own_with(OpenOptions::new().read(true), path)
}

/// As [`open_own`], to read or write as `options` say.
pub fn open_own_with(options: &mut OpenOptions, path: &Path) -> io::Result<File> {
    check_regular(&fs::symlink_metadata(path)?)?;
    #[cfg(unix)]
    let flags = libc::O_NOFOLLOW;
    #[cfg(not(unix))]
    let flags = 0;
    open_with(options, path, flags)
}

/// As [`open_own`], and the content if it is not longer than `max_bytes`.
pub fn read_own(path: &Path, max_bytes: u64) -> io::Result<Vec<u8>> {
    let mut content = Vec::new();
    open_own(path)?
        .take(max_bytes + 1)
        .read_to_end(&mut content)?;
    if content.len() as u64 > max_bytes {
        return Err(io::Error::from(io::ErrorKind::FileTooLarge));
    }
    Ok(content)
}

#[cfg_attr(
    not(unix),
    expect(unused_variables, reason = "only Unix has these flags")
)]
fn open_with(options: &mut OpenOptions, path: &Path, flags: i32) -> io::Result<File> {
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::custom_flags(options, flags | libc::O_NONBLOCK);
    let file = options.open(path)?;
    // It may be another one by now.
    check_regular(&file.metadata()?)?;
    Ok(file)
}

fn check_regular(found: &fs::Metadata) -> io::Result<()> {
    if found.is_file() {
        return Ok(());
    }
    let words = format!("{} is not read, only regular files are", kind_of(found));
    Err(io::Error::new(io::ErrorKind::InvalidInput, words))
}

fn kind_of(found: &fs::Metadata) -> &'static str {
    let kind = found.file_type();
    if kind.is_dir() {
        return "a folder";
    }
    if kind.is_symlink() {
        return "a link";
    }
    #[cfg(unix)]
    {
        use std::os::unix::fs::FileTypeExt;
        if kind.is_fifo() {
            return "a pipe";
        }
        if kind.is_socket() {
            return "a socket";
        }
    }
    "a device"
}

/// More links than this lead nowhere.
const MAX_LINKS: usize = 40;

/// In the names of files that are being written, around the process and a number.
const BESIDE: &str = ".gpumem-";
const UNFINISHED: &str = ".tmp";

/// Puts `bytes` in the place of a file's content; where that fails the file is as it was.
///
/// What a symbolic link points to is written, and the link stays. A device or a pipe is written to.
pub fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    match target(path)? {
        PathTarget::Stream => OpenOptions::new()
            .write(true)
            .open(path)
            .and_then(|mut stream| stream.write_all(bytes)),
        PathTarget::File(path) => replace(&path, bytes),
    }
}

/// Writes a file whole or not at all, for its owner alone.
#[pyfunction(name = "_write_file")]
pub fn write_file(py: Python<'_>, path: PathBuf, content: &[u8]) -> PyResult<()> {
    py.detach(|| write(&path, content))
        .map_err(|error| file_error(path, &error))
}

/// What a path leads to.
enum PathTarget {
    /// A device, a pipe, or an open file of this process: it cannot be replaced.
    Stream,
    /// A file, there already or not.
    File(PathBuf),
}

fn target(path: &Path) -> io::Result<PathTarget> {
    if fs::metadata(path).is_ok_and(|found| !found.is_file()) {
        return Ok(PathTarget::Stream);
    }
    let mut path = path.to_owned();
    for _ in 0..MAX_LINKS {
        let Ok(link) = fs::read_link(&path) else {
            return Ok(PathTarget::File(path));
        };
        if path.starts_with("/dev") || path.starts_with("/proc") {
            return Ok(PathTarget::Stream);
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
        // Report the first failure.
        drop(fs::remove_file(&beside));
    }
    written
}

/// Creates a file with a unique name.
pub fn create_in(folder: &Path) -> io::Result<(PathBuf, File)> {
    static N_FILES: AtomicU32 = AtomicU32::new(0);
    loop {
        let number = N_FILES.fetch_add(1, Ordering::Relaxed);
        let path = folder.join(format!("{BESIDE}{}-{number}{UNFINISHED}", process::id()));
        match create(&path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            created => return Ok((path, created?)),
        }
    }
}

/// It is the name of a file that was not finished, if its process is gone: `.gpumem-4123-0.tmp`.
pub fn is_unfinished(name: &str) -> bool {
    let numbers = name.strip_prefix(BESIDE);
    let numbers = numbers.and_then(|rest| rest.strip_suffix(UNFINISHED)?.split_once('-'));
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|it| it.is_ascii_digit());
    numbers.is_some_and(|(process, number)| is_number(process) && is_number(number))
}

/// A new file, for its owner alone.
pub fn create(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}
