//! What ran in the shell before gpumem recorded it.

use gpumem_heap::CellText;
use pyo3::intern;
use pyo3::prelude::*;

use super::Extension;
use gpumem_base::text::Text;

impl Extension {
    /// Cells before this one have defined functions, or run code that stands elsewhere.
    pub(super) fn has_defined_before(&self, py: Python<'_>) -> PyResult<bool> {
        let history = self.shell.getattr(py, intern!(py, "history_manager"))?;
        if history.is_none(py) {
            return Ok(true);
        }
        let inputs = history.getattr(py, intern!(py, "input_hist_raw"))?;
        for text in inputs.bind(py).try_iter()? {
            let Text(text) = text?.extract()?;
            let text = CellText::read(&text);
            if text.runs_other_code || !text.functions.is_empty() {
                return Ok(true);
            }
        }
        Ok(false)
    }
}
