//! The modules that the user's code has imported: looked up, and never imported by us.

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyDict;

use crate::slots::reads_attributes_in_c;

/// The module of this name, if it has been imported and reading its attributes runs no code.
pub fn imported<'py>(py: Python<'py>, name: &str) -> PyResult<Option<Bound<'py, PyAny>>> {
    let module = modules(py)?.get_item(name)?;
    // `sys.modules["torch"] = None` forbids an import; a lazy module
    // (`importlib.util.LazyLoader`) runs its own code, an import, when an attribute is read.
    Ok(module.filter(|module| !module.is_none() && reads_attributes_in_c(module)))
}

/// `sys.modules`, kept: finding it takes longer than everything that is looked up in it.
fn modules(py: Python<'_>) -> PyResult<&Bound<'_, PyDict>> {
    static MODULES: PyOnceLock<Py<PyDict>> = PyOnceLock::new();
    let modules = MODULES.get_or_try_init(py, || {
        let modules = py
            .import(intern!(py, "sys"))?
            .getattr(intern!(py, "modules"))?;
        PyResult::Ok(modules.cast_into::<PyDict>()?.unbind())
    });
    Ok(modules?.bind(py))
}
