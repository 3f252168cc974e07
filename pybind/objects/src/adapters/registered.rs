//! Adapters that users register for types of their own.

use std::sync::Mutex;

use gpumem_model::units::Bytes;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple, PyType};

use gpumem_base::guard;
use gpumem_base::locks::lock_attached;

static REGISTERED: Mutex<Vec<RegisteredAdapter>> = Mutex::new(Vec::new());

struct RegisteredAdapter {
    class: Py<PyType>,
    function: Py<PyAny>,
    after_runs: bool,
}

/// Which of them a search may call: they are code of the user's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Asks {
    /// The user's query of who holds memory.
    All,
    /// A run has ended: those for which the user said so.
    AfterRuns,
    /// Something of the user's is under way.
    Nobody,
}

/// Tells gpumem what objects of a type of yours hold on a device.
///
/// `function(object)` returns `(device, n_bytes)`, such as `("cuda:0", 1 << 20)`, or a list of
/// those. A third item, a whole number such as an address, tells bytes that several objects
/// share. The adapter also applies to subclasses. The function is your own code: it is called when
/// you look for holders, and with `after_runs=True` also after a recorded cell whose memory grew.
/// An exception that it raises is logged, and the object is skipped.
#[pyfunction]
#[pyo3(signature = (type_, function, /, *, after_runs=false))]
pub fn register_adapter(
    type_: &Bound<'_, PyType>,
    function: &Bound<'_, PyAny>,
    after_runs: bool,
) -> PyResult<()> {
    if !function.is_callable() {
        let message = format!("an adapter is a function, not {}", function.repr()?);
        return Err(PyTypeError::new_err(message));
    }
    let py = type_.py();
    let mut registered = lock_attached(py, &REGISTERED);
    registered.retain(|known| !known.class.is(type_));
    registered.push(RegisteredAdapter {
        class: type_.clone().unbind(),
        function: function.clone().unbind(),
        after_runs,
    });
    Ok(())
}

/// A type, and the function that reports the memory of its instances.
pub(crate) type Registered<'py> = (Bound<'py, PyType>, Bound<'py, PyAny>);

/// The registered types with their functions, as far as these may be called.
pub fn registered(py: Python<'_>, asks: Asks) -> Vec<Registered<'_>> {
    let may_be_called = |it: &&RegisteredAdapter| match asks {
        Asks::All => true,
        Asks::AfterRuns => it.after_runs,
        Asks::Nobody => false,
    };
    let bound = |it: &RegisteredAdapter| (it.class.bind(py).clone(), it.function.bind(py).clone());
    let registered = lock_attached(py, &REGISTERED);
    registered.iter().filter(may_be_called).map(bound).collect()
}

/// Bytes that a user's function reports.
#[derive(Debug, PartialEq, Eq)]
pub struct ReportedBytes {
    /// As people write it: `cuda:0`.
    pub device: String,
    /// What the object holds there.
    pub n_bytes: Bytes,
    /// The same for objects that share them.
    pub key: Option<u64>,
}

/// Calls a user's function; logs the first exception.
pub(crate) fn ask(function: &Bound<'_, PyAny>, object: &Bound<'_, PyAny>) -> Vec<ReportedBytes> {
    let answer = function
        .call1((object,))
        .and_then(|answer| entries(&answer));
    answer.unwrap_or_else(|error| {
        let message = format!("an adapter that you registered failed: {error}");
        guard::log_once(object.py(), &message);
        Vec::new()
    })
}

fn entries(answer: &Bound<'_, PyAny>) -> PyResult<Vec<ReportedBytes>> {
    if let Ok(list) = answer.cast::<PyList>() {
        return list.iter().map(|entry| one(&entry)).collect();
    }
    Ok(vec![one(answer)?])
}

fn one(answer: &Bound<'_, PyAny>) -> PyResult<ReportedBytes> {
    let wrong = |_| {
        let said = answer
            .repr()
            .map_or_else(|_| "?".to_owned(), |it| it.to_string());
        PyTypeError::new_err(format!(
            "not (device, n_bytes) or (device, n_bytes, key): {said}"
        ))
    };
    let entry = answer
        .cast::<PyTuple>()
        .map_err(|error| wrong(error.into()))?;
    let (device, n_bytes, key) = match entry.len() {
        3 => entry
            .extract::<(String, u64, u64)>()
            .map(|(it, n, key)| (it, n, Some(key))),
        _ => entry
            .extract::<(String, u64)>()
            .map(|(it, n)| (it, n, None)),
    }
    .map_err(wrong)?;
    Ok(ReportedBytes {
        device,
        n_bytes: Bytes::new(n_bytes),
        key,
    })
}
