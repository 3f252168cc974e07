//! The table of operators and kernels: of the whole trace, or of the calls that begin within a part of it.

use std::cmp::Ordering;
use std::collections::HashMap;

use super::explorer::TraceExplorer;
use super::kind::Kind;
use super::model::Span;
use super::nesting::NONE;
use super::operators::{GroupBy, launches, nanos};
use gpumem_model::units::{ByteDelta, Nanos};

/// Rows of operators and kernels, and which call belongs to which.
#[derive(Debug)]
pub struct OperatorTable {
    /// Name, and shapes or module, by row.
    rows: Vec<(Kind, u32, u32)>,
    /// By span: its row, or [`NONE`].
    row_of: Vec<u32>,
    /// By span: nanoseconds of the kernels that it launched itself; of a kernel, its own.
    on_device: Vec<i64>,
    /// By span: bytes allocated minus freed, by itself and with those inside.
    own_memory: Vec<i64>,
    memory: Vec<i64>,
    /// By span: the innermost call of the same row around it, or [`NONE`].
    outer: Vec<u32>,
}

/// What a row is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RowKind {
    /// An operator on the CPU.
    Operator,
    /// A call of the device's runtime or driver.
    Runtime,
    /// A kernel, copy or fill on a device.
    Kernel,
}

/// What the calls of a row took.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct OperatorFigures {
    /// How often.
    pub n_calls: usize,
    /// From begin to end, of all calls that are not inside of another one of the row.
    pub total: Nanos,
    /// The same, without operators inside.
    pub own: Nanos,
    /// What the kernels took that it launched itself; of a kernel, what it took.
    pub on_device: Nanos,
    /// Allocated minus freed, by it and by operators inside.
    pub memory: ByteDelta,
    /// The same, by itself.
    pub own_memory: ByteDelta,
}

/// What rows are sorted by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OperatorColumn {
    /// The name.
    Name,
    /// Shapes of inputs, or the module.
    Within,
    /// How often.
    Calls,
    /// From begin to end.
    TotalTime,
    /// Without operators inside.
    SelfTime,
    /// Of the kernels that it launched.
    DeviceTime,
    /// With operators inside.
    Memory,
    /// Without these.
    SelfMemory,
}

/// Which rows are shown, and in which order.
#[derive(Debug, Clone, PartialEq)]
pub struct OperatorView {
    /// Rows with these letters in name, shapes or module; all if empty. Upper case is lower case.
    pub search: String,
    /// Only kernels, or only what is none; `None` for both.
    pub is_kernel: Option<bool>,
    /// What they are sorted by.
    pub column: OperatorColumn,
    /// The largest first; of texts, the last.
    pub is_descending: bool,
}

impl OperatorTable {
    pub(super) fn of(explorer: &TraceExplorer, by: GroupBy, device_idx: usize) -> Self {
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
            if matches!(label.kind, Kind::Range | Kind::Module | Kind::Function) {
                table.row_of.push(NONE);
                continue;
            }
            let within = match by {
                GroupBy::Shapes => label.shapes,
                GroupBy::Module if label.kind != Kind::Kernel => {
                    trace.name_of(nesting.spans[number].module)
                }
                GroupBy::Function if label.kind != Kind::Kernel => {
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
            if trace.label_of(span).kind == Kind::Kernel {
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
        // What is inside comes after what is around it.
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

    /// What a row is of.
    pub fn kind(&self, row: usize) -> RowKind {
        match self.rows[row].0 {
            Kind::Kernel => RowKind::Kernel,
            Kind::Runtime => RowKind::Runtime,
            Kind::Operator | Kind::Range | Kind::Module | Kind::Function => RowKind::Operator,
        }
    }

    /// What a row's calls are of.
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
            let is_seen = |span: &Span| {
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
                row.total = row.total + nanos(span.duration);
                row.memory += ByteDelta::new(self.memory[number]);
            }
            let inside = Nanos::new(explorer.nesting.spans[number].inside);
            row.own = row.own + nanos(span.duration).since(inside);
            row.on_device = row.on_device + nanos(self.on_device[number]);
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
            let is_kernel = self.rows[*row].0 == Kind::Kernel;
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cell_files::CellFiles;

    fn span(category: &str, name: &str, (start, end): (u32, u32), args: &str) -> String {
        let duration = end - start;
        format!(
            r#"{{"ph": "X", "cat": "{category}", "name": "{name}", "pid": 1, "tid": 7, "ts": {start}, "dur": {duration}, "args": {{{args}}}}}"#
        )
    }

    fn op(name: &str, extent: (u32, u32)) -> String {
        let shapes = format!(r#""Input Dims": [[{}]]"#, extent.0);
        span("cpu_op", name, extent, &shapes)
    }

    fn memory(at: u32, bytes: i64) -> String {
        format!(
            r#"{{"ph": "i", "name": "[memory]", "pid": 1, "tid": 7, "ts": {at}, "args": {{"Device Type": 1, "Device Id": 0, "Bytes": {bytes}}}}}"#
        )
    }

    /// Two calls of `linear`, each with one of `mm`, and a kernel.
    fn explorer() -> TraceExplorer {
        let events = [
            span("user_annotation", "step", (0, 100), ""),
            op("linear", (0, 40)),
            memory(5, 100),
            op("mm", (10, 30)),
            memory(15, 1000),
            span("cuda_runtime", "launch", (20, 22), r#""correlation": 5"#),
            span("kernel", "Gemm", (50, 57), r#""correlation": 5"#),
            op("linear", (60, 90)),
            op("mm", (70, 80)),
            memory(75, -400),
        ];
        let file = format!(r#"{{"traceEvents": [{}]}}"#, events.join(","));
        TraceExplorer::open(file.as_bytes(), &CellFiles::default()).expect("it is whole")
    }

    /// Name, calls, total and own time in microseconds, bytes and own bytes.
    type Row<'t> = (&'t str, usize, u64, u64, i64, i64);

    #[track_caller]
    fn check(within: Option<(u64, u64)>, expected: &[Row<'_>]) {
        let explorer = explorer();
        let table = explorer.table(GroupBy::Name, 0);
        let micros = |at: u64| Nanos::new(at * 1000);
        let within = within.map(|(from, to)| (micros(from), micros(to)));
        let figures = table.figures(&explorer, within);
        let shown = table.shown(&explorer, &figures, &view(OperatorColumn::TotalTime, ""));
        let rows = shown.iter().map(|&row| {
            let it = &figures[row];
            let (total, own) = (it.total.get() / 1000, it.own.get() / 1000);
            let bytes = (it.memory.get(), it.own_memory.get());
            let name = table.name(&explorer, row);
            (name, it.n_calls, total, own, bytes.0, bytes.1)
        });
        assert_eq!(rows.collect::<Vec<_>>(), expected);
    }

    fn view(column: OperatorColumn, search: &str) -> OperatorView {
        OperatorView {
            search: search.to_owned(),
            is_kernel: None,
            column,
            is_descending: true,
        }
    }

    #[test]
    fn memory_of_an_operator_has_that_of_operators_inside() {
        check(
            None,
            &[
                ("linear", 2, 70, 40, 700, 100),
                ("mm", 2, 30, 28, 600, 600),
                ("Gemm", 1, 7, 7, 0, 0),
                ("launch", 1, 2, 2, 0, 0),
            ],
        );
    }

    #[test]
    fn of_a_part_of_the_time_the_calls_count_that_begin_there() {
        let second = [
            ("linear", 1, 30, 20, -400, 0),
            ("mm", 1, 10, 10, -400, -400),
        ];
        check(Some((60, 100)), &second);
        let kernel = [("Gemm", 1, 7, 7, 0, 0)];
        check(Some((30, 59)), &kernel);
        check(Some((95, 100)), &[]);
    }

    #[test]
    fn all_calls_have_the_figures_of_the_summary() {
        let explorer = explorer();
        for by in [GroupBy::Name, GroupBy::Shapes] {
            let table = explorer.table(by, 0);
            let figures = table.figures(&explorer, None);
            for row in (0..table.n_rows()).filter(|row| table.kind(*row) != RowKind::Kernel) {
                let within = table.within(&explorer, row);
                let same = explorer.summary.operators_by(by).iter().find(|it| {
                    it.name == table.name(&explorer, row)
                        && it.within.as_deref().unwrap_or_default() == within
                });
                let same = same.expect("it is in the summary");
                let kept = same
                    .memory_on(0)
                    .map_or(ByteDelta::ZERO, |memory| memory.kept);
                let it = &figures[row];
                assert_eq!(
                    (it.n_calls, it.total, it.own, it.on_device, it.own_memory),
                    (same.n_calls, same.total, same.own, same.on_device, kept)
                );
            }
        }
    }

    #[track_caller]
    fn check_order(view: &OperatorView, expected: &[&str]) {
        let explorer = explorer();
        let table = explorer.table(GroupBy::Name, 0);
        let shown = table.shown(&explorer, &table.figures(&explorer, None), view);
        let names: Vec<_> = shown
            .iter()
            .map(|row| table.name(&explorer, *row))
            .collect();
        assert_eq!(names, expected);
    }

    #[test]
    fn rows_are_sorted_by_any_column_and_equal_ones_by_name() {
        let ascending = |column| OperatorView {
            is_descending: false,
            ..view(column, "")
        };
        check_order(
            &view(OperatorColumn::Calls, ""),
            &["linear", "mm", "Gemm", "launch"],
        );
        check_order(
            &ascending(OperatorColumn::Name),
            &["Gemm", "launch", "linear", "mm"],
        );
        check_order(
            &ascending(OperatorColumn::SelfMemory),
            &["Gemm", "launch", "linear", "mm"],
        );
        check_order(
            &view(OperatorColumn::DeviceTime, ""),
            &["Gemm", "mm", "launch", "linear"],
        );
    }

    #[test]
    fn rows_are_found_by_letters_and_by_kind() {
        check_order(&view(OperatorColumn::Name, "M"), &["mm", "Gemm"]);
        let kernels = OperatorView {
            is_kernel: Some(true),
            ..view(OperatorColumn::Name, "")
        };
        check_order(&kernels, &["Gemm"]);
        check_order(&view(OperatorColumn::Name, "conv"), &[]);
    }

    #[test]
    fn an_operator_has_a_row_for_each_shape() {
        let explorer = explorer();
        let table = explorer.table(GroupBy::Shapes, 0);
        let figures = table.figures(&explorer, None);
        let found = table.shown(&explorer, &figures, &view(OperatorColumn::Within, "[[70"));
        let names: Vec<_> = found
            .iter()
            .map(|row| table.name(&explorer, *row))
            .collect();
        assert_eq!(names, ["mm"], "{:?}", table.within(&explorer, 0));
    }
}
