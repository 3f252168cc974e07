//! What each cell kept, as a table.

use super::columns::{cut, n_columns, padded};
use super::has_many;
use crate::analyze::Analysis;
use crate::chart::{CellRow, Rest, cells, default_device};
use crate::recording::Recording;
use crate::units::Units;

/// More cells than this are told in a line.
const N_ROWS: usize = 8;

/// A name has at least this many columns, and no more than it needs.
const MIN_NAME: usize = 16;

/// Of the columns beside the names, with the gaps between them.
const BESIDE: usize = 38;

/// A line for each cell, in the order of the page: its sign, name, number, what it kept, and its state. Of
/// the device that the page opens with.
pub(super) fn lines(recording: &Recording, analysis: &Analysis, width: usize) -> Vec<String> {
    let Some(device) = default_device(recording, analysis) else {
        return Vec::new();
    };
    let cells = cells(recording, analysis, device);
    let (shown, rest) = cells.rows.split_at(cells.rows.len().min(N_ROWS));
    if shown.is_empty() {
        return Vec::new();
    }
    let on = if has_many(recording) {
        format!(" on {}", recording.device(device).label)
    } else {
        String::new()
    };
    let title = format!("What each cell kept{on}");
    let names = shown.iter().map(|row| n_columns(&row.name) + 2);
    let wanted = names.chain([n_columns(&title)]).max();
    let name_width = wanted.unwrap_or_default().min(width.saturating_sub(BESIDE));
    let name_width = name_width.max(MIN_NAME);
    let mut lines = vec![line(&title, ["In", "kept", "state"], name_width)];
    lines.extend(shown.iter().map(|row| of_cell(row, name_width)));
    let rest = Rest {
        rows: rest,
        n_cells: cells.rows.len(),
    };
    let words = rest.words(Units::Binary);
    lines.extend((!words.is_empty()).then(|| format!("  {words}")));
    lines.iter().map(|line| cut(line, width)).collect()
}

fn of_cell(row: &CellRow, width: usize) -> String {
    let sign = row.sign.map_or(" ", |(sign, _)| sign);
    let number = row.execution_count.map(|n| format!("[{n}]"));
    let figures = [
        &*number.unwrap_or_default(),
        &row.total.to_string(),
        &row.state,
    ];
    line(&format!("{sign} {}", row.name), figures, width)
}

fn line(name: &str, [number, kept, state]: [&str; 3], width: usize) -> String {
    let name = padded(&cut(name, width), width);
    format!("{name} {number:>6} {kept:>10}  {state}")
}
