//! Systems on which a copy of the process cannot be made: a look is taken in the process, or left
//! out.

use std::io;
use std::time::{Duration, Instant};

use gpumem_model::units::Bytes;

use crate::walk::WalkedMemory;

/// As on Linux.
pub(super) enum Side {
    /// Never, here.
    #[expect(dead_code, reason = "no child is made on this system")]
    Child(Link),
    /// Likewise.
    #[expect(dead_code, reason = "no child is made on this system")]
    Parent(Child),
}

/// One end of a line that is never made.
pub(super) enum Link {}

/// A copy that is never made.
pub(super) struct Child {
    pub(super) process: Process,
    pub(super) link: Link,
    pub(super) took: Duration,
    pub(super) resident: usize,
}

/// Likewise.
pub(super) enum Process {}

/// Why nothing was received.
#[expect(dead_code, reason = "there is nobody to listen to")]
pub(super) enum Silence {
    Late,
    Gone,
    Asleep,
    Paused,
}

/// No copy is made.
pub(super) fn has_many_mappings() -> bool {
    false
}

pub(super) fn split(_room: Option<Bytes>, _leaves_out: bool) -> io::Result<Side> {
    Err(io::Error::from(io::ErrorKind::Unsupported))
}

pub(super) fn probe_malloc() {}

pub(super) fn leave() -> ! {
    std::process::abort()
}

pub(super) fn survey(_touched: &WalkedMemory) -> Option<Vec<u64>> {
    None
}

pub(super) fn miss(_address: usize) {}

pub(super) fn learn(_report: &[u64], _resident: usize) {}

pub(super) fn address_space() -> Option<Bytes> {
    None
}

impl Process {
    pub(super) fn is_asleep(&self) -> bool {
        match *self {}
    }

    pub(super) fn ended(self) -> String {
        match self {}
    }
}

impl Link {
    pub(super) fn send(&self, _bytes: &[u8]) -> bool {
        match *self {}
    }

    pub(super) fn wait_until(&self, _until: Instant) -> Result<(), Silence> {
        match *self {}
    }

    pub(super) fn receive(
        &self,
        _place: &mut [u8],
        _wait: &mut dyn FnMut() -> Result<(), Silence>,
    ) -> Result<(), Silence> {
        match *self {}
    }
}
