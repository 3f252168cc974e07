//! Defers Ctrl-C while gpumem's own code runs, so that it interrupts the user's cell.
//!
//! If it were raised inside a callback, `IPython` would print and drop it. If it were raised while
//! a framework is read, it would look like the framework's failure. Therefore the handler only
//! notes it. Afterwards it becomes pending again, or a callback raises it in the cell.

#![expect(
    unsafe_code,
    reason = "a signal is made pending by Python's C interface"
)]

use std::sync::atomic::{AtomicBool, Ordering};

use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;

/// `signal.SIGINT` of every system.
const INTERRUPT: i32 = 2;

static IS_HELD: AtomicBool = AtomicBool::new(false);

/// A Ctrl-C came while it was held back.
static CAME: AtomicBool = AtomicBool::new(false);

/// One that the next cell raises waits among the shell's transformers.
static IS_POSTPONED: AtomicBool = AtomicBool::new(false);

/// Ctrl-C is held back as long as this lives.
pub(crate) struct InterruptGuard<'py> {
    functions: &'static SignalFunctions,
    py: Python<'py>,
}

struct SignalFunctions {
    get: Py<PyAny>,
    set: Py<PyAny>,
    /// The usual handler, which raises `KeyboardInterrupt`.
    raises: Py<PyAny>,
    notes: Py<PyAny>,
}

impl<'py> InterruptGuard<'py> {
    /// `None` where no Ctrl-C is to be feared: the handler is another than Python's own, or this is
    /// not the main thread, the only one that handles signals.
    pub(crate) fn new(py: Python<'py>) -> Option<Self> {
        let functions = SignalFunctions::cached(py).ok()?;
        let current = functions.current(py)?;
        // Code of the user's that ran inside ours may have put ours back when we were gone.
        let is_left_over = current.is(&functions.notes) && !IS_HELD.load(Ordering::Relaxed);
        if !(current.is(&functions.raises) || is_left_over) || !is_main_thread(py) {
            return None;
        }
        // One that is pending already is raised here.
        let set = || functions.set.call1(py, (INTERRUPT, &functions.notes));
        if set().is_err() {
            CAME.store(true, Ordering::Relaxed);
            set().ok()?;
        }
        IS_HELD.store(true, Ordering::Relaxed);
        Some(Self { functions, py })
    }
}

impl Drop for InterruptGuard<'_> {
    fn drop(&mut self) {
        let (functions, py) = (self.functions, self.py);
        // Code of the user's that ran meanwhile may have set a handler of its own: that one stays.
        let is_ours = functions
            .current(py)
            .is_some_and(|it| it.is(&functions.notes));
        if is_ours {
            // What came last is noted on the way.
            drop(functions.set.call1(py, (INTERRUPT, &functions.raises)));
        }
        IS_HELD.store(false, Ordering::Relaxed);
        if CAME.swap(false, Ordering::Relaxed) {
            make_pending();
        }
    }
}

/// Makes the interpreter call the handler as soon as the main thread runs Python code again.
pub(crate) fn make_pending() {
    // SAFETY: may be called at any time; the number is a signal's.
    unsafe { ffi::PyErr_SetInterruptEx(INTERRUPT) };
}

impl SignalFunctions {
    fn current(&self, py: Python<'_>) -> Option<Py<PyAny>> {
        self.get.call1(py, (INTERRUPT,)).ok()
    }

    fn cached(py: Python<'_>) -> PyResult<&'static Self> {
        static FUNCTIONS: PyOnceLock<SignalFunctions> = PyOnceLock::new();
        FUNCTIONS.get_or_try_init(py, || {
            // Its wrapper `signal` makes an enumeration of every answer.
            let module = py.import("_signal")?;
            Ok(Self {
                get: module.getattr("getsignal")?.unbind(),
                set: module.getattr("signal")?.unbind(),
                raises: module.getattr("default_int_handler")?.unbind(),
                notes: wrap_pyfunction!(note, py)?.into_any().unbind(),
            })
        })
    }
}

/// The handler that notes a deferred Ctrl-C. If it is still installed afterwards, it raises as
/// Python's own handler does.
#[pyfunction]
fn note(signal: i32, frame: &Bound<'_, PyAny>) -> PyResult<()> {
    let _ = (signal, frame);
    if !IS_HELD.load(Ordering::Relaxed) {
        return Err(PyKeyboardInterrupt::new_err(()));
    }
    CAME.store(true, Ordering::Relaxed);
    Ok(())
}

/// Ends the cell that is about to run, as a Ctrl-C at its first line would.
pub fn raise_in_cell(shell: &Bound<'_, PyAny>, error: PyErr) -> PyResult<()> {
    let postponed = Postponed {
        shell: shell.clone().unbind(),
        error: error.into_value(shell.py()).into_any(),
    };
    let transformers = shell.getattr("ast_transformers")?;
    transformers.call_method1("append", (postponed,))?;
    IS_POSTPONED.store(true, Ordering::Relaxed);
    Ok(())
}

/// Takes back what never came to be raised: the cell did not get so far. Cells of other threads know of none.
pub fn forget(shell: &Bound<'_, PyAny>) {
    if !is_main_thread(shell.py()) || !IS_POSTPONED.swap(false, Ordering::Relaxed) {
        return;
    }
    let taken_back = || {
        let transformers = shell.getattr("ast_transformers")?;
        for position in (0..transformers.len()?).rev() {
            if transformers
                .get_item(position)?
                .is_instance_of::<Postponed>()
            {
                transformers.del_item(position)?;
            }
        }
        PyResult::Ok(())
    };
    // A list that is gone holds nothing of ours.
    drop(taken_back());
}

/// Ends a cell whose code is done, as a Ctrl-C in its last moment would: what is queued behind it
/// does not run.
pub fn end_cell(shell: &Bound<'_, PyAny>, result: &Bound<'_, PyAny>, error: PyErr) -> PyResult<()> {
    if result.is_none() || !result.getattr("success")?.is_truthy()? {
        return Ok(());
    }
    let error = error.into_value(shell.py()).into_bound(shell.py());
    result.setattr("error_in_exec", &error)?;
    let traceback = error.getattr("__traceback__")?;
    shell.call_method1("showtraceback", ((error.get_type(), error, traceback),))?;
    Ok(())
}

/// What `IPython` functions the cell's syntax tree to, as the last step before its code runs.
#[pyclass(frozen)]
struct Postponed {
    shell: Py<PyAny>,
    error: Py<PyAny>,
}

#[pymethods]
impl Postponed {
    fn visit(&self, py: Python<'_>, node: Py<PyAny>) -> PyResult<Py<PyAny>> {
        // A cell in another thread comes by first.
        if !is_main_thread(py) {
            return Ok(node);
        }
        forget(self.shell.bind(py));
        Err(PyErr::from_value(self.error.bind(py).clone()))
    }
}

fn is_main_thread(py: Python<'_>) -> bool {
    std::thread_local! {
        static IS_MAIN: std::cell::Cell<Option<bool>> = const { std::cell::Cell::new(None) };
    }
    if let Some(is_main) = IS_MAIN.get() {
        return is_main;
    }
    let query = || {
        let threading = py.import("threading")?;
        let (current, main) = (
            threading.call_method0("get_ident")?,
            threading.call_method0("main_thread")?.getattr("ident")?,
        );
        current.eq(main)
    };
    let is_main = query().unwrap_or(false);
    IS_MAIN.set(Some(is_main));
    is_main
}
