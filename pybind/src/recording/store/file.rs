//! The file of a session or a child process: frames, one behind the other, as in any recording.
//!
//! What `append` has written survives the death of this process. Nothing is locked that another program, or
//! code in this process, could take away; the lock on the file only says that its writer is there.

use std::collections::BTreeMap;
use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::mem::{self, ManuallyDrop};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, mpsc};
#[cfg(unix)]
use std::thread;
use std::time::{Duration, Instant};

use gpumem_model::recording::{Header, Recording};
use gpumem_wire as wire;
use gpumem_wire::Salvage;

use gpumem_base::errors::system_message;
use gpumem_base::{files, threads};
use gpumem_objects::look;

/// No session is read that is longer: the folder of all sessions is not larger.
const MAX_BYTES: u64 = 512 << 20;
/// Reading ends after this.
const MAX_TIME: Duration = Duration::from_secs(10);
/// A session that becomes longer is not made shorter again: that would take several times as much memory.
const MAX_COMPACTED: u64 = 128 << 20;
/// How much of both ends is read where there is no time for more.
const BEGINNING: u64 = 64 << 10;
const END: u64 = 256 << 10;
/// Bytes of the beginning that are compared before each write.
const N_COMPARED: usize = 64;

/// What is known of a session beside its runs, by name.
pub(crate) type SessionFacts = BTreeMap<String, String>;

/// The system's number for a device that fails.
#[cfg(unix)]
const BROKEN: i32 = libc::EIO;
/// `ERROR_IO_DEVICE`.
#[cfg(not(unix))]
const BROKEN: i32 = 1117;

#[derive(Debug)]
pub(crate) enum StoreFault {
    /// No byte fits on the disk.
    Full,
    /// The disk lost what it had taken.
    Broken,
    Deleted,
    /// Another process wrote to it or replaced it.
    Changed(&'static str),
    /// It cannot be read as a whole, and why.
    Unreadable(String),
    /// Anything else, in the system's words.
    Other(String),
}

impl StoreFault {
    pub(super) fn message(&self) -> String {
        match self {
            Self::Full => "the disk is full".to_owned(),
            Self::Broken => "the disk fails".to_owned(),
            Self::Deleted => "its file was deleted".to_owned(),
            Self::Changed(words) => (*words).to_owned(),
            Self::Unreadable(words) | Self::Other(words) => words.clone(),
        }
    }
}

impl From<io::Error> for StoreFault {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Self::Full,
            _ if error.raw_os_error() == Some(BROKEN) => Self::Broken,
            // Of a file on another machine.
            io::ErrorKind::StaleNetworkFileHandle => Self::Deleted,
            _ => Self::Other(system_message(&error)),
        }
    }
}

/// What makes a file this one and no other of its name: device and number.
type Identity = (u64, u64);

#[cfg(unix)]
fn identity(found: &Metadata) -> Identity {
    use std::os::unix::fs::MetadataExt;

    (found.dev(), found.ino())
}

#[cfg(not(unix))]
fn identity(_: &Metadata) -> Identity {
    (0, 0)
}

/// An open file has a name somewhere.
#[cfg(unix)]
fn is_named(found: &Metadata) -> bool {
    use std::os::unix::fs::MetadataExt;

    found.nlink() > 0
}

#[cfg(not(unix))]
fn is_named(_: &Metadata) -> bool {
    false
}

/// An open file. Code in this process may close every descriptor; then its number may be another file's, which
/// is neither written nor closed here.
struct Descriptor {
    file: ManuallyDrop<File>,
    identity: Identity,
}

impl Descriptor {
    fn new(file: File) -> io::Result<Self> {
        Ok(Self {
            identity: identity(&file.metadata()?),
            file: ManuallyDrop::new(file),
        })
    }

    /// What is known of the file; `None` if it is another one by now.
    fn metadata(&self) -> Option<Metadata> {
        let found = self.file.metadata().ok()?;
        (identity(&found) == self.identity).then_some(found)
    }
}

impl Drop for Descriptor {
    fn drop(&mut self) {
        if self.metadata().is_some() {
            // SAFETY: it is dropped here alone, and not used again.
            #[expect(unsafe_code, reason = "whether it is closed is decided here")]
            unsafe {
                ManuallyDrop::drop(&mut self.file);
            }
        }
    }
}

/// A file that is being written, by one thread of the process that created it.
pub(crate) struct FrameFile {
    open: Descriptor,
    path: PathBuf,
    len: u64,
    beginning: Vec<u8>,
    /// A frame that was not written whole could not be cut off.
    is_torn: bool,
    sync: Arc<AtomicU8>,
    /// When something was written that the disk may not have yet.
    unsynced: Option<Instant>,
}

/// States of `FrameFile::sync`.
const IDLE: u8 = 0;
const UNDER_WAY: u8 = 1;
const FAILED: u8 = 2;

impl FrameFile {
    /// A new file that begins with these frames, for its owner alone. Nobody sees it without them.
    pub(crate) fn create(path: &Path, frames: &[u8]) -> Result<Self, StoreFault> {
        if fs::symlink_metadata(path).is_ok() {
            return Err(io::Error::from(io::ErrorKind::AlreadyExists).into());
        }
        let (beside, file) = files::create_in(path.parent().unwrap_or(Path::new(".")))?;
        let mut created = Self::begin(file, &beside, frames)?;
        if let Err(error) = fs::rename(&beside, path) {
            drop(fs::remove_file(&beside));
            return Err(error.into());
        }
        path.clone_into(&mut created.path);
        Ok(created)
    }

    fn begin(file: File, path: &Path, frames: &[u8]) -> Result<Self, StoreFault> {
        lock(&file);
        let mut created = Self {
            open: Descriptor::new(file)?,
            path: path.to_owned(),
            len: 0,
            beginning: frames[..frames.len().min(N_COMPARED)].to_vec(),
            is_torn: false,
            sync: Arc::default(),
            unsynced: None,
        };
        let written = created.write(frames);
        if written.is_err() {
            // It was made just now, and holds nothing.
            drop(fs::remove_file(path));
        }
        written.map(|()| created)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn len(&self) -> u64 {
        self.len
    }

    /// Writes all of it or nothing.
    pub(crate) fn append(&mut self, frames: &[u8]) -> Result<(), StoreFault> {
        self.check()?;
        self.write(frames)
    }

    fn write(&mut self, frames: &[u8]) -> Result<(), StoreFault> {
        let mut file: &File = &self.open.file;
        if self.is_torn {
            file.set_len(self.len)?;
            self.is_torn = false;
        }
        let at = SeekFrom::Start(self.len);
        if let Err(error) = file.seek(at).and_then(|_| file.write_all(frames)) {
            self.is_torn = file.set_len(self.len).is_err();
            return Err(error.into());
        }
        self.len += frames.len() as u64;
        self.unsynced.get_or_insert_with(Instant::now);
        Ok(())
    }

    /// The descriptor and the path still lead to this file, and nobody else wrote to it.
    fn check(&mut self) -> Result<(), StoreFault> {
        if self.open.metadata().is_none() {
            self.reopen();
        }
        let Some(found) = self.open.metadata() else {
            return Err(StoreFault::Changed("code in this process closed its file"));
        };
        let named = fs::symlink_metadata(&self.path);
        let is_here = named.as_ref().is_ok_and(|it| self.is_of(it));
        // One that was moved is written where it is now.
        if !is_here && !is_named(&found) {
            return Err(match named {
                Ok(_) => StoreFault::Changed("another file was put in the place of its file"),
                Err(_) => StoreFault::Deleted,
            });
        }
        let is_whole = found.len() == self.len || self.is_torn;
        if !is_whole || self.read(0, N_COMPARED as u64)? != self.beginning {
            return Err(StoreFault::Changed("another program wrote to its file"));
        }
        if self.sync.load(Ordering::Acquire) == FAILED {
            return Err(StoreFault::Changed("the disk did not take all of its file"));
        }
        Ok(())
    }

    fn read(&self, from: u64, n_bytes: u64) -> io::Result<Vec<u8>> {
        let mut file: &File = &self.open.file;
        let mut bytes = Vec::new();
        file.seek(SeekFrom::Start(from))?;
        file.take(n_bytes).read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    fn is_of(&self, found: &Metadata) -> bool {
        identity(found) == self.open.identity
    }

    /// By its path, if that leads to this file.
    fn reopen(&mut self) {
        let mut options = OpenOptions::new();
        options.read(true).write(true);
        let opened = files::open_own_with(&mut options, &self.path).and_then(Descriptor::new);
        if let Ok(opened) = opened
            && opened.identity == self.open.identity
        {
            lock(&opened.file);
            self.open = opened;
        }
    }

    /// Has the disk keep what was written longer ago than `after`: until then a power failure may cost it. A
    /// thread of its own waits for the disk.
    pub(super) fn sync(&mut self, after: Duration) {
        let is_due = self.unsynced.is_some_and(|since| since.elapsed() >= after);
        if !is_due || self.sync.load(Ordering::Acquire) != IDLE || self.open.metadata().is_none() {
            return;
        }
        let Ok(open) = self.open.file.try_clone().and_then(Descriptor::new) else {
            return;
        };
        self.unsynced = None;
        self.sync.store(UNDER_WAY, Ordering::Release);
        let state = Arc::clone(&self.sync);
        let started = threads::start_once("gpumem-sync", move || {
            let synced = open.file.sync_data().map_err(StoreFault::from);
            let is_lost = matches!(synced, Err(StoreFault::Full | StoreFault::Broken));
            state.store(if is_lost { FAILED } else { IDLE }, Ordering::Release);
        });
        if started.is_err() {
            self.sync.store(IDLE, Ordering::Release);
        }
    }

    /// The disk may not have all of it yet.
    pub(super) fn is_unsynced(&self) -> bool {
        self.unsynced.is_some()
    }

    /// What is sound of it, and whether that is everything; `None` if nothing can be read, or not without more
    /// memory than there is.
    pub(super) fn sound(&self) -> Option<(Recording, bool)> {
        self.open.metadata()?;
        let bytes = self.read(0, self.len).ok()?;
        let (recording, is_whole) = sound(&bytes)?;
        Some((recording, is_whole && bytes.len() as u64 == self.len))
    }

    /// Begins to write a file beside this one, without what later frames replaced.
    pub(super) fn compacted(&self) -> Compacting {
        let (path, len, identity) = (self.path.clone(), self.len, self.open.identity);
        let (sender, ready) = mpsc::channel();
        let compact = move || {
            let compacted = (|| {
                let file = Descriptor::new(files::open_own(&path)?)?;
                let mut bytes = Vec::new();
                (&*file.file).take(len).read_to_end(&mut bytes)?;
                let is_it = file.identity == identity && bytes.len() as u64 == len;
                let sound = sound(&bytes).filter(|(_, is_whole)| is_it && *is_whole);
                let (recording, _) = sound.ok_or(StoreFault::Changed("it cannot be read"))?;
                drop(bytes);
                let frames = wire::encode(&recording);
                let folder = path.parent().unwrap_or(Path::new("."));
                let (beside, file) = files::create_in(folder)?;
                let compacted = Self::begin(file, &beside, &frames)?;
                compacted.open.file.sync_data()?;
                Ok(Compacted {
                    file: compacted,
                    len,
                })
            })();
            // Its session may be over.
            drop(sender.send(compacted));
        };
        // If there is no thread, nothing will ever come.
        drop(threads::start_once("gpumem-compact", compact));
        Compacting { ready }
    }

    /// Puts a compacted file in the place of this one, with what was written to this one since.
    pub(super) fn replace_by(&mut self, mut compacted: Compacted) -> Result<(), StoreFault> {
        self.check()?;
        // A file that was moved is left alone.
        if !self.is_of(&fs::symlink_metadata(&self.path)?) {
            return Ok(());
        }
        let since = self.read(compacted.len, self.len - compacted.len)?;
        compacted.file.append(&since)?;
        fs::rename(&compacted.file.path, &self.path)?;
        compacted.file.path.clone_from(&self.path);
        mem::swap(self, &mut compacted.file);
        Ok(())
    }
}

/// A file that takes the place of a longer one.
pub(super) struct Compacted {
    file: FrameFile,
    /// How long the other one was.
    len: u64,
}

impl Drop for Compacted {
    fn drop(&mut self) {
        // If it took the other one's place, its name is that one's by now.
        let named = fs::symlink_metadata(&self.file.path);
        let name = self.file.path.file_name().unwrap_or_default();
        if files::is_unfinished(&name.to_string_lossy())
            && named.is_ok_and(|named| self.file.is_of(&named))
        {
            drop(fs::remove_file(&self.file.path));
        }
    }
}

/// A [`Compacted`] that is being written.
pub(super) struct Compacting {
    ready: mpsc::Receiver<Result<Compacted, StoreFault>>,
}

impl Compacting {
    /// What came of it; `None` while it is under way.
    pub(super) fn poll(&self) -> Option<Result<Compacted, StoreFault>> {
        match self.ready.try_recv() {
            Ok(compacted) => Some(compacted),
            Err(mpsc::TryRecvError::Empty) => None,
            Err(mpsc::TryRecvError::Disconnected) => Some(Err(StoreFault::Other(String::new()))),
        }
    }
}

/// What is sound in these bytes, and whether that is everything; `None` if there may be no memory for that.
fn sound(bytes: &[u8]) -> Option<(Recording, bool)> {
    if bytes.len() as u64 > MAX_COMPACTED || look::ensure_room().is_err() {
        return None;
    }
    let salvaged = salvage(bytes).ok()?;
    let is_whole = salvaged.damage().is_none() && salvaged.torn_at.is_none();
    Some((salvaged.recording, is_whole))
}

/// Says to other processes that this file is being written. Where there are no locks, its facts say it.
#[cfg(unix)]
fn lock(file: &File) {
    // Another process may be testing the lock at that moment.
    for _ in 0..10 {
        match file.try_lock() {
            Err(fs::TryLockError::WouldBlock) => thread::sleep(Duration::from_millis(1)),
            Ok(()) | Err(fs::TryLockError::Error(_)) => return,
        }
    }
}

/// A lock would keep readers out.
#[cfg(not(unix))]
fn lock(_: &File) {}

#[derive(Debug, Default)]
pub(crate) struct ReadSession {
    pub(super) facts: SessionFacts,
    pub(crate) recording: Recording,
    /// What is missing, in words.
    pub(super) damage: Option<String>,
    /// The damage of an incomplete last frame, if its writer is gone.
    pub(super) cut: Option<String>,
}

/// Reads a file, also while another process writes it; of a damaged one what is sound. No more than
/// `max_bytes` are read.
pub(crate) fn read(path: &Path, max_bytes: u64) -> Result<ReadSession, StoreFault> {
    let bytes = match files::read_own(path, max_bytes.min(MAX_BYTES)) {
        Err(error) if error.kind() == io::ErrorKind::FileTooLarge => {
            let words = format!("a session has at most {} MiB", MAX_BYTES >> 20);
            return Err(StoreFault::Unreadable(words));
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(StoreFault::Deleted),
        bytes => bytes?,
    };
    let salvaged = salvage(&bytes)?;
    if salvaged.n_frames == 0 {
        let words = if bytes.is_empty() {
            "the file is empty".to_owned()
        } else {
            "the file is damaged: nothing in it can be read".to_owned()
        };
        return Err(StoreFault::Unreadable(words));
    }
    Ok(ReadSession {
        facts: facts_of(salvaged.recording.header()),
        damage: salvaged.damage(),
        cut: salvaged.cut(),
        recording: salvaged.recording,
    })
}

fn salvage(bytes: &[u8]) -> Result<Salvage, StoreFault> {
    let began = Instant::now();
    let salvaged = wire::salvage(bytes, &mut || began.elapsed() < MAX_TIME);
    salvaged.map_err(|error| StoreFault::Unreadable(error.what.to_string()))
}

/// What both ends of a session's file say of it: how it began, its last runs and whether it is over. Of a long
/// one there is no time to read more.
pub(super) fn read_ends(path: &Path) -> Result<ReadSession, StoreFault> {
    let mut file = files::open_own(path)?;
    let len = file.metadata()?.len();
    let mut bytes = Vec::new();
    (&mut file).take(BEGINNING).read_to_end(&mut bytes)?;
    file.seek(SeekFrom::Start(len.saturating_sub(END).max(BEGINNING)))?;
    file.take(END).read_to_end(&mut bytes)?;
    let recording = salvage(&bytes)?.recording;
    Ok(ReadSession {
        facts: facts_of(recording.header()),
        recording,
        ..ReadSession::default()
    })
}

/// The header that a file begins with; `None` if it does not begin with a whole one.
pub(crate) fn read_header(path: &Path) -> Option<Header> {
    let mut beginning = Vec::new();
    let file = files::open_own(path).ok()?;
    file.take(BEGINNING).read_to_end(&mut beginning).ok()?;
    wire::decode_header(&beginning)
}

/// Near the beginning of a file is a frame that is sound.
pub(crate) fn has_frames(path: &Path) -> bool {
    let mut beginning = Vec::new();
    let read = files::open(path).and_then(|file| file.take(1 << 20).read_to_end(&mut beginning));
    read.is_ok() && sound_part(&beginning).is_some()
}

/// What can be read of a damaged recording; `None` if that is nothing.
pub(crate) fn sound_part(bytes: &[u8]) -> Option<Recording> {
    let salvaged = salvage(bytes).ok()?;
    (salvaged.n_frames > 0).then_some(salvaged.recording)
}

pub(super) fn facts_of(header: &Header) -> SessionFacts {
    header.process.iter().cloned().collect()
}

/// Whether the writer of a file has locked it; `None` if unknown.
#[cfg(unix)]
pub(super) fn is_locked(path: &Path) -> Option<bool> {
    let file = files::open_own(path).ok()?;
    match file.try_lock_shared() {
        Ok(()) => Some(false),
        Err(fs::TryLockError::WouldBlock) => Some(true),
        Err(fs::TryLockError::Error(_)) => None,
    }
}

#[cfg(not(unix))]
pub(super) fn is_locked(_: &Path) -> Option<bool> {
    None
}
