//! Calls, times and memory of operators and kernels.

use std::collections::HashMap;
use std::hash::Hash;

use serde::Serialize;

use super::kind::SpanKind;
use super::level_series::TraceLevelSeries;
use super::model::ChromeTrace;
use super::nesting::{NONE, Nesting};
use gpumem_model::named;
use gpumem_model::units::{ByteDelta, Bytes, Nanos};

/// Time and memory of one operator's calls, or of one kernel's runs.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Operator {
    /// Its name.
    pub name: String,
    /// Shapes of its inputs as recorded, the innermost module or Python function, if the rows are by these.
    pub within: Option<String>,
    /// Whether it is a call of the device's runtime or driver.
    pub is_runtime: bool,
    /// Number of calls.
    pub n_calls: usize,
    /// Sum of durations, without calls inside another call of the operator.
    #[serde(rename = "total_nanos")]
    pub total: Nanos,
    /// Sum of durations, without operators inside.
    #[serde(rename = "self_nanos")]
    pub own: Nanos,
    /// Time of the kernels that it launched itself.
    #[serde(rename = "device_nanos")]
    pub on_device: Nanos,
    /// What it allocated and freed itself, by device.
    pub memory: Vec<OperatorMemory>,
}

/// What an operator allocated itself on a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct OperatorMemory {
    /// Its index in [`TraceSummary::devices`](super::TraceSummary::devices).
    pub device_idx: usize,
    /// Allocated minus freed.
    #[serde(rename = "self_bytes")]
    pub kept: ByteDelta,
    /// Allocated.
    #[serde(rename = "allocated_bytes")]
    pub allocated: Bytes,
}

named! {
    /// How calls are grouped into rows.
    #[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
    pub enum GroupBy {
        /// One for each name.
        #[default]
        Name = "name",
        /// One for each name and shapes of inputs.
        Shapes = "shapes",
        /// One for each name and innermost module.
        Module = "module",
        /// One for each name and innermost Python function outside of torch.
        Function = "function",
    }
}

impl Operator {
    /// What it allocated itself on a device, if anything.
    pub fn memory_on(&self, device_idx: usize) -> Option<&OperatorMemory> {
        let mut memory = self.memory.iter();
        memory.find(|memory| memory.device_idx == device_idx)
    }
}

/// Rows by a key.
struct OperatorRows<K> {
    all: Vec<Operator>,
    numbers: HashMap<K, usize>,
    memory: HashMap<(usize, usize), usize>,
}

impl<K: Eq + Hash> OperatorRows<K> {
    fn new() -> Self {
        Self {
            all: Vec::new(),
            numbers: HashMap::new(),
            memory: HashMap::new(),
        }
    }

    fn number(&mut self, key: K, row: impl FnOnce() -> Operator) -> usize {
        *self.numbers.entry(key).or_insert_with(|| {
            self.all.push(row());
            self.all.len() - 1
        })
    }

    fn add_memory(&mut self, number: usize, device_idx: usize, bytes: i64) {
        let memory = &mut self.all[number].memory;
        let position = *self.memory.entry((number, device_idx)).or_insert_with(|| {
            memory.push(OperatorMemory {
                device_idx,
                kept: ByteDelta::new(0),
                allocated: Bytes::ZERO,
            });
            memory.len() - 1
        });
        let found = &mut memory[position];
        found.kept += ByteDelta::new(bytes);
        found.allocated += Bytes::new(u64::try_from(bytes).unwrap_or(0));
    }

    /// Longest own time first.
    fn sorted(mut self) -> Vec<Operator> {
        self.all.sort_by(|a, b| {
            let key =
                |row: &Operator| (std::cmp::Reverse(row.own), std::cmp::Reverse(row.on_device));
            key(a)
                .cmp(&key(b))
                .then_with(|| (&a.name, &a.within).cmp(&(&b.name, &b.within)))
        });
        self.all
    }
}

/// The operators' rows, longest own time first.
pub(super) fn operators(
    trace: &ChromeTrace,
    nesting: &Nesting,
    all_series: &[TraceLevelSeries],
    by: GroupBy,
) -> Vec<Operator> {
    let mut rows = OperatorRows::new();
    let is_operator = |kind| matches!(kind, SpanKind::Operator | SpanKind::Runtime);
    let key_of = |span: u32| {
        let label = trace.label_of(&trace.spans[span as usize]);
        let within = match by {
            GroupBy::Name => None,
            GroupBy::Shapes => Some(label.shapes),
            GroupBy::Module => Some(trace.name_of(nesting.spans[span as usize].module)),
            GroupBy::Function => Some(trace.name_of(nesting.spans[span as usize].function)),
        };
        (label.kind, label.name, within)
    };
    let row_of = |rows: &mut OperatorRows<_>, span: u32| {
        let (kind, name, within) = key_of(span);
        rows.number((kind, name, within), || Operator {
            name: trace.names.text(name).to_owned(),
            within: within
                .map(|within| trace.names.text(within).to_owned())
                .filter(|within| !within.is_empty()),
            is_runtime: kind == SpanKind::Runtime,
            ..Operator::default()
        })
    };
    // The time of a call inside another call of its row is part of the outer one.
    let is_inner = |span: u32| {
        let mut around = nesting.around(span);
        around.any(|outer| key_of(outer) == key_of(span))
    };
    for (number, span) in trace.spans.iter().enumerate() {
        if is_operator(trace.label_of(span).kind) {
            let row = row_of(&mut rows, number as u32);
            let row = &mut rows.all[row];
            let duration = nanos(span.duration);
            row.n_calls += 1;
            if !is_inner(number as u32) {
                row.total += duration;
            }
            row.own += duration.since(Nanos::new(nesting.spans[number].inside));
        }
    }
    for (kernel, launch) in launches(trace) {
        let operator = nesting.spans[launch as usize].operator;
        let launched_by = if operator == NONE { launch } else { operator };
        let row = row_of(&mut rows, launched_by);
        let row = &mut rows.all[row];
        row.on_device += nanos(trace.spans[kernel as usize].duration);
    }
    for (device_idx, series) in all_series.iter().enumerate() {
        for change in &series.changes {
            let operator = nesting.changes[*change as usize].operator;
            if operator != NONE {
                let row = row_of(&mut rows, operator);
                rows.add_memory(row, device_idx, trace.changes[*change as usize].bytes);
            }
        }
    }
    rows.sorted()
}

/// The kernels' rows, longest time first.
pub(super) fn kernels(trace: &ChromeTrace) -> Vec<Operator> {
    let mut rows = OperatorRows::new();
    for span in &trace.spans {
        let label = trace.label_of(span);
        if label.kind == SpanKind::Kernel {
            let row = rows.number(label.name, || Operator {
                name: trace.names.text(label.name).to_owned(),
                ..Operator::default()
            });
            let row = &mut rows.all[row];
            row.n_calls += 1;
            row.total += nanos(span.duration);
            (row.own, row.on_device) = (row.total, row.total);
        }
    }
    rows.sorted()
}

/// Kernels with the calls that launched them.
pub(super) fn launches(trace: &ChromeTrace) -> impl Iterator<Item = (u32, u32)> {
    let kind = |span: u32| trace.label_of(&trace.spans[span as usize]).kind;
    let calls = trace
        .links
        .iter()
        .filter(move |(_, span)| kind(*span) == SpanKind::Runtime);
    let calls: HashMap<i64, u32> = calls.copied().collect();
    trace
        .links
        .iter()
        .filter(move |(_, span)| kind(*span) == SpanKind::Kernel)
        .filter_map(move |(link, span)| Some((*span, *calls.get(link)?)))
}

pub(super) fn nanos(nanos: i64) -> Nanos {
    Nanos::new(u64::try_from(nanos).unwrap_or(0))
}
