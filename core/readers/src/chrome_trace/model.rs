//! A trace as it is in the file, without events that do not count.

use std::collections::HashMap;

use serde::Serialize;

use super::device::TraceDevice;
use super::function;
use super::kind::SpanKind;
use super::names::InternedNames;
use crate::cell_files::CellFiles;

/// Times are nanoseconds, as recorded.
#[derive(Debug)]
pub(super) struct ChromeTrace {
    pub(super) names: InternedNames,
    pub(super) threads: Vec<Thread>,
    pub(super) labels: Vec<SpanLabel>,
    pub(super) spans: Vec<TraceSpan>,
    /// Numbers that tie a kernel to the call that launched it, by span.
    pub(super) links: Vec<(i64, u32)>,
    pub(super) changes: Vec<TraceChange>,
    /// Requests that failed.
    pub(super) failed: Vec<TraceChange>,
    pub(super) n_events: usize,
    /// Whether the file has fields that PyTorch's profiler writes beside the events.
    pub(super) has_header: bool,
    /// Whether these fields say that memory was recorded.
    pub(super) profiled_memory: bool,
    pub(super) worker: Worker,
    /// Models and sizes of devices, by number.
    pub(super) properties: Vec<Properties>,
    thread_numbers: HashMap<Thread, u32>,
    label_numbers: HashMap<SpanLabel, u32>,
}

/// Names of a process and a thread in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Thread {
    pub(super) process: u32,
    pub(super) thread: u32,
}

/// What spans have in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct SpanLabel {
    pub(super) kind: SpanKind,
    pub(super) name: u32,
    pub(super) shapes: u32,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct TraceSpan {
    pub(super) start: i64,
    pub(super) duration: i64,
    pub(super) thread: u32,
    pub(super) label: u32,
}

impl TraceSpan {
    pub(super) const fn end(&self) -> i64 {
        self.start.saturating_add(self.duration)
    }
}

/// An allocation, or with negative bytes a free.
#[derive(Debug, Clone, Copy)]
pub(super) struct TraceChange {
    pub(super) at: i64,
    pub(super) bytes: i64,
    pub(super) address: Option<i64>,
    pub(super) allocated: Option<u64>,
    pub(super) reserved: Option<u64>,
    pub(super) device: TraceDevice,
    pub(super) thread: u32,
}

/// The worker that wrote the trace, if there are several.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Worker {
    /// Its rank.
    pub rank: Option<u64>,
    /// How many there are.
    pub world_size: Option<u64>,
    /// How they talk: `nccl`.
    pub backend: Option<String>,
}

/// A device's model and size.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Properties {
    pub(super) number: Option<i64>,
    pub(super) name: String,
    pub(super) total: Option<u64>,
}

impl ChromeTrace {
    pub(super) fn new() -> Self {
        Self {
            names: InternedNames::new(),
            threads: Vec::new(),
            labels: Vec::new(),
            spans: Vec::new(),
            links: Vec::new(),
            changes: Vec::new(),
            failed: Vec::new(),
            n_events: 0,
            has_header: false,
            profiled_memory: false,
            worker: Worker::default(),
            properties: Vec::new(),
            thread_numbers: HashMap::new(),
            label_numbers: HashMap::new(),
        }
    }

    /// Whether nothing in it comes from PyTorch's profiler.
    pub(super) fn is_foreign(&self) -> bool {
        let is_without = self.spans.is_empty() && self.changes.is_empty() && self.failed.is_empty();
        is_without && self.n_events > 0 && !self.has_header
    }

    pub(super) fn thread(&mut self, process: &str, thread: &str) -> u32 {
        let thread = Thread {
            process: self.names.number(process),
            thread: self.names.number(thread),
        };
        let Self {
            threads,
            thread_numbers,
            ..
        } = self;
        number_of(thread, threads, thread_numbers)
    }

    pub(super) fn label(&mut self, kind: SpanKind, name: &str, shapes: &str) -> u32 {
        let label = SpanLabel {
            kind,
            name: self.names.number(name),
            shapes: self.names.number(shapes),
        };
        let Self {
            labels,
            label_numbers,
            ..
        } = self;
        number_of(label, labels, label_numbers)
    }

    pub(super) fn label_of(&self, span: &TraceSpan) -> SpanLabel {
        self.labels[span.label as usize]
    }

    /// The number of a span's name; the empty text's number for no span.
    pub(super) fn name_of(&self, span: u32) -> u32 {
        let span = self.spans.get(span as usize);
        span.map_or(0, |span| self.label_of(span).name)
    }

    /// Shortens functions' names once every event is read.
    pub(super) fn name_functions(&mut self, cells: &CellFiles) {
        for label in &mut self.labels {
            if label.kind == SpanKind::Function {
                let words = function::display_name(self.names.text(label.name), cells);
                label.name = self.names.number(&words);
            }
        }
    }

    pub(super) fn process_of(&self, thread: u32) -> u32 {
        self.threads[thread as usize].process
    }

    /// About how many bytes reading and summing it up takes.
    pub(super) fn n_bytes(&self) -> usize {
        let rows = self.threads.len() + 4 * self.labels.len();
        self.names.n_bytes()
            + 100 * rows
            + 115 * self.spans.len()
            + 30 * self.links.len()
            + 265 * (self.changes.len() + self.failed.len())
    }
}

fn number_of<T: Copy + Eq + std::hash::Hash>(
    item: T,
    items: &mut Vec<T>,
    numbers: &mut HashMap<T, u32>,
) -> u32 {
    *numbers.entry(item).or_insert_with(|| {
        items.push(item);
        u32::try_from(items.len() - 1).unwrap_or(u32::MAX)
    })
}
