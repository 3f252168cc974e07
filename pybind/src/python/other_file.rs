//! What `gpumem.load` read that is no recording, for Python: one class, with a subclass for each kind.

use std::path::Path;
use std::sync::Arc;

use gpumem_explorer::process_page::ProcessPage;
use pyo3::PyClass;
use pyo3::prelude::*;
use pyo3::pyclass_init::PyClassInitializer;
use pyo3::types::PyBytes;

use crate::base::errors::raised;
use crate::heap::look;

/// What a kind of file has to say.
pub(crate) trait Content: Send + Sync {
    /// What messages call such a file.
    fn kind(&self) -> &'static str;

    /// The report; lines are at most `width` columns long.
    fn text(&self, width: usize) -> String;

    /// Everything; sizes are bytes, times are nanoseconds.
    fn json(&self) -> String;

    /// What Python's `repr` shows.
    fn repr(&self) -> String;

    /// The title of the page that explores it, if there is one.
    fn page_title(&self) -> Option<&'static str> {
        None
    }

    /// What the page shows, if not the file itself.
    fn page(&self) -> Option<ProcessPage> {
        None
    }
}

/// What `gpumem.load` read in a file that is not a recording.
#[pyclass(frozen, subclass, module = "gpumem._gpumem")]
pub(crate) struct OtherFile(Arc<dyn Content>);

#[pymethods]
impl OtherFile {
    #[getter]
    fn _kind(&self) -> &'static str {
        self.0.kind()
    }

    /// The report as text; lines are at most `width` columns long.
    #[pyo3(signature = (width = 100))]
    fn text(&self, py: Python<'_>, width: usize) -> PyResult<String> {
        look::ensure_room()?;
        Ok(py.detach(|| self.0.text(width)))
    }

    /// Everything as JSON: sizes are bytes, times are nanoseconds.
    fn to_json(&self, py: Python<'_>) -> PyResult<String> {
        look::ensure_room()?;
        Ok(py.detach(|| self.0.json()))
    }

    #[getter]
    fn _page_title(&self) -> Option<&'static str> {
        self.0.page_title()
    }

    fn _page<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyBytes>> {
        let page = py.detach(|| Some(self.0.page()?.to_bytes()))?;
        Some(PyBytes::new(py, &page))
    }

    fn __repr__(&self) -> String {
        self.0.repr()
    }
}

/// An object of the subclass that `class` makes of the content.
pub(crate) fn object<C, S>(
    py: Python<'_>,
    content: C,
    class: impl FnOnce(Arc<C>) -> S,
) -> PyResult<Py<S>>
where
    C: Content + 'static,
    S: PyClass<BaseType = OtherFile>,
{
    let content = Arc::new(content);
    let base = PyClassInitializer::from(OtherFile(content.clone()));
    Py::new(py, base.add_subclass(class(content)))
}

/// The error for a file whose content is not as it has to be; `offset` says where.
pub(crate) fn refused(
    py: Python<'_>,
    path: &Path,
    offset: usize,
    error: impl std::fmt::Display,
) -> PyErr {
    raised(py, &format!("{}: {error}", path.display()), offset)
}
