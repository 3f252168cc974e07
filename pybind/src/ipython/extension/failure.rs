//! A failure of ours: nothing is recorded after it until the user says so.

use gpumem_model::printable::printable;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::Extension;
use super::options::{CellOptions, cell_options, has_magic, is_control};
use gpumem_base::guard;
use gpumem_base::text::Text;

const ISSUES: &str = concat!(env!("CARGO_PKG_REPOSITORY"), "/issues");

/// A failure of ours.
pub(super) struct StopReason {
    reason: String,
    /// Jupyter's number of the cell in which it came.
    execution_count: Option<u32>,
    /// A cell that did not ask for it has said so.
    is_said: bool,
}

impl StopReason {
    pub(super) fn message(&self) -> String {
        let number = self.execution_count;
        let after = number.map_or_else(String::new, |number| format!(" after In [{number}]"));
        let reason = printable(self.reason.trim_end_matches('.'));
        format!(
            "recording stopped{after}: {reason}. Your cells are not affected. \
             `%gpumem on` records again."
        )
    }
}

impl Extension {
    /// Lets nothing out of `body`; its first failure stops the recording. `number` is Jupyter's, of
    /// the cell.
    pub(super) fn guarded(
        &self,
        py: Python<'_>,
        number: impl FnOnce() -> PyResult<Option<u32>>,
        body: impl FnOnce() -> PyResult<()>,
    ) {
        if self.state(py).stopped.is_some() {
            return;
        }
        if let Err(failure) = guard::caught(py, body) {
            let number = guard::caught(py, number).ok().flatten().flatten();
            self.state(py).stopped = Some(StopReason {
                reason: failure.clone(),
                execution_count: number,
                is_said: false,
            });
            // A second failure is no news.
            drop(guard::caught(py, || self.break_off(py)));
            guard::log(
                py,
                &format!(
                    "recording stopped: {failure}; your cells are not affected; \
                     `%gpumem on` records again; please report this at {ISSUES}"
                ),
            );
        }
    }

    /// In place of the usual line: after each cell that asks for one, and once where every cell is
    /// recorded.
    pub(super) fn say_stopped(&self, py: Python<'_>, result: &Bound<'_, PyAny>) -> PyResult<()> {
        let info = result.getattr(intern!(py, "info"))?;
        let raw_cell = info.getattr(intern!(py, "raw_cell"))?;
        let Text(source) = raw_cell.extract()?;
        // Reading the options may be what fails.
        let options = cell_options(&raw_cell, &source)
            .unwrap_or_else(|_| has_magic(&source).then(CellOptions::default));
        let words = {
            let mut state = self.state(py);
            let every_cell = state.record_all && !state.quiet && !is_control(&source);
            let Some(stopped) = &mut state.stopped else {
                return Ok(());
            };
            let is_shown = match options {
                Some(options) => !options.quiet,
                None => every_cell && !stopped.is_said,
            };
            if !is_shown {
                return Ok(());
            }
            stopped.is_said = true;
            stopped.message()
        };
        self.publish(py, &words, PyDict::new(py))
    }
}
