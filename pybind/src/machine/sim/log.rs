//! The history of the simulated device.

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

use gpumem_model::trace::{Action, Event, History, Levels, Rounding, StackIdx};
use gpumem_model::units::Bytes;
use gpumem_sim::{CachingAllocator, Change};
use pyo3::Python;

use crate::base::call_stacks::Walker;
use crate::base::clock::Clock;

/// Of a longer history the end is kept.
const MAX_EVENTS: usize = 1 << 20;

/// What a simulated device does while its run is traced.
pub(crate) struct SimLog {
    clock: Clock,
    before: Levels,
    blocks_before: HashMap<u64, Bytes>,
    walker: Walker,
    events: Mutex<VecDeque<Event>>,
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

    /// Takes in what the allocator did for whoever is in `stack`.
    pub(crate) fn note(&self, changes: Vec<Change>, stack: Option<StackIdx>) {
        let at = self.clock.now();
        let mut events = self.events();
        for change in changes {
            if events.len() == MAX_EVENTS {
                events.pop_front();
            }
            events.push_back(Event {
                at,
                action: change.action,
                address: change.address,
                size: change.size,
                stack: stack.filter(|_| change.action == Action::Alloc),
            });
        }
    }

    /// The history up to now, of what `allocator` holds.
    pub(crate) fn end(self, allocator: &mut CachingAllocator) -> History {
        allocator.keep_log(false);
        let mut history = History::new(self.before, Rounding::Exact);
        history.after = Some(levels(allocator));
        history.blocks_before = self.blocks_before;
        history.blocks_after = blocks(allocator);
        let events = self.events.into_inner();
        history.events = events.unwrap_or_else(PoisonError::into_inner).into();
        history.is_cut = history.events.len() == MAX_EVENTS;
        self.walker.into_stacks().into_history(&mut history);
        history
    }

    fn events(&self) -> MutexGuard<'_, VecDeque<Event>> {
        self.events.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn levels(allocator: &CachingAllocator) -> Levels {
    let stats = allocator.stats();
    Levels {
        allocated: stats.allocated,
        reserved: stats.reserved,
    }
}

fn blocks(allocator: &CachingAllocator) -> HashMap<u64, Bytes> {
    let held = allocator.segments().flat_map(|segment| segment.blocks);
    let held = held.filter(|block| block.held_as.is_some());
    held.map(|block| (block.address, block.size)).collect()
}
