//! The cells that files of other programs name by their text.

use gpumem_model::source_text;
use gpumem_readers::cell_files::CellFiles;
use pyo3::prelude::*;
use pyo3::types::PyString;

use gpumem_base::text::Text;

/// What a cell is called that has not run: the last line of its source that does something.
#[pyfunction(name = "_telling_line")]
pub(crate) fn telling_line(source: &Bound<'_, PyString>) -> String {
    source_text::telling_line(&source.to_string_lossy()).unwrap_or_default()
}

/// The cells of a notebook's file; without one, those that were typed in this session.
pub(crate) fn cells(py: Python<'_>, notebook: Option<Bound<'_, PyAny>>) -> PyResult<CellFiles> {
    let names = py.import("gpumem._cell_names")?;
    let names: Vec<(Text, Text)> = names.call_method1("cell_names", (notebook,))?.extract()?;
    let cells = names.iter().map(|(text, name)| (&*text.0, &*name.0));
    Ok(CellFiles::new(cells))
}
