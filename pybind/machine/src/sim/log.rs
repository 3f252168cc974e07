//! The history of the simulated device.

use std::collections::{HashMap, VecDeque};
use std::sync::Mutex;

use gpumem_model::trace::{Action, AllocatorEvent, History, HistoryLevels, Rounding, StackIdx};
use gpumem_model::units::Bytes;
use gpumem_sim::{AllocatorChange, CachingAllocator};
use pyo3::Python;

use gpumem_base::call_stacks::Walker;
use gpumem_base::clock::Clock;
use gpumem_base::locks::{lock, unpoisoned};

/// The most events of a history; only the latest are kept.
const MAX_EVENTS: usize = 1 << 20;

/// What a simulated device does while its run is traced.
pub(crate) struct SimLog {
    clock: Clock,
    before: HistoryLevels,
    blocks_before: HashMap<u64, Bytes>,
    walker: Walker,
    events: Mutex<VecDeque<AllocatorEvent>>,
}

impl SimLog {
    /// Begins from what `allocator` holds now, and has it keep its log.
    pub(crate) fn begin(clock: Clock, allocator: &mut CachingAllocator) -> Self {
        allocator.keep_log(true);
        Self {
            clock,
            before: levels(allocator),
            blocks_before: blocks(allocator),
            walker: Walker::default(),
            events: Mutex::default(),
        }
    }

    /// Who is about to ask for a block. A failure of ours costs the stack, not the block.
    pub(crate) fn stack(&self) -> Option<StackIdx> {
        Python::try_attach(|py| self.walker.stack(py).ok().flatten()).flatten()
    }

    /// Records an action of the allocator with its call stack.
    pub(crate) fn note(&self, changes: Vec<AllocatorChange>, stack: Option<StackIdx>) {
        let at = self.clock.now();
        let mut events = lock(&self.events);
        for change in changes {
            if events.len() == MAX_EVENTS {
                events.pop_front();
            }
            events.push_back(AllocatorEvent {
                at,
                action: change.action,
                address: change.address,
                size: change.size,
                stack: stack.filter(|_| change.action == Action::Alloc),
            });
        }
    }

    /// The history up to now of the allocations that `allocator` holds.
    pub(crate) fn end(self, allocator: &mut CachingAllocator) -> History {
        allocator.keep_log(false);
        let mut history = History::new(self.before, Rounding::Exact);
        history.after = Some(levels(allocator));
        history.blocks_before = self.blocks_before;
        history.blocks_after = blocks(allocator);
        let events = self.events.into_inner();
        history.events = unpoisoned(events).into();
        history.is_cut = history.events.len() == MAX_EVENTS;
        self.walker.into_stacks().into_history(&mut history);
        history
    }
}

fn levels(allocator: &CachingAllocator) -> HistoryLevels {
    let stats = allocator.stats();
    HistoryLevels {
        allocated: stats.allocated,
        reserved: stats.reserved,
    }
}

fn blocks(allocator: &CachingAllocator) -> HashMap<u64, Bytes> {
    let held = allocator.segments().flat_map(|segment| segment.blocks);
    let held = held.filter(|block| block.held_as.is_some());
    held.map(|block| (block.address, block.size)).collect()
}
