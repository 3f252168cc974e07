//! A trainer that runs without our callback: its whole training is one run.

use pyo3::prelude::*;

use gpumem_base::guard;
use gpumem_base::modules::imported;

/// The modules of trainers for which there is a callback.
const MODULES: [&str; 4] = [
    "transformers.trainer",
    "lightning.pytorch",
    "pytorch_lightning",
    "keras",
];

/// One of them is imported. Nothing is imported here.
pub(crate) fn is_imported(py: Python<'_>) -> PyResult<bool> {
    for module in MODULES {
        if imported(py, module)?.is_some() {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Which callback judges the steps of the trainer that the cell calls, if it calls one.
pub(crate) fn hint(
    py: Python<'_>,
    shell: &Bound<'_, PyAny>,
    source: &Bound<'_, PyAny>,
) -> Option<String> {
    guard::logged(py, "a cell was not searched for a trainer", || {
        let module = py.import("gpumem._trainers")?;
        module.call_method1("hint", (shell, source))?.extract()
    })
    .flatten()
}
