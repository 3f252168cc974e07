//! Sessions on the disk: one file for each, to which frames are appended as the session goes.
//!
//! `queue` takes frames from the cell's thread, `writer` is the thread that writes them into a `file` of the
//! `folder`, `archive` reads what is kept. A failure of the disk is said once, and the session is recorded on in
//! memory. Child processes write files of the same kind (`crate::recording::child`).

mod archive;
mod batch;
mod file;
mod folder;
mod origin;
mod owner;
mod queue;
mod writer;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use gpumem_model::recording::Recording;

pub(crate) use archive::{Archive, ArchiveError, Opened};
pub(crate) use file::{FrameFile, StoreFault, has_frames, read, sound_part};
pub(crate) use folder::{
    EXTENSION, MARKER, create_folder, delete_empty, delete_unfinished, hex, is_marked, is_own,
    is_own_file, names, short_id,
};
pub(crate) use origin::{KEPT, SessionOrigin};
pub(crate) use owner::{
    facts as process_facts, is_running as is_process_running, was_killed as process_was_killed,
};
pub(crate) use queue::{FrameQueue, StoreState, store_nanos};

use crate::recording::child;
use gpumem_base::clock::Clock;
use gpumem_base::threads;
use queue::StoreShared;
pub(crate) use writer::delete_sessions;
use writer::{Plan, Writer};

/// Where sessions are kept.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) enum StoreSetting {
    #[default]
    Off,
    /// In Jupyter's data folder.
    Usual,
    Folder(PathBuf),
}

impl StoreSetting {
    /// The folder; `None` where nothing is kept, and where the system knows no home.
    pub(crate) fn folder(&self) -> Option<PathBuf> {
        match self {
            Self::Off => None,
            Self::Usual => folder::usual(),
            Self::Folder(path) => Some(path.clone()),
        }
    }
}

/// The name is exactly that of a session's file.
pub(crate) fn is_session_name(path: &Path) -> bool {
    folder::SessionFile::from_path(path).is_some()
}

/// Begins to keep a session, of which there may be something already.
pub(crate) fn begin(
    setting: &StoreSetting,
    origin: &SessionOrigin,
    recording: &Recording,
    clock: Clock,
) -> Option<FrameQueue> {
    let plan = Plan {
        folder: setting.folder()?,
        origin: origin.clone(),
        session: recording.header().session.clone(),
        clock,
        is_rank: {
            let mut facts = recording.header().process.iter();
            facts.any(|(name, _)| name == "rank" || name == "slurm_rank")
        },
    };
    child::watch(&child::folder(&plan.folder, &plan.session), clock);
    let shared = Arc::<StoreShared>::default();
    let mut writer = Writer::new(Arc::clone(&shared), plan);
    let woken = Arc::clone(&shared);
    let wake = move || woken.wake_up();
    let started = threads::start("gpumem-store", move || writer.run(), wake);
    if let Err(error) = started {
        shared.note_trouble(&format!(
            "this session is not kept: no thread was started: {error}"
        ));
        shared.note_end();
    }
    let queue = FrameQueue::new(shared);
    for frame in recording.frames() {
        queue.note(&frame);
    }
    Some(queue)
}
