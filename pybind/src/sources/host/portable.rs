//! macOS, Windows and the rest, through `sysinfo`.

use gpumem_core::units::Bytes;
use sysinfo::{MemoryRefreshKind, Pid, ProcessRefreshKind, ProcessesToUpdate};

/// Why a figure could not be read, in words.
pub(super) struct Failure(pub(super) String);

/// The machine.
pub(super) struct System {
    system: sysinfo::System,
    pid: Result<Pid, &'static str>,
}

impl System {
    pub(super) fn new() -> Self {
        Self {
            system: sysinfo::System::new(),
            pid: sysinfo::get_current_pid(),
        }
    }

    /// Resident bytes of this process; the working set on Windows.
    pub(super) fn resident(&mut self) -> Result<Bytes, Failure> {
        let pid = self.pid.map_err(|words| Failure(words.to_owned()))?;
        self.system.refresh_processes_specifics(
            ProcessesToUpdate::Some(&[pid]),
            false,
            ProcessRefreshKind::nothing().with_memory(),
        );
        let process = self.system.process(pid);
        process
            .map(|process| Bytes::new(process.memory()))
            .ok_or_else(|| Failure("the system does not list this process".to_owned()))
    }

    /// Used by every process together and not to be had by dropping caches.
    pub(super) fn used(&mut self) -> Result<Bytes, Failure> {
        let ram = MemoryRefreshKind::nothing().with_ram();
        self.system.refresh_memory_specifics(ram);
        let available = Bytes::new(self.system.available_memory());
        Ok(self.capacity()?.saturating_sub(available))
    }

    /// The memory of the machine; known once its use has been read.
    pub(super) fn capacity(&self) -> Result<Bytes, Failure> {
        match self.system.total_memory() {
            0 => Err(Failure("the system reports no memory".to_owned())),
            n_bytes => Ok(Bytes::new(n_bytes)),
        }
    }
}
