//! The thresholds of the verdicts, to and from Python.

use gpumem_model::rules::{Rules, Threshold};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// Each threshold by its name.
pub(crate) fn to_python<'py>(py: Python<'py>, rules: &Rules) -> PyResult<Bound<'py, PyDict>> {
    let thresholds = PyDict::new(py);
    for threshold in Threshold::ALL {
        let value = rules.get(threshold);
        if threshold.is_whole() {
            thresholds.set_item(threshold.name(), value as u64)?;
        } else {
            thresholds.set_item(threshold.name(), value)?;
        }
    }
    Ok(thresholds)
}

/// The defaults with these thresholds in place of some.
pub(crate) fn from_python(thresholds: &Bound<'_, PyDict>) -> PyResult<Rules> {
    let mut rules = Rules::default();
    for (name, value) in thresholds {
        let name = name.str()?.to_string_lossy().into_owned();
        let Some(threshold) = Threshold::from_name(&name) else {
            return Err(PyValueError::new_err(unknown(&name)));
        };
        let Ok(number) = value.extract() else {
            let shown = value.repr()?.to_string_lossy().into_owned();
            let message = format!("{name} is {shown}: it must be a number");
            return Err(PyValueError::new_err(message));
        };
        rules
            .set(threshold, number)
            .map_err(|error| PyValueError::new_err(error.to_string()))?;
    }
    Ok(rules)
}

fn unknown(name: &str) -> String {
    let names = Threshold::ALL.map(Threshold::name).join(", ");
    format!("no threshold is named {name:?}: there are {names}")
}

/// The default thresholds.
#[pyfunction]
pub(crate) fn _default_rules(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    to_python(py, &Rules::default())
}

/// Refuses thresholds that no rule can have.
#[pyfunction]
pub(crate) fn _check_rules(thresholds: &Bound<'_, PyDict>) -> PyResult<()> {
    from_python(thresholds).map(|_| ())
}
