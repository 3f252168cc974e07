//! The operators by own time and by memory, and the kernels.

use std::cmp::Reverse;

use crate::formats::torch_trace::{change, cut, label};
use gpumem_model::units::count;
use gpumem_model::units::{Bytes, Nanos};
use gpumem_readers::chrome_trace::{GroupBy, Operator, TraceSummary};

/// Rows of each table.
const N_ROWS: usize = 10;

pub(super) fn lines(summary: &TraceSummary, by: GroupBy, width: usize) -> Vec<String> {
    let operators = summary.operators_by(by);
    let mut lines = Vec::new();
    if operators.is_empty() && by != GroupBy::Name {
        let what = match by {
            GroupBy::Shapes => "shapes: profile with `record_shapes=True`",
            GroupBy::Function => "Python functions: profile with `with_stack=True`",
            _ => "modules: profile with `with_stack=True, with_modules=True`",
        };
        lines.extend([
            String::new(),
            cut(&format!("the trace has no {what}"), width),
        ]);
    }
    if !operators.is_empty() {
        lines.extend([String::new(), "operators by own time on the CPU".to_owned()]);
        lines.push(cut(
            "        own      total  on device   calls  operator",
            width,
        ));
        lines.extend(
            operators
                .iter()
                .take(N_ROWS)
                .map(|row| time_row(row, width)),
        );
        lines.extend(more(operators.len(), width));
    }
    lines.extend(memory_lines(summary, operators, width));
    if !summary.kernels.is_empty() {
        lines.extend([
            String::new(),
            "kernels, copies and fills by time".to_owned(),
        ]);
        lines.push(cut("       time   calls  kernel", width));
        for kernel in summary.kernels.iter().take(N_ROWS) {
            let (time, calls) = (kernel.total.to_string(), kernel.n_calls);
            lines.push(cut(
                &format!("  {time:>9} {calls:>7}  {}", kernel.name),
                width,
            ));
        }
        lines.extend(more(summary.kernels.len(), width));
    }
    lines
}

fn memory_lines(summary: &TraceSummary, operators: &[Operator], width: usize) -> Vec<String> {
    let Some(device) = summary.devices.first() else {
        return Vec::new();
    };
    let allocated = |row: &Operator| row.memory_on(0).map(|memory| memory.allocated);
    let mut rows: Vec<&Operator> = operators
        .iter()
        .filter(|row| allocated(row) > Some(Bytes::ZERO))
        .collect();
    if rows.is_empty() {
        return Vec::new();
    }
    rows.sort_by_key(|row| Reverse(allocated(row)));
    let title = format!(
        "operators by what they allocate themselves on {}",
        label(device)
    );
    let mut lines = vec![String::new(), cut(&title, width)];
    lines.push(cut("  allocated  less freed   calls  operator", width));
    for row in rows.iter().take(N_ROWS) {
        let Some(memory) = row.memory_on(0) else {
            continue;
        };
        let (allocated, kept) = (memory.allocated.to_string(), change(memory.kept));
        let (calls, name) = (row.n_calls, name(row));
        lines.push(cut(
            &format!("  {allocated:>9} {kept:>11} {calls:>7}  {name}"),
            width,
        ));
    }
    lines.extend(more(rows.len(), width));
    lines
}

fn time_row(row: &Operator, width: usize) -> String {
    let on_device = match row.on_device {
        time if time == Nanos::new(0) => "–".to_owned(),
        time => time.to_string(),
    };
    let (own, total) = (row.own.to_string(), row.total.to_string());
    let (calls, name) = (row.n_calls, name(row));
    let line = format!("  {own:>9} {total:>10} {on_device:>10} {calls:>7}  {name}");
    cut(&line, width)
}

fn name(row: &Operator) -> String {
    match &row.within {
        Some(within) => format!("{} · {within}", row.name),
        None => row.name.clone(),
    }
}

fn more(n: usize, width: usize) -> Option<String> {
    let n_more = n.checked_sub(N_ROWS).filter(|n_more| *n_more > 0)?;
    Some(cut(
        &format!("  and {} in --json", count(n_more, "more row")),
        width,
    ))
}
