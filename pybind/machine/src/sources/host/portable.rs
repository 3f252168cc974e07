//! macOS, Windows and the rest: `memory-stats` for this process, in one call,
//! where `sysinfo` would list every process there is; `sysinfo` for the machine.

use gpumem_model::units::Bytes;
use sysinfo::MemoryRefreshKind;

use super::Freshness;

pub(super) struct Failure(pub(super) String);

pub(super) struct System {
    system: sysinfo::System,
}

impl System {
    pub(super) fn new() -> Self {
        Self {
            system: sysinfo::System::new(),
        }
    }

    /// Resident bytes of this process; the working set on Windows.
    #[expect(
        clippy::unused_self,
        reason = "on Linux it reads a file that stays open"
    )]
    pub(super) fn kept(&self, _freshness: Freshness) -> Result<Bytes, Failure> {
        let stats = memory_stats::memory_stats();
        stats
            .map(|stats| Bytes::new(stats.physical_mem as u64))
            .ok_or_else(|| Failure("the system does not tell this process's memory".to_owned()))
    }

    /// What is counted though the program does not use it.
    #[expect(
        clippy::unnecessary_wraps,
        reason = "on Linux it depends on the C library"
    )]
    pub(super) fn note() -> Option<&'static str> {
        Some("all resident memory counts as used: files, and freed memory that is kept for later")
    }

    /// Used by all processes, without caches that could be dropped.
    pub(super) fn used(&mut self) -> Result<Bytes, Failure> {
        let ram = MemoryRefreshKind::nothing().with_ram();
        self.system.refresh_memory_specifics(ram);
        let available = Bytes::new(self.system.available_memory());
        Ok(self.capacity()?.saturating_sub(available))
    }

    /// This system reports no container limit.
    #[expect(
        clippy::unused_self,
        reason = "on Linux it depends on the control group"
    )]
    pub(super) fn limit(&self) -> Option<Bytes> {
        None
    }

    /// The memory of the machine; known once its use has been read.
    pub(super) fn capacity(&self) -> Result<Bytes, Failure> {
        match self.system.total_memory() {
            0 => Err(Failure("the system reports no memory".to_owned())),
            n_bytes => Ok(Bytes::new(n_bytes)),
        }
    }
}
