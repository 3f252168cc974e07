//! Marks that the user's code sets inside a run: one per step of a loop.

use std::sync::atomic::{AtomicU8, Ordering};

use pyo3::exceptions::PyAttributeError;
use pyo3::prelude::*;
use pyo3::types::PyIterator;

use crate::python::blocks;
use crate::recording::recorder::Mark;
use crate::recording::{child, loops, session};
use gpumem_base::guard;
use gpumem_base::text::Text;

/// Marks this instant in the innermost block, or in the cell's run: growth from mark
/// to mark is judged like growth from run to run. Outside of both it does nothing.
#[pyfunction(signature = (label = None))]
pub(crate) fn mark(py: Python<'_>, label: Option<Text>) {
    let label = label.map(String::from);
    set(py, Mark::StepEnded(label.as_deref().unwrap_or("mark")));
}

/// A mark never fails in the user's loop.
fn set(py: Python<'_>, mark: Mark<'_>) {
    if child::may_record() && !(session::is_owner() && session::is_running()) {
        if matches!(mark, Mark::StepEnded(_)) {
            child::mark();
        }
        return;
    }
    if !session::is_running() {
        return;
    }
    if matches!(mark, Mark::StepEnded(_)) {
        loops::note_mark();
    }
    let body = || session::mark(py, mark, blocks::current(py)?);
    guard::logged(py, "a mark was not recorded", body);
}

/// Yields the items of `iterable`, and marks where the first iteration begins and each ends.
#[pyclass(frozen, name = "steps", module = "gpumem")]
pub(crate) struct Steps {
    iterable: Py<PyAny>,
    label: String,
}

#[pymethods]
impl Steps {
    #[new]
    #[pyo3(signature = (iterable, label = None))]
    fn new(iterable: Py<PyAny>, label: Option<Text>) -> Self {
        Self {
            iterable,
            label: label.map_or_else(|| "steps".to_owned(), String::from),
        }
    }

    fn __iter__(&self, py: Python<'_>) -> PyResult<StepsIterator> {
        Ok(StepsIterator {
            items: self.iterable.bind(py).try_iter()?.unbind(),
            label: self.label.clone(),
            place: AtomicU8::new(BEFORE),
        })
    }

    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        self.iterable.bind(py).len()
    }
}

/// Holds no item, so that the loop's own `del` still frees one.
#[pyclass(frozen, module = "gpumem._gpumem")]
pub(crate) struct StepsIterator {
    items: Py<PyIterator>,
    label: String,
    /// Where iteration stands: before the first item, inside a step, or outside.
    place: AtomicU8,
}

const BEFORE: u8 = 0;
const INSIDE: u8 = 1;
const OUTSIDE: u8 = 2;

#[pymethods]
impl StepsIterator {
    fn __iter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __next__(&self, py: Python<'_>) -> Option<PyResult<Py<PyAny>>> {
        match self.place.swap(OUTSIDE, Ordering::Relaxed) {
            BEFORE => set(py, Mark::LoopBegins(&self.label)),
            INSIDE => set(py, Mark::StepEnded(&self.label)),
            _ => {}
        }
        let item = self.items.bind(py).clone().next()?;
        if item.is_ok() {
            self.place.store(INSIDE, Ordering::Relaxed);
        }
        Some(item.map(Bound::unbind))
    }

    /// Closes the iterator below, where that can be closed.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        match self.items.bind(py).call_method0("close") {
            Ok(_) => Ok(()),
            Err(error) if error.is_instance_of::<PyAttributeError>(py) => Ok(()),
            Err(error) => Err(error),
        }
    }
}
