//! The sessions that are kept, as JSON.

use serde::Serialize;

use crate::history::StoredSession;

/// The sessions that are kept as a JSON list, in the order given.
pub fn sessions_json(sessions: &[StoredSession]) -> String {
    let entries: Vec<JsonSession<'_>> = sessions.iter().map(JsonSession::of).collect();
    serde_json::to_string(&entries).expect("a session holds strings and numbers only")
}

#[derive(Serialize)]
struct JsonSession<'a> {
    id: &'a str,
    notebook: Option<&'a str>,
    host: Option<&'a str>,
    age_nanos: Option<String>,
    ending: &'static str,
    n_runs: usize,
    last_run: Option<JsonLast<'a>>,
    worst: Option<&'a str>,
    size_bytes: u64,
    damage: Option<&'a str>,
}

#[derive(Serialize)]
struct JsonLast<'a> {
    execution_count: Option<u32>,
    label: &'a str,
    is_open: bool,
    ran_out: bool,
    device: Option<&'a str>,
    used_bytes: Option<u64>,
    capacity_bytes: Option<u64>,
}

impl<'a> JsonSession<'a> {
    fn of(session: &'a StoredSession) -> Self {
        Self {
            id: &session.id,
            notebook: session.notebook.as_deref(),
            host: session.host.as_deref(),
            age_nanos: session.age.map(|age| age.get().to_string()),
            ending: session.ending.name(),
            n_runs: session.n_runs,
            last_run: session.last.as_ref().map(|last| {
                let fullest = last.fullest.as_ref();
                JsonLast {
                    execution_count: last.execution_count,
                    label: &last.label,
                    is_open: last.is_open,
                    ran_out: last.ran_out,
                    device: fullest.map(|it| it.device.as_str()),
                    used_bytes: fullest.map(|it| it.used.get()),
                    capacity_bytes: fullest.map(|it| it.capacity.get()),
                }
            }),
            worst: session.worst.as_deref(),
            size_bytes: session.size.get(),
            damage: session.damage.as_deref(),
        }
    }
}
