//! Which blocks live after so many events of a trace.

use std::collections::HashMap;

use crate::segments::BlockState;
use crate::trace::Action;
use crate::units::Bytes;

use super::model::{DeviceSnapshot, Event, StackIdx};

/// Calls `visit` with the stack, the holder and the size of each block that lives after the first `n_events`, as
/// far as trace and segments tell: what was allocated before the trace and freed within it is not among them.
pub(super) fn each_live(
    device: &DeviceSnapshot,
    n_events: usize,
    mut visit: impl FnMut(Option<StackIdx>, Option<u32>, Bytes),
) {
    // Allocations in the trace that live, by their addresses.
    let mut live: HashMap<u64, &Event> = HashMap::new();
    let (before, after) = device.events.split_at(n_events.min(device.events.len()));
    for event in before {
        play(&mut live, event);
    }
    let living: Vec<(u64, &Event)> = live.iter().map(|(at, event)| (*at, *event)).collect();
    for event in after {
        play(&mut live, event);
    }
    let blocks = || device.segments.iter().flat_map(|segment| &segment.blocks);
    let held = || blocks().filter(|block| block.state == BlockState::Held);
    let holders = held().filter_map(|block| Some((block.address?, block.holder?)));
    let holders: HashMap<u64, u32> = holders.collect();
    for (address, event) in living {
        // The holder is that of the block which lies there at the end.
        let is_still_there = live
            .get(&address)
            .is_some_and(|it| std::ptr::eq(*it, event));
        let holder = holders.get(&address).filter(|_| is_still_there).copied();
        visit(event.stack, holder, event.size);
    }
    // Blocks that live at the end without an allocation in the trace lived all the time.
    for block in held() {
        let is_traced = |address| live.contains_key(&address);
        if device.events.is_empty() || block.address.is_some_and(|address| !is_traced(address)) {
            visit(block.stack, block.holder, block.requested);
        }
    }
}

fn play<'a>(live: &mut HashMap<u64, &'a Event>, event: &'a Event) {
    match (event.action, event.address) {
        (Some(Action::Alloc), Some(address)) => {
            live.insert(address, event);
        }
        (Some(Action::FreeRequested), Some(address)) => {
            live.remove(&address);
        }
        _ => (),
    }
}
