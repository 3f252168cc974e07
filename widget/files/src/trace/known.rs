//! Figures of the current view, recomputed only if the view needs it.

use gpumem_model::units::Nanos;
use gpumem_readers::chrome_trace::{
    GroupBy, OperatorFigures, OperatorTable, OperatorView, TraceExplorer, TraceLevels,
};

use super::state::TraceState;

/// The figures, and the view that they belong to.
pub(crate) struct TraceFacts {
    device: usize,
    by: GroupBy,
    chosen: Option<(Nanos, Nanos)>,
    view: OperatorView,
    marked: Option<usize>,
    /// None if the trace has no memory.
    pub(crate) levels: Option<TraceLevels>,
    pub(crate) table: OperatorTable,
    /// The figures of the counted calls, by row.
    pub(crate) figures: Vec<OperatorFigures>,
    /// The shown rows in their order.
    pub(crate) shown: Vec<usize>,
    /// The calls of the marked row.
    pub(crate) calls: Vec<(Nanos, Nanos)>,
}

impl TraceFacts {
    pub(crate) fn new(explorer: &TraceExplorer, state: &TraceState) -> Self {
        let table = explorer.table(state.by, state.device);
        let figures = table.figures(explorer, state.within());
        Self {
            device: state.device,
            by: state.by,
            chosen: state.within(),
            view: state.rows.clone(),
            marked: None,
            levels: levels(explorer, state),
            shown: table.shown(explorer, &figures, &state.rows),
            table,
            figures,
            calls: Vec::new(),
        }
    }

    /// Recomputes what the state has changed.
    pub(crate) fn update(&mut self, explorer: &TraceExplorer, state: &TraceState) {
        let is_other_device = self.device != state.device;
        let is_other_table = is_other_device || self.by != state.by;
        let is_other_time = is_other_table || self.chosen != state.within();
        if is_other_device {
            self.levels = levels(explorer, state);
        }
        if is_other_table {
            self.table = explorer.table(state.by, state.device);
            (self.marked, self.calls) = (None, Vec::new());
        }
        if is_other_time {
            self.figures = self.table.figures(explorer, state.within());
        }
        if is_other_time || self.view != state.rows {
            self.shown = self.table.shown(explorer, &self.figures, &state.rows);
            self.view.clone_from(&state.rows);
        }
        (self.device, self.by, self.chosen) = (state.device, state.by, state.within());
        self.mark(explorer, state);
    }

    /// The calls of the row that is pointed at, else of the one that is chosen.
    pub(crate) fn mark(&mut self, explorer: &TraceExplorer, state: &TraceState) {
        let marked = state.hovered.or(state.marked);
        let marked = marked.filter(|row| *row < self.table.n_rows());
        if std::mem::replace(&mut self.marked, marked) != marked {
            let calls = marked.map(|row| self.table.calls(explorer, row));
            self.calls = calls.unwrap_or_default();
        }
    }

    /// The row whose calls are marked.
    pub(crate) fn marked(&self) -> Option<usize> {
        self.marked
    }
}

fn levels(explorer: &TraceExplorer, state: &TraceState) -> Option<TraceLevels> {
    let has_levels = state.device < explorer.summary.devices.len();
    has_levels.then(|| explorer.levels(state.device))
}
