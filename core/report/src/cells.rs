//! What each cell kept, as a table.

use super::columns::cut;
use super::has_many;
use super::text_table::{self, left, right, table};
use gpumem_analyzer::Analysis;
use gpumem_charts::{CellRow, HiddenRows, cells, default_device};
use gpumem_model::recording::Recording;
use gpumem_model::units::Units;
use gpumem_wording::OutputLimits;

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
    let (shown, rest) = cells
        .rows
        .split_at(cells.rows.len().min(OutputLimits::TEXT.n_cells));
    if shown.is_empty() {
        return Vec::new();
    }
    let on = if has_many(recording) {
        format!(" on {}", recording.device(device).label)
    } else {
        String::new()
    };
    let title = format!("What each cell kept{on}");
    let mut rows = vec![text_table::row([&title, "In", "kept", "state"])];
    rows.extend(shown.iter().map(of_cell));
    let columns = [
        left()
            .min(MIN_NAME)
            .max(width.saturating_sub(BESIDE).max(MIN_NAME)),
        right().min(6),
        right().min(10),
        left().gap(2),
    ];
    let mut lines = table(&columns, &rows, width);
    let rest = HiddenRows {
        rows: rest,
        n_cells: cells.rows.len(),
    };
    let words = rest.describe(Units::Binary);
    lines.extend((!words.is_empty()).then(|| cut(&format!("  {words}"), width)));
    lines
}

fn of_cell(row: &CellRow) -> Vec<String> {
    let sign = row.sign.map_or(" ", |(sign, _)| sign.glyph());
    let number = row.execution_count.map(|n| format!("[{n}]"));
    vec![
        format!("{sign} {}", row.name),
        number.unwrap_or_default(),
        row.total.to_string(),
        row.state.clone(),
    ]
}
