//! How long what a trace allocates lives, by line.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::fmt;

use crate::trace::Action;
use crate::units::{Bytes, Nanos};
use crate::wording::count;

use super::code_line::{CodeLine, line_of};
use super::model::{DeviceSnapshot, Event, Frame};
use super::summary::code_line;

/// The blocks that one line allocated in the trace, and how long they lived. A block that nobody has freed
/// lives until the trace's end. Example: [`summary`](super::summary()).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lifetimes {
    /// The innermost line of the stack in user code; `None` if no stack was recorded.
    pub line: Option<CodeLine>,
    /// How many there were.
    pub n_blocks: usize,
    /// Their bytes together, as requested.
    pub bytes: Bytes,
    /// How many of them were not freed.
    pub n_left: usize,
    /// The bytes of these.
    pub left: Bytes,
    /// Half of the blocks lived no longer.
    pub median: Lived,
    /// What the longest of them lived.
    pub longest: Lived,
    /// The longest time from a block's free until no stream used it; `None` if nothing waited.
    pub longest_wait: Option<Lived>,
}

/// A part of a trace. Example: [`Lifetimes`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Lived {
    /// In microseconds; `None` if the trace has no times.
    pub micros: Option<u64>,
    /// In events.
    pub n_events: usize,
}

impl Lived {
    fn between(events: &[Event], from: usize, to: usize) -> Self {
        let at = |event: usize| events.get(event)?.at_micros;
        let micros = at(from).zip(at(to));
        Self {
            micros: micros.and_then(|(from, to)| to.checked_sub(from)),
            n_events: to - from,
        }
    }

    /// What a byte that lives so long costs: its microseconds, else its events.
    fn cost(self) -> u64 {
        self.micros.unwrap_or(self.n_events as u64)
    }
}

impl fmt::Display for Lived {
    /// `1.5 s`, else `3 events`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.micros {
            Some(micros) => Nanos::new(micros.saturating_mul(1000)).fmt(f),
            None => count(self.n_events, "event").fmt(f),
        }
    }
}

/// The blocks of one line while they are counted.
#[derive(Default)]
struct Tally {
    lived: Vec<Lived>,
    bytes: Bytes,
    n_left: usize,
    left: Bytes,
    longest_wait: Option<Lived>,
    cost: u128,
}

/// The lines whose blocks took most memory for most of the time first.
pub(super) fn lifetimes(device: &DeviceSnapshot, lines: &[Option<Frame<'_>>]) -> Vec<Lifetimes> {
    let events = &device.events;
    let last = events.len().saturating_sub(1);
    let mut tallies: HashMap<Option<Frame<'_>>, Tally> = HashMap::new();
    // The event that allocated what lives at an address, and the one that freed what waits there.
    let (mut living, mut waiting) = (HashMap::new(), HashMap::new());
    for (at, event) in events.iter().enumerate() {
        let Some(address) = event.address else {
            continue;
        };
        match event.action {
            Some(Action::Alloc) => {
                living.insert(address, at);
            }
            Some(Action::FreeRequested) => {
                if let Some(from) = living.remove(&address) {
                    let tally = tallies
                        .entry(line_of(lines, events[from].stack))
                        .or_default();
                    tally.add(&events[from], Lived::between(events, from, at));
                    waiting.insert(address, (from, at));
                }
            }
            Some(Action::FreeCompleted) => {
                if let Some((from, freed)) = waiting.remove(&address)
                    && at > freed + 1
                    && let Some(tally) = tallies.get_mut(&line_of(lines, events[from].stack))
                {
                    let waited = Lived::between(events, freed, at);
                    tally.longest_wait = tally.longest_wait.max(Some(waited));
                }
            }
            _ => (),
        }
    }
    for from in living.into_values() {
        let event = &events[from];
        let tally = tallies.entry(line_of(lines, event.stack)).or_default();
        tally.add(event, Lived::between(events, from, last));
        tally.n_left += 1;
        tally.left += event.size;
    }
    let mut tallies: Vec<_> = tallies.into_iter().collect();
    tallies.sort_by_key(|(line, tally)| (Reverse(tally.cost), *line));
    tallies
        .into_iter()
        .map(|(line, tally)| tally.summed_up(line.map(code_line)))
        .collect()
}

impl Tally {
    fn add(&mut self, event: &Event, lived: Lived) {
        self.lived.push(lived);
        self.bytes += event.size;
        self.cost = self
            .cost
            .saturating_add(u128::from(event.size.get()) * u128::from(lived.cost()));
    }

    fn summed_up(mut self, line: Option<CodeLine>) -> Lifetimes {
        self.lived.sort_unstable();
        let middle = self.lived.len().saturating_sub(1) / 2;
        Lifetimes {
            line,
            n_blocks: self.lived.len(),
            bytes: self.bytes,
            n_left: self.n_left,
            left: self.left,
            median: self.lived.get(middle).copied().unwrap_or_default(),
            longest: self.lived.last().copied().unwrap_or_default(),
            longest_wait: self.longest_wait,
        }
    }
}
