//! One row for each run and device.

use super::Table;
use crate::figures::{RunFigure, RunOnDevice, figures, run_figures, run_places};
use gpumem_analyzer::Analysis;
use gpumem_model::recording::Recording;

/// The runs as a table.
pub fn runs(recording: &Recording, analysis: &Analysis) -> Table {
    let rows = analysis.rows.iter();
    let rows: Vec<_> = rows.map(|row| RunOnDevice::new(recording, row)).collect();
    let cell: [RunFigure<RunOnDevice<'_>>; 2] = figures![
        cell: Text(|it| Some(it.cell().label)),
        cell_id: Text(|it| Some(it.cell().id)),
    ];
    let figures = run_places().into_iter().chain(cell).chain(run_figures());
    Table::new(&rows, figures)
}
