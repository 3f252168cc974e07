//! Whether there is room for a copy of the process.

use std::sync::{LazyLock, Mutex};

use gpumem_model::units::Bytes;

use super::process;
use gpumem_base::locks::lock;
use gpumem_machine::sources::host::Memory;

/// What a copy may come to write: its own tables, and the pages of objects that it counts.
const ROOM: Bytes = Bytes::mib(256);

static MEMORY: LazyLock<Mutex<Memory>> = LazyLock::new(|| Mutex::new(Memory::default()));

/// How much memory a copy may take for itself; an error says why there is no room for one.
pub(super) fn check() -> Result<Option<Bytes>, String> {
    let left = left();
    if let Some(left) = left.filter(|left| *left < ROOM) {
        return Err(format!(
            "only {left} of host memory are left, and a look needs {ROOM}"
        ));
    }
    // The other half is for pages that both processes write to.
    Ok(left.map(|left| Bytes::new(left.get() / 2)))
}

/// What this process can still get from the system.
pub(super) fn left() -> Option<Bytes> {
    lock(&MEMORY)
        .left()
        .into_iter()
        .chain(process::address_space())
        .min()
}
