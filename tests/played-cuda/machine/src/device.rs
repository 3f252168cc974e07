//! A card, or a part of one.

use crate::State;
use crate::ledger::{self, Place};
use crate::uuid;

/// More cards than a state file may have.
pub const MAX_GPUS: usize = 16;
/// Parts of a card that MIG divides.
pub const MAX_PARTS: usize = 7;

/// The capacity of a card that the file does not give one.
const DEFAULT_BYTES: u64 = 8 << 30;
const DEFAULT_NAME: &str = "Played GPU";
const DEFAULT_CAPABILITY: u64 = 80;

/// A card as the state file numbers it, which is as on the bus, or one of the parts
/// that MIG divides it into.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Device {
    /// The number of the card.
    pub gpu: usize,
    /// The number of the part.
    pub part: Option<usize>,
}

impl Device {
    /// A whole card.
    pub fn whole(gpu: usize) -> Self {
        Self { gpu, part: None }
    }

    /// The start of its keys: `gpu0` or `gpu0.mig1`.
    pub fn key(self) -> String {
        match self.part {
            None => format!("gpu{}", self.gpu),
            Some(part) => format!("gpu{}.mig{part}", self.gpu),
        }
    }

    /// What the file says of it.
    pub fn text(self, state: &State, key: &str) -> Option<String> {
        state
            .text(&format!("{}.{key}", self.key()))
            .map(str::to_owned)
    }

    /// Bytes that the file gives as MiB.
    pub fn n_bytes(self, state: &State, key: &str) -> Option<u64> {
        state.n_bytes(&format!("{}.{key}", self.key()))
    }

    /// `GPU-…` or `MIG-…`.
    pub fn uuid(self, state: &State) -> String {
        let known = self.text(state, "uuid");
        known.unwrap_or_else(|| uuid::of_gpu(self.gpu))
    }

    /// The maker's name; a part may have its own.
    pub fn name(self, state: &State) -> String {
        let known = self.text(state, "name");
        let known = known.or_else(|| Self::whole(self.gpu).text(state, "name"));
        known.unwrap_or_else(|| DEFAULT_NAME.to_owned())
    }

    /// Ten times the compute capability: 80, 90, 120.
    pub fn capability(self, state: &State) -> u64 {
        let key = format!("gpu{}.capability", self.gpu);
        state.number(&key).unwrap_or(DEFAULT_CAPABILITY)
    }

    /// All its bytes, with those that the driver keeps.
    pub fn total(self, state: &State) -> u64 {
        self.n_bytes(state, "total_mib").unwrap_or(DEFAULT_BYTES)
    }

    /// Bytes that the driver keeps.
    pub fn reserved(self, state: &State) -> u64 {
        self.n_bytes(state, "reserved_mib").unwrap_or(0)
    }

    /// Bytes that processes could have.
    pub fn usable(self, state: &State) -> u64 {
        self.total(state).saturating_sub(self.reserved(state))
    }

    /// Bytes that processes have: those of the file's, and those of the played libraries.
    pub fn used(self, state: &State) -> u64 {
        let others = self.n_bytes(state, "used_mib").unwrap_or(0);
        others.saturating_add(ledger::of_machine().used(self.place()))
    }

    /// Bytes of a primary context.
    pub fn context(self, state: &State) -> u64 {
        let key = format!("gpu{}.context_mib", self.gpu);
        state.n_bytes(&key).unwrap_or(0)
    }

    /// Takes memory for this process; `false` if there is not so much.
    pub fn take(self, state: &State, n_bytes: u64) -> bool {
        let others = self.n_bytes(state, "used_mib").unwrap_or(0);
        let limit = self.usable(state).saturating_sub(others);
        ledger::of_machine().take(self.place(), n_bytes, limit)
    }

    /// Gives memory back.
    pub fn give(self, n_bytes: u64) {
        ledger::of_machine().give(self.place(), n_bytes);
    }

    /// The number of the bus that its card is on.
    pub fn bus(self) -> usize {
        0x10 + self.gpu
    }

    /// Its column in the ledger.
    pub fn place(self) -> Place {
        Place::new(self)
    }

    /// The parts that the file divides a card into.
    pub fn parts(self, state: &State) -> Vec<Self> {
        let part = |idx| Self {
            gpu: self.gpu,
            part: Some(idx),
        };
        (0..MAX_PARTS)
            .map(part)
            .filter(|it| it.text(state, "uuid").is_some())
            .collect()
    }
}

/// The machine's cards, as on the bus: `n_gpus`, or as many as have a UUID, or one
/// if no file describes the machine.
pub fn gpus(state: &State) -> impl Iterator<Item = Device> {
    let has_uuid = |gpu: &usize| state.text(&format!("gpu{gpu}.uuid")).is_some();
    let n_gpus = match (state.number("n_gpus"), State::path()) {
        (Some(n_gpus), _) => n_gpus as usize,
        (None, None) => 1,
        (None, Some(_)) => (0..MAX_GPUS).take_while(has_uuid).count(),
    };
    (0..n_gpus.min(MAX_GPUS)).map(Device::whole)
}
