//! Verdicts on levels that Python hands over.

use gpumem_analyzer::{classify_allocator, classify_growth};
use gpumem_model::units::Bytes;
use gpumem_report::json;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::python::rules;

/// The verdict on a series of levels, as JSON.
///
/// `times` orders the levels where they are not in order already.
#[pyfunction(name = "_classify_growth_json")]
#[expect(
    clippy::needless_pass_by_value,
    reason = "extracted arguments are owned"
)]
pub(crate) fn classify_growth_json(
    py: Python<'_>,
    allocated: Vec<f64>,
    reserved: Option<Vec<f64>>,
    times: Option<Vec<f64>>,
    min_growth: Option<f64>,
    thresholds: &Bound<'_, PyDict>,
) -> PyResult<String> {
    let n_levels = allocated.len();
    let order = times.map(|times| order(&times, n_levels)).transpose()?;
    let allocated = levels("allocated", &allocated, order.as_deref())?;
    let reserved = match reserved {
        Some(reserved) if reserved.len() != n_levels => {
            return Err(unequal("reserved", reserved.len(), n_levels));
        }
        Some(reserved) => Some(levels("reserved", &reserved, order.as_deref())?),
        None => None,
    };
    let rules = rules::from_python(thresholds)?;
    let min_growth = match min_growth {
        Some(min_growth) => level("min_growth", min_growth)?,
        None => rules.min_growth,
    };
    Ok(py.detach(|| {
        let growth = match &reserved {
            Some(reserved) => classify_allocator(&allocated, reserved, min_growth, &rules),
            None => classify_growth(&allocated, min_growth, &rules),
        };
        json::growth_json(&growth)
    }))
}

/// The positions of the levels in the order of their times; equal times keep theirs.
fn order(times: &[f64], n_levels: usize) -> PyResult<Vec<usize>> {
    if times.len() != n_levels {
        return Err(unequal("times", times.len(), n_levels));
    }
    if let Some(idx) = times.iter().position(|time| !time.is_finite()) {
        let message = format!("times[{idx}] is {}: a time is a finite number", times[idx]);
        return Err(PyValueError::new_err(message));
    }
    let mut order: Vec<usize> = (0..n_levels).collect();
    order.sort_by(|&a, &b| times[a].total_cmp(&times[b]));
    Ok(order)
}

fn levels(name: &str, values: &[f64], order: Option<&[usize]>) -> PyResult<Vec<Bytes>> {
    let checked = |idx: usize| level(&format_args!("{name}[{idx}]"), values[idx]);
    match order {
        Some(order) => order.iter().map(|&idx| checked(idx)).collect(),
        None => (0..values.len()).map(checked).collect(),
    }
}

fn level(name: &(impl std::fmt::Display + ?Sized), value: f64) -> PyResult<Bytes> {
    if value.is_finite() && value >= 0.0 {
        return Ok(Bytes::new(value as u64));
    }
    let message = format!("{name} is {value}: a level is a number of bytes, from 0 on");
    Err(PyValueError::new_err(message))
}

fn unequal(name: &str, n_found: usize, n_levels: usize) -> PyErr {
    PyValueError::new_err(format!(
        "{name} has {n_found} entries, allocated has {n_levels}: one of each a run"
    ))
}
