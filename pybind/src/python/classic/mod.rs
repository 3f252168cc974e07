//! The classic rules behind Python: records, the way from them to the core and
//! back, and what a profiler reads.

mod answers;
mod judge;
mod number;
mod probe;
mod reading;
mod records;

use gpumem_classic as classic;
use gpumem_classic::{ClassicThresholds, GapSample};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use crate::python::list;
pub(crate) use judge::Judge;
pub(crate) use probe::{Probe, classic_snapshot};
pub(crate) use records::{MemorySnapshot, ProfileResult};

/// Findings on the gap between device and allocator. A sample is its time in
/// seconds, then allocated, reserved, device used and the device's size in bytes.
#[pyfunction]
pub(crate) fn classic_gaps<'py>(
    py: Python<'py>,
    samples: Vec<(f64, f64, f64, f64, Option<f64>)>,
    thresholds: &Bound<'py, PyDict>,
) -> PyResult<Bound<'py, PyList>> {
    let samples = samples.into_iter();
    let samples = samples.map(
        |(at, allocated, reserved, device_used, device_total)| GapSample {
            at,
            allocated,
            reserved,
            device_used,
            device_total,
        },
    );
    let samples: Vec<GapSample> = samples.collect();
    let thresholds = read_thresholds(thresholds)?;
    let gaps = py.detach(|| classic::hidden_gaps(&samples, &thresholds));
    list(py, &gaps, answers::gap)
}

/// The default thresholds.
#[pyfunction]
pub(crate) fn classic_thresholds(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    let dict = PyDict::new(py);
    for (name, value) in ClassicThresholds::default().entries() {
        dict.set_item(name, *value)?;
    }
    Ok(dict)
}

/// What is not set stays as it is by default.
fn read_thresholds(set: &Bound<'_, PyDict>) -> PyResult<ClassicThresholds> {
    let mut thresholds = ClassicThresholds::default();
    for (name, value) in thresholds.entries() {
        if let Some(given) = set.get_item(name)? {
            *value = given.extract().map_err(|_| {
                PyTypeError::new_err(format!("threshold {name} must be a number, not {given:?}"))
            })?;
        }
    }
    Ok(thresholds)
}
