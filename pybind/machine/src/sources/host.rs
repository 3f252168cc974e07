//! The host's memory: what this process keeps, use of the machine or of the
//! container, and what either has.

use gpumem_model::recording::{DeviceKey, DeviceKind, DriverLevels, Level, Source, Unknown};
use gpumem_model::units::Bytes;

use super::visible::Visibility;
use super::{Answer, DriverSource, SourceDevice};

#[cfg(target_os = "linux")]
mod malloc;
#[cfg(not(target_os = "linux"))]
#[path = "host/portable.rs"]
mod system;
#[cfg(target_os = "linux")]
#[path = "host/linux.rs"]
mod system;

#[cfg(target_os = "linux")]
pub use malloc::keep_still as keep_malloc_still;
use system::{Failure, System};

/// How old a figure may be that can take long to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Freshness {
    /// As new as its cost allows: something begins or ends.
    Now,
    /// One of many samples.
    Recent,
}

/// The host, which is always there.
pub(super) struct HostSource {
    system: System,
}

impl HostSource {
    pub(super) fn new() -> Self {
        Self {
            system: System::new(),
        }
    }
}

impl DriverSource for HostSource {
    fn source(&self) -> Source {
        Source::Host
    }

    fn devices(&mut self, _visibility: &Visibility) -> Answer {
        Ok(vec![SourceDevice {
            key: "host".into(),
            label: "host".to_owned(),
            name: "Host memory".to_owned(),
            kind: DeviceKind::Host,
        }])
    }

    fn read(&mut self, _key: &DeviceKey) -> DriverLevels {
        DriverLevels {
            process_used: level(self.system.kept(Freshness::Now)),
            device_used: level(self.system.used()),
            capacity: level(self.system.capacity()),
            container_limit: self.system.limit().into(),
            ..DriverLevels::default()
        }
    }

    /// This process's bytes alone: the machine's use costs several times as much to read.
    fn sample(&mut self, _key: &DeviceKey) -> DriverLevels {
        DriverLevels {
            process_used: level(self.system.kept(Freshness::Recent)),
            ..DriverLevels::default()
        }
    }
}

/// What the figure of this process counts beyond what it keeps, on this system.
pub(super) fn note() -> Option<&'static str> {
    System::note()
}

/// The memory that the host has left.
pub struct Memory(System);

impl Default for Memory {
    /// The memory of this machine, or of the container around this process.
    fn default() -> Self {
        Self(System::new())
    }
}

impl Memory {
    /// Available without taking it from others; `None` if the system does not report it.
    pub fn left(&mut self) -> Option<Bytes> {
        let used = self.0.used().ok()?;
        let all = self.0.limit().or_else(|| self.0.capacity().ok())?;
        Some(all.saturating_sub(used))
    }
}

fn level(figure: Result<Bytes, Failure>) -> Level {
    figure.map_or_else(
        |Failure(words)| Level::Unknown(Unknown::Failed(words.into())),
        Level::Known,
    )
}
