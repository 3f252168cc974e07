//! Which cell Jupyter shows something below: context variables named after its `parent_header` say it.

use pyo3::intern;
use pyo3::prelude::*;

use gpumem_base::modules::imported;

/// A context in which another thread shows something below the cell of this one. The user's variables are
/// not in it: it keeps none of their values. `None` where nothing tells.
pub(super) fn context_of_cell(py: Python<'_>) -> PyResult<Option<Py<PyAny>>> {
    let Some(contextvars) = imported(py, "contextvars")? else {
        return Ok(None);
    };
    let here = contextvars.call_method0(intern!(py, "copy_context"))?;
    let context = contextvars.call_method0(intern!(py, "Context"))?;
    for entry in here.call_method0(intern!(py, "items"))?.try_iter()? {
        let (variable, value): (Bound<'_, PyAny>, Bound<'_, PyAny>) = entry?.extract()?;
        let name: String = variable.getattr(intern!(py, "name"))?.extract()?;
        if name == "parent_header" {
            let set = variable.getattr(intern!(py, "set"))?;
            context.call_method1(intern!(py, "run"), (set, value))?;
        }
    }
    Ok(Some(context.unbind()))
}
