//! What names hold that no cell has read for a while, as JSON.

use gpumem_analyzer::IdleMemory;
use gpumem_model::object;
use gpumem_model::recording::Recording;
use gpumem_wording as wording;

pub(super) struct JsonIdle<'a> {
    recording: &'a Recording,
    idle: &'a IdleMemory,
}

object! { JsonIdle<'_>, it => {
    device: it.recording.device(it.idle.device).label,
    names: it.idle.names,
    n_bytes: it.idle.n_bytes,
    last_run: it.idle.last_use.run,
    last_execution_count: it.recording.run(it.idle.last_use.run).execution_count,
    is_read: it.idle.last_use.is_read,
    n_runs_since: it.idle.last_use.n_runs_since,
    twin: it.idle.twin,
    words: wording::idle(it.recording, it.idle).ticked(),
    release: it.idle.release(),
}}

impl<'a> JsonIdle<'a> {
    pub(super) fn all(recording: &'a Recording, idle: &'a [IdleMemory]) -> Vec<Self> {
        idle.iter().map(|idle| Self { recording, idle }).collect()
    }
}
