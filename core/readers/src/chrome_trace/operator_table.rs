//! The table of operators and kernels: of the whole trace, or of the calls that begin within a part of it.

use std::cmp::Ordering;
use std::collections::HashMap;

use super::explorer::TraceExplorer;
use super::kind::SpanKind;
use super::model::TraceSpan;
use super::nesting::NONE;
use super::operators::{GroupBy, launches, nanos};
use gpumem_model::named;
use gpumem_model::units::{ByteDelta, Nanos};

/// Rows of operators and kernels, and which call belongs to which.
#[derive(Debug)]
pub struct OperatorTable {
    /// Name, and shapes or module, by row.
    rows: Vec<(SpanKind, u32, u32)>,
    /// By span: its row, or [`NONE`].
    row_of: Vec<u32>,
    /// By span: nanoseconds of the kernels that it launched itself; for a kernel, its own time.
    on_device: Vec<i64>,
    /// By span: bytes allocated minus freed, by itself and with those inside.
    own_memory: Vec<i64>,
    memory: Vec<i64>,
    /// By span: the innermost call of the same row around it, or [`NONE`].
    outer: Vec<u32>,
}

/// What a row stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RowKind {
    /// An operator on the CPU.
    Operator,
    /// A call of the device's runtime or driver.
    Runtime,
    /// A kernel, copy or fill on a device.
    Kernel,
}

/// Time and memory of a row's calls.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct OperatorFigures {
    /// Number of calls.
    pub n_calls: usize,
    /// Sum of durations, without calls inside another call of the row.
    pub total: Nanos,
    /// Sum of durations, without operators inside.
    pub own: Nanos,
    /// Time of the kernels that it launched itself; for a kernel, its own time.
    pub on_device: Nanos,
    /// Allocated minus freed, by it and by operators inside.
    pub memory: ByteDelta,
    /// Allocated minus freed, without operators inside.
    pub own_memory: ByteDelta,
}

named! {
    /// What rows are sorted by.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum OperatorColumn {
        /// The name.
        Name = "name",
        /// Shapes of inputs, or the module.
        Within = "within",
        /// Number of calls.
        Calls = "calls",
        /// From begin to end.
        TotalTime = "total",
        /// Without operators inside.
        SelfTime = "self",
        /// Of the kernels that it launched.
        DeviceTime = "device",
        /// With operators inside.
        Memory = "memory",
        /// Without these.
        SelfMemory = "self-memory",
    }
}

/// Which rows are shown, and in which order.
#[derive(Debug, Clone, PartialEq)]
pub struct OperatorView {
    /// Rows that contain this text in name, shapes or module, ignoring case; all if empty.
    pub search: String,
    /// Only kernels, or only operators; `None` for both.
    pub is_kernel: Option<bool>,
    /// What they are sorted by.
    pub column: OperatorColumn,
    /// The largest first; for texts, the last.
    pub is_descending: bool,
}

impl OperatorTable {
    pub(super) fn new(explorer: &TraceExplorer, by: GroupBy, device_idx: usize) -> Self {
        let TraceExplorer { trace, nesting, .. } = explorer;
        let n_spans = trace.spans.len();
        let mut table = Self {
            rows: Vec::new(),
            row_of: Vec::with_capacity(n_spans),
            on_device: vec![0; n_spans],
            own_memory: vec![0; n_spans],
            memory: Vec::new(),
            outer: Vec::new(),
        };
        let mut numbers = HashMap::new();
        for (number, span) in trace.spans.iter().enumerate() {
            let label = trace.label_of(span);
            if matches!(
                label.kind,
                SpanKind::Range | SpanKind::Module | SpanKind::Function
            ) {
                table.row_of.push(NONE);
                continue;
            }
            let within = match by {
                GroupBy::Shapes => label.shapes,
                GroupBy::Module if label.kind != SpanKind::Kernel => {
                    trace.name_of(nesting.spans[number].module)
                }
                GroupBy::Function if label.kind != SpanKind::Kernel => {
                    trace.name_of(nesting.spans[number].function)
                }
                _ => 0,
            };
            let key = (label.kind, label.name, within);
            let row = *numbers.entry(key).or_insert_with(|| {
                table.rows.push(key);
                table.rows.len() - 1
            });
            table.row_of.push(row as u32);
        }
        for (number, span) in trace.spans.iter().enumerate() {
            if trace.label_of(span).kind == SpanKind::Kernel {
                table.on_device[number] = span.duration;
            }
        }
        for (kernel, launch) in launches(trace) {
            let operator = nesting.spans[launch as usize].operator;
            let launched_by = if operator == NONE { launch } else { operator };
            add(
                &mut table.on_device,
                launched_by,
                trace.spans[kernel as usize].duration,
            );
        }
        for change in explorer.changes(device_idx) {
            let operator = nesting.changes[change as usize].operator;
            let bytes = trace.changes[change as usize].bytes;
            add(&mut table.own_memory, operator, bytes);
        }
        let outer = |(number, row): (usize, &u32)| {
            let mut around = nesting.around(number as u32);
            around
                .find(|outer| table.row_of[*outer as usize] == *row)
                .unwrap_or(NONE)
        };
        let outer = table.row_of.iter().enumerate().map(outer).collect();
        table.outer = outer;
        table.memory.clone_from(&table.own_memory);
        // Inner spans come after the spans around them.
        for &span in nesting.order.iter().rev() {
            let bytes = table.memory[span as usize];
            add(
                &mut table.memory,
                nesting.spans[span as usize].operator,
                bytes,
            );
        }
        table
    }

    /// How many rows there are.
    pub fn n_rows(&self) -> usize {
        self.rows.len()
    }

    /// What a row stands for.
    pub fn kind(&self, row: usize) -> RowKind {
        match self.rows[row].0 {
            SpanKind::Kernel => RowKind::Kernel,
            SpanKind::Runtime => RowKind::Runtime,
            SpanKind::Operator | SpanKind::Range | SpanKind::Module | SpanKind::Function => {
                RowKind::Operator
            }
        }
    }

    /// What a row's calls are.
    pub fn name<'t>(&self, explorer: &'t TraceExplorer, row: usize) -> &'t str {
        explorer.trace.names.text(self.rows[row].1)
    }

    /// Shapes of inputs or the innermost module; empty if the rows are not by these, or without any.
    pub fn within<'t>(&self, explorer: &'t TraceExplorer, row: usize) -> &'t str {
        explorer.trace.names.text(self.rows[row].2)
    }

    /// What each row's calls took: all of them, or those that begin within two instants after the trace's
    /// start.
    pub fn figures(
        &self,
        explorer: &TraceExplorer,
        within: Option<(Nanos, Nanos)>,
    ) -> Vec<OperatorFigures> {
        let mut rows = vec![OperatorFigures::default(); self.rows.len()];
        for (number, span) in explorer.trace.spans.iter().enumerate() {
            let is_seen = |span: &TraceSpan| {
                let start = explorer.after(span.start);
                within.is_none_or(|(from, to)| from <= start && start <= to)
            };
            let Some(row) = rows
                .get_mut(self.row_of[number] as usize)
                .filter(|_| is_seen(span))
            else {
                continue;
            };
            let outer = explorer.trace.spans.get(self.outer[number] as usize);
            row.n_calls += 1;
            if !outer.is_some_and(is_seen) {
                row.total += nanos(span.duration);
                row.memory += ByteDelta::new(self.memory[number]);
            }
            let inside = Nanos::new(explorer.nesting.spans[number].inside);
            row.own += nanos(span.duration).since(inside);
            row.on_device += nanos(self.on_device[number]);
            row.own_memory += ByteDelta::new(self.own_memory[number]);
        }
        rows
    }

    /// When each call of a row began and ended after the trace's start, in no order.
    pub fn calls(&self, explorer: &TraceExplorer, row: usize) -> Vec<(Nanos, Nanos)> {
        let spans = explorer.trace.spans.iter().zip(&self.row_of);
        let calls = spans.filter(|(_, of)| **of as usize == row);
        let calls = calls.map(|(span, _)| (explorer.after(span.start), explorer.after(span.end())));
        calls.collect()
    }

    /// The rows that are shown, in their order: those that match and have calls.
    pub fn shown(
        &self,
        explorer: &TraceExplorer,
        figures: &[OperatorFigures],
        view: &OperatorView,
    ) -> Vec<usize> {
        let search = view.search.to_lowercase();
        let text = |row: usize| (self.name(explorer, row), self.within(explorer, row));
        let has = |text: &str| text.to_lowercase().contains(&search);
        let matches = |row: &usize| {
            let (name, within) = text(*row);
            let is_kernel = self.rows[*row].0 == SpanKind::Kernel;
            view.is_kernel.is_none_or(|wanted| wanted == is_kernel)
                && figures[*row].n_calls > 0
                && (search.is_empty() || has(name) || has(within))
        };
        let mut shown: Vec<usize> = (0..self.rows.len()).filter(matches).collect();
        let compare = |a: &OperatorFigures, b: &OperatorFigures| match view.column {
            OperatorColumn::Name | OperatorColumn::Within => Ordering::Equal,
            OperatorColumn::Calls => a.n_calls.cmp(&b.n_calls),
            OperatorColumn::TotalTime => a.total.cmp(&b.total),
            OperatorColumn::SelfTime => a.own.cmp(&b.own),
            OperatorColumn::DeviceTime => a.on_device.cmp(&b.on_device),
            OperatorColumn::Memory => a.memory.cmp(&b.memory),
            OperatorColumn::SelfMemory => a.own_memory.cmp(&b.own_memory),
        };
        shown.sort_by(|&a, &b| {
            let ((name_a, within_a), (name_b, within_b)) = (text(a), text(b));
            let order = match view.column {
                OperatorColumn::Name => name_a.cmp(name_b),
                OperatorColumn::Within => within_a.cmp(within_b),
                _ => compare(&figures[a], &figures[b]),
            };
            let order = if view.is_descending {
                order.reverse()
            } else {
                order
            };
            order.then_with(|| (name_a, within_a).cmp(&(name_b, within_b)))
        });
        shown
    }
}

fn add(sums: &mut [i64], of: u32, more: i64) {
    if let Some(sum) = sums.get_mut(of as usize) {
        *sum = sum.saturating_add(more);
    }
}
