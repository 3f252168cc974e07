//! What a cell's text asks of gpumem.

use pyo3::prelude::*;
use pyo3::types::PyString;

use gpumem_base::text::Text;

#[derive(Debug, Default, FromPyObject)]
pub(super) struct CellOptions {
    pub(super) label: Option<Text>,
    pub(super) devices: Vec<Text>,
    pub(super) sources: Vec<Text>,
    pub(super) reset_peak: bool,
    pub(super) interval: Option<Text>,
    pub(super) trace: bool,
    /// As Python has it: a file's name need not be UTF-8.
    pub(super) trace_file: Option<Py<PyString>>,
    pub(super) quiet: bool,
    /// None where the line leaves it to the default.
    pub(super) holders: Option<bool>,
}

/// The options of the cell's `%%gpumem` line, if it has one that is right.
pub(super) fn cell_options(
    raw_cell: &Bound<'_, PyAny>,
    source: &str,
) -> PyResult<Option<CellOptions>> {
    if !source.contains("%%gpumem") {
        return Ok(None);
    }
    let magics = raw_cell.py().import("gpumem.magics")?;
    magics.call_method1("cell_options", (raw_cell,))?.extract()
}

pub(super) fn has_magic(source: &str) -> bool {
    let mut lines = source.lines();
    lines.any(|line| line.trim_start().starts_with("%%gpumem"))
}

/// The cell does nothing but talk to gpumem, in line magics or in a `%%gpumem` line
/// that is a question or wrong: no run of the user's.
pub(super) fn is_control(source: &str) -> bool {
    let mut lines = source
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty());
    let first = lines.clone().next();
    first.is_some_and(|line| line.starts_with("%%gpumem"))
        || lines.all(|line| line.starts_with("%gpumem"))
}
