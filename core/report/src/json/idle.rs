//! What names hold that no cell has read for a while, as JSON.

use gpumem_analyzer::IdleMemory;
use gpumem_model::holders::Twin;
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
    twin: it.idle.twin.as_ref().map(JsonTwin),
    words: wording::idle(it.recording, it.idle).ticked(),
    release: it.idle.release(),
}}

struct JsonTwin<'a>(&'a Twin);

object! { JsonTwin<'_>, it => {
    name: it.0.other,
    n_alike: it.0.n_alike,
    n_all: it.0.n_all,
    by_shape: it.0.by_shape,
}}

impl<'a> JsonIdle<'a> {
    pub(super) fn all(recording: &'a Recording, idle: &'a [IdleMemory]) -> Vec<Self> {
        idle.iter().map(|idle| Self { recording, idle }).collect()
    }
}
