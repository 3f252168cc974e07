//! Whether there is room and time for a copy of the process.

use std::sync::{LazyLock, Mutex, PoisonError};
use std::time::Duration;

use gpumem_core::units::Bytes;

use super::process;
use crate::sources::host::Memory;

/// What a copy may come to write: its own tables, and the pages of objects that it counts.
const ROOM: Bytes = Bytes::mib(256);

/// Looks that nobody asked for copy the page tables for at most this long.
const COST: Duration = Duration::from_millis(100);

/// Those that the user asked for.
const COST_IF_ASKED: Duration = Duration::from_secs(1);

static MEMORY: LazyLock<Mutex<Memory>> = LazyLock::new(|| Mutex::new(Memory::new()));

/// How much memory a copy may take for itself; an error says why there is no room for one, or no
/// time.
pub(super) fn check(is_asked: bool) -> Result<Option<Bytes>, String> {
    let left = left();
    if let Some(left) = left.filter(|left| *left < ROOM) {
        return Err(format!(
            "only {left} of host memory are left, and a look needs {ROOM}"
        ));
    }
    let most = if is_asked { COST_IF_ASKED } else { COST };
    match process::cost() {
        Some(cost) if cost > most => Err(format!(
            "the process is so large that a copy of its page tables takes {} ms",
            cost.as_millis()
        )),
        // The other half is for pages that both processes write to.
        _ => Ok(left.map(|left| Bytes::new(left.get() / 2))),
    }
}

/// What this process can still get from the system.
pub(super) fn left() -> Option<Bytes> {
    let mut memory = MEMORY.lock().unwrap_or_else(PoisonError::into_inner);
    memory
        .left()
        .into_iter()
        .chain(process::address_space())
        .min()
}
