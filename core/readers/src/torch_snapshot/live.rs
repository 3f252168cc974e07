//! Blocks that live after a number of events of a trace.

use std::collections::HashMap;

use gpumem_model::segments::BlockState;
use gpumem_model::trace::Action;
use gpumem_model::units::Bytes;

use super::model::{DeviceSnapshot, SnapshotStackIdx};

/// A block that lives after at least `from` and fewer than `until` events of the trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Life {
    /// 0 if it existed before the trace.
    pub(super) from: u32,
    /// `u32::MAX` if it exists at the end.
    pub(super) until: u32,
    pub(super) stack: Option<SnapshotStackIdx>,
    pub(super) holder: Option<u32>,
    /// As requested.
    pub(super) size: Bytes,
}

impl Life {
    /// Whether it lives after `n_events` events.
    pub(super) fn is_at(&self, n_events: usize) -> bool {
        (self.from..self.until).contains(&number(n_events))
    }
}

/// The known blocks of a device. Blocks that were allocated before the trace and freed within it are missing.
pub(super) fn lives(device: &DeviceSnapshot) -> Vec<Life> {
    let mut lives: Vec<Life> = Vec::new();
    // The live block at each address.
    let mut living: HashMap<u64, usize> = HashMap::new();
    for (at, event) in device.events.iter().enumerate() {
        let (Some(address), after) = (event.address, number(at + 1)) else {
            continue;
        };
        let gone = match event.action {
            Some(Action::Alloc) => {
                lives.push(Life {
                    from: after,
                    until: u32::MAX,
                    stack: event.stack,
                    holder: None,
                    size: event.size,
                });
                living.insert(address, lives.len() - 1)
            }
            Some(Action::FreeRequested) => living.remove(&address),
            _ => None,
        };
        if let Some(gone) = gone {
            lives[gone].until = after;
        }
    }
    let blocks = device.segments.iter().flat_map(|segment| &segment.blocks);
    for block in blocks.filter(|block| block.state == BlockState::Held) {
        let traced = block.address.and_then(|address| living.get(&address));
        match traced {
            Some(&traced) => lives[traced].holder = block.holder,
            // Without an allocation in the trace it existed before.
            None if block.address.is_some() || device.events.is_empty() => lives.push(Life {
                from: 0,
                until: u32::MAX,
                stack: block.stack,
                holder: block.holder,
                size: block.requested,
            }),
            None => (),
        }
    }
    lives
}

/// No file has more than `u32::MAX` events.
fn number(n_events: usize) -> u32 {
    u32::try_from(n_events).unwrap_or(u32::MAX - 1)
}
