//! Blocks that the user's code records inside a cell: `with gpumem.record("name"):`
//! and decorated functions.
//!
//! A context variable names the innermost block, so that every thread and every
//! task has a stack of its own; where it names one that has ended, the nearest open
//! one around it takes its place.

use std::sync::Mutex;

use pyo3::exceptions::{PyGeneratorExit, PyTypeError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyInt, PyString};

use crate::recording::child;
use crate::recording::ending::RunEnding;
use crate::recording::session::{self, RunId};
use gpumem_base::guard;
use gpumem_base::locks::lock_attached;
use gpumem_base::text::{SourceCode, code_of};

/// Records a block or a function as a run of its own, nested in the cell's run.
///
/// `with gpumem.record("name"):`, `@gpumem.record("name")` or `@gpumem.record`.
/// Growth is judged over the blocks of one name in one cell. Outside of a recorded
/// cell it is a run of a cell that stands for the name.
#[pyfunction(signature = (name_or_function, /))]
pub(crate) fn record<'py>(name_or_function: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let py = name_or_function.py();
    if let Ok(name) = name_or_function.cast::<PyString>() {
        let block = PyBlock::new(name.to_string_lossy().into_owned(), None);
        return Ok(Bound::new(py, block)?.into_any());
    }
    if !name_or_function.is_callable() {
        return Err(PyTypeError::new_err(format!(
            "record takes a name or a function, not {}\nhint: with gpumem.record(\"name\"):",
            name_or_function.repr()?
        )));
    }
    decorated(name_or_function, None)
}

/// The block that each call of a decorated function is; `file` has the function's code.
#[pyfunction(name = "_block_of")]
pub(crate) fn block_of(name: String, file: Option<String>) -> PyBlock {
    PyBlock::new(name, file)
}

/// A block under a name; it may be entered again and again, by several threads too.
#[pyclass(frozen, name = "Block", module = "gpumem._gpumem")]
pub(crate) struct PyBlock {
    #[pyo3(get)]
    name: String,
    /// Where the code of the block is; `None`: where it is entered.
    file: Option<String>,
    entries: Mutex<Vec<BlockEntry>>,
}

/// One time that the block was entered.
#[derive(Clone, Copy)]
struct BlockEntry {
    /// `None` where nothing is recorded.
    id: Option<RunId>,
    around: Option<RunId>,
}

#[pymethods]
impl PyBlock {
    fn __enter__(slf: Py<Self>, py: Python<'_>) -> Py<Self> {
        child::record_block();
        let entry = if session::records_blocks() {
            guarded(py, || slf.get().begin(py)).unwrap_or(BlockEntry::UNRECORDED)
        } else {
            BlockEntry::UNRECORDED
        };
        lock_attached(py, &slf.get().entries).push(entry);
        slf
    }

    fn __exit__(
        &self,
        py: Python<'_>,
        kind: Py<PyAny>,
        error: &Bound<'_, PyAny>,
        traceback: Py<PyAny>,
    ) -> bool {
        drop((kind, traceback));
        guarded(py, || self.end(py, error));
        false
    }

    /// The function, each call of which is such a block.
    fn __call__<'py>(&self, function: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        decorated(function, Some(&self.name))
    }

    fn __repr__(&self) -> String {
        format!("gpumem.record({:?})", self.name)
    }
}

impl PyBlock {
    fn new(name: String, file: Option<String>) -> Self {
        Self {
            name,
            file,
            entries: Mutex::default(),
        }
    }

    fn begin(&self, py: Python<'_>) -> PyResult<BlockEntry> {
        let around = current(py)?;
        let id = session::begin_block(py, &self.name, around, || self.source(py).ok().flatten())?;
        if let Some(id) = id {
            set_current(py, Some(id))?;
        }
        Ok(BlockEntry { id, around })
    }

    /// The text of the file, or of the cell, that the block is in.
    fn source(&self, py: Python<'_>) -> PyResult<Option<SourceCode>> {
        let file = if let Some(file) = &self.file {
            PyString::new(py, file).into_any()
        } else {
            let frame = py.import("sys")?.call_method0("_getframe")?;
            frame.getattr("f_code")?.getattr("co_filename")?
        };
        code_of(py, &file)
    }

    fn end(&self, py: Python<'_>, error: &Bound<'_, PyAny>) -> PyResult<()> {
        let current = current(py)?;
        let Some(entry) = self.take_entry(py, current) else {
            return Ok(());
        };
        let Some(id) = entry.id else { return Ok(()) };
        // A generator that was left may end in another context, or after a block that began later.
        if current == Some(id) {
            set_current(py, entry.around)?;
        }
        session::end_block(py, id, ending_of(error)?)
    }

    /// The entry that this context is in; else the latest.
    fn take_entry(&self, py: Python<'_>, current: Option<RunId>) -> Option<BlockEntry> {
        let mut entries = lock_attached(py, &self.entries);
        let own = entries
            .iter()
            .rposition(|entry| entry.id.is_some() && entry.id == current);
        let position = own.or(entries.len().checked_sub(1))?;
        Some(entries.remove(position))
    }
}

impl BlockEntry {
    const UNRECORDED: Self = Self {
        id: None,
        around: None,
    };
}

/// The innermost block or cell that this context knows of; it may have ended.
pub(crate) fn current(py: Python<'_>) -> PyResult<Option<RunId>> {
    let bits: Option<u64> = variable(py)?.call_method0("get")?.extract()?;
    Ok(bits.map(RunId::from_bits))
}

pub(crate) fn set_current(py: Python<'_>, run: Option<RunId>) -> PyResult<()> {
    let bits = run.map(|run| PyInt::new(py, run.to_bits()));
    variable(py)?.call_method1("set", (bits,))?;
    Ok(())
}

fn variable(py: Python<'_>) -> PyResult<&Bound<'_, PyAny>> {
    static VARIABLE: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let variable = VARIABLE.get_or_try_init(py, || {
        let variable = py.import("gpumem._record")?.getattr("BLOCK")?;
        PyResult::Ok(variable.unbind())
    })?;
    Ok(variable.bind(py))
}

fn decorated<'py>(function: &Bound<'py, PyAny>, name: Option<&str>) -> PyResult<Bound<'py, PyAny>> {
    let module = function.py().import("gpumem._record")?;
    module.call_method1("decorated", (function, name))
}

/// A failure of ours is said once and stays out of the user's block.
fn guarded<T>(py: Python<'_>, body: impl FnOnce() -> PyResult<T>) -> Option<T> {
    guard::logged(py, "a block was not recorded", body)
}

/// Leaving a generator is no error.
fn ending_of(error: &Bound<'_, PyAny>) -> PyResult<RunEnding> {
    if error.is_none() || error.is_instance_of::<PyGeneratorExit>() {
        return Ok(RunEnding::OK);
    }
    RunEnding::of_error(error)
}
