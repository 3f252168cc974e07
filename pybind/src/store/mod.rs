//! Sessions on the disk: one SQLite file for each, written as the session goes.
//!
//! `handover` takes frames from the cell's thread, `writer` is the thread that writes them into a
//! `file` of the `folder`, `archive` reads what is kept. A failure of the disk is said once, and the
//! session is recorded on in memory.

mod archive;
mod file;
mod folder;
mod handover;
mod network;
mod origin;
mod pending;
mod remains;
mod row;
mod writer;

use std::path::PathBuf;
use std::sync::Arc;

use gpumem_core::recording::Recording;

pub(crate) use archive::{Archive, ArchiveError, Opened};
pub(crate) use folder::create_folder;
#[cfg(feature = "testing")]
pub(crate) use handover::store_nanos;
pub(crate) use handover::{Handover, State};
#[cfg(feature = "testing")]
pub(crate) use network::store_on_network;
pub(crate) use origin::Origin;
pub(crate) use remains::{
    facts as process_facts, is_running as is_process_running, was_killed as process_was_killed,
};
#[cfg(target_os = "linux")]
pub(crate) use writer::held;

use crate::clock::Clock;
use crate::{child, threads};
use handover::Shared;
use writer::{Plan, Writer};

/// Where sessions are kept.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) enum Setting {
    /// Nowhere.
    #[default]
    Off,
    /// In Jupyter's data folder.
    Usual,
    /// In this folder.
    Folder(PathBuf),
}

impl Setting {
    /// The folder; `None` where nothing is kept, and where the system knows no home.
    pub(crate) fn folder(&self) -> Option<PathBuf> {
        match self {
            Self::Off => None,
            Self::Usual => folder::usual(),
            Self::Folder(path) => Some(path.clone()),
        }
    }
}

/// Begins to keep a session, of which there may be something already.
pub(crate) fn begin(
    setting: &Setting,
    origin: &Origin,
    recording: &Recording,
    clock: Clock,
) -> Option<Handover> {
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
    let shared = Arc::<Shared>::default();
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
    let handover = Handover::new(shared);
    for frame in recording.frames() {
        handover.note(&frame);
    }
    Some(handover)
}
