//! One row for each run and device.

use super::Table;
use crate::figures::{Figure, RunOnDevice, Value, run_figures, run_places};
use gpumem_analyzer::Analysis;
use gpumem_model::recording::Recording;

/// The runs as a table.
pub fn runs(recording: &Recording, analysis: &Analysis) -> Table {
    let rows = analysis.rows.iter();
    let rows: Vec<_> = rows.map(|row| RunOnDevice::new(recording, row)).collect();
    let cell: [Figure<RunOnDevice<'_>>; 2] = [
        Figure::new("cell", Value::Text(|it| Some(it.cell().label))),
        Figure::new("cell_id", Value::Text(|it| Some(it.cell().id))),
    ];
    let figures = run_places().into_iter().chain(cell).chain(run_figures());
    Table::new(&rows, figures)
}
