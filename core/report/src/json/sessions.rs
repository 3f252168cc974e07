//! The sessions that are kept, as JSON.

use gpumem_jobs::history::StoredSession;

/// The sessions that are kept as a JSON list, in the order given.
pub fn sessions_json(sessions: &[StoredSession]) -> String {
    serde_json::to_string(sessions).expect("a session holds strings and numbers only")
}
