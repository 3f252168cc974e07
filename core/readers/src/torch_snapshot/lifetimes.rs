//! Lifetimes of the blocks that a trace allocates, by line.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::fmt;

use serde::ser::SerializeStruct;
use serde::{Serialize, Serializer};

use crate::code_line::CodeLine;
use gpumem_model::trace::Action;
use gpumem_model::units::count;
use gpumem_model::units::{Bytes, Nanos};

use super::lines::line_of;
use super::live::Life;
use super::model::{DeviceSnapshot, SnapshotEvent, SnapshotFrame};
use super::summary::code_line;

/// The blocks that one line allocated in the trace, and their lifetimes. A block that is never freed lives until
/// the trace's end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LineLifetimes {
    /// The innermost line of the stack in user code; `None` if no stack was recorded.
    pub line: Option<CodeLine>,
    /// Number of blocks.
    pub n_blocks: usize,
    /// Their total bytes, as requested.
    pub bytes: Bytes,
    /// Number of blocks that were not freed.
    pub n_left: usize,
    /// Bytes of the blocks that were not freed.
    #[serde(rename = "left_bytes")]
    pub left: Bytes,
    /// The median lifetime.
    pub median: TraceDuration,
    /// The longest lifetime.
    pub longest: TraceDuration,
    /// The longest time from a block's free until no stream used it; `None` if nothing waited.
    pub longest_wait: Option<TraceDuration>,
}

/// A duration in a trace.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct TraceDuration {
    /// In microseconds; `None` if the trace has no times.
    pub micros: Option<u64>,
    /// In events.
    pub n_events: usize,
}

/// The events first.
impl Serialize for TraceDuration {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fields = serializer.serialize_struct("TraceDuration", 2)?;
        fields.serialize_field("n_events", &self.n_events)?;
        fields.serialize_field("micros", &self.micros)?;
        fields.end()
    }
}

impl TraceDuration {
    pub(super) fn between(events: &[SnapshotEvent], from: usize, to: usize) -> Self {
        let at = |event: usize| events.get(event)?.at_micros;
        let micros = at(from).zip(at(to));
        Self {
            micros: micros.and_then(|(from, to)| to.checked_sub(from)),
            n_events: to - from,
        }
    }

    /// The cost of a byte that lives this long: its microseconds, else its events.
    fn cost(self) -> u64 {
        self.micros.unwrap_or(self.n_events as u64)
    }
}

impl fmt::Display for TraceDuration {
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
struct LifetimeTally {
    lived: Vec<TraceDuration>,
    bytes: Bytes,
    n_left: usize,
    left: Bytes,
    longest_wait: Option<TraceDuration>,
    cost: u128,
}

/// Lines by bytes × lifetime, the highest first.
pub(super) fn lifetimes(
    device: &DeviceSnapshot,
    lives: &[Life],
    lines: &[Option<SnapshotFrame<'_>>],
) -> Vec<LineLifetimes> {
    let events = &device.events;
    let waits = waits(events);
    let mut tallies: HashMap<Option<SnapshotFrame<'_>>, LifetimeTally> = HashMap::new();
    for life in lives.iter().filter(|life| life.from > 0) {
        let (from, until) = (life.from as usize, life.until as usize);
        let lived = TraceDuration::between(events, from - 1, until.min(events.len()) - 1);
        let tally = tallies.entry(line_of(lines, life.stack)).or_default();
        tally.add(life, lived);
        if until <= events.len()
            && let Some(waited) = waits.get(&until)
        {
            tally.longest_wait = tally.longest_wait.max(Some(*waited));
        }
    }
    let mut tallies: Vec<_> = tallies.into_iter().collect();
    tallies.sort_by_key(|(line, tally)| (Reverse(tally.cost), *line));
    tallies
        .into_iter()
        .map(|(line, tally)| tally.summed_up(line.map(code_line)))
        .collect()
}

/// How long streams still used freed blocks, by the number of events up to the free; blocks freed at once are left out.
fn waits(events: &[SnapshotEvent]) -> HashMap<usize, TraceDuration> {
    let mut waiting: HashMap<u64, usize> = HashMap::new();
    let mut waits = HashMap::new();
    for (at, event) in events.iter().enumerate() {
        match (event.action, event.address) {
            (Some(Action::FreeRequested), Some(address)) => {
                waiting.insert(address, at);
            }
            (Some(Action::FreeCompleted), Some(address)) => {
                let freed = waiting.remove(&address);
                if let Some(freed) = freed.filter(|freed| at > freed + 1) {
                    waits.insert(freed + 1, TraceDuration::between(events, freed, at));
                }
            }
            _ => (),
        }
    }
    waits
}

impl LifetimeTally {
    fn add(&mut self, life: &Life, lived: TraceDuration) {
        self.lived.push(lived);
        self.bytes += life.size;
        let cost = u128::from(life.size.get()) * u128::from(lived.cost());
        self.cost = self.cost.saturating_add(cost);
        if life.until == u32::MAX {
            self.n_left += 1;
            self.left += life.size;
        }
    }

    fn summed_up(mut self, line: Option<CodeLine>) -> LineLifetimes {
        self.lived.sort_unstable();
        let middle = self.lived.len().saturating_sub(1) / 2;
        LineLifetimes {
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
