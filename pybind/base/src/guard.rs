//! Our own failures: caught, said once, and never let into the user's cell.

use std::any::Any;
use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::fmt::Display;
use std::panic::{self, AssertUnwindSafe, UnwindSafe};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, Once};

use gpumem_model::printable::printable;
use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;

use crate::interrupt::{self, InterruptGuard};
use crate::locks::lock;
use crate::text::Text;

/// Set by a test: the next guarded call panics.
static PANIC_NEXT: AtomicBool = AtomicBool::new(false);

/// Runs `body`; what escapes from it, a panic too, comes back as its description.
///
/// A Ctrl-C that arrives meanwhile is no failure of ours: it is pending when this returns. `None`
/// where it has ended `body`, as a handler of the user's can make it do.
pub fn caught<T>(py: Python<'_>, body: impl FnOnce() -> PyResult<T>) -> Result<Option<T>, String> {
    let _held = InterruptGuard::new(py);
    let guarded = AssertUnwindSafe(|| {
        assert!(
            !PANIC_NEXT.swap(false, Ordering::Relaxed),
            "panic requested by a test"
        );
        body()
    });
    match quietly(guarded) {
        Ok(Ok(value)) => Ok(Some(value)),
        Ok(Err(error)) if error.is_instance_of::<PyKeyboardInterrupt>(py) => {
            interrupt::make_pending();
            Ok(None)
        }
        Ok(Err(error)) => Err(described(py, &error)),
        Err(words) => Err(format!("panic: {words}")),
    }
}

/// The same for a failure that is only logged, once, as `what: …`.
pub fn logged<T>(py: Python<'_>, what: &str, body: impl FnOnce() -> PyResult<T>) -> Option<T> {
    let log = |failure: &String| log_failure(py, what, failure);
    caught(py, body).inspect_err(log).ok().flatten()
}

/// Says once in the log that `what` failed, and why.
pub fn log_failure(py: Python<'_>, what: &str, failure: &(impl Display + ?Sized)) {
    log_once(py, &format!("{what}: {failure}"));
}

/// Says `message` in Python's log under the name `gpumem`, on one line.
pub fn log(py: Python<'_>, message: &str) {
    let said = py
        .import("logging")
        .and_then(|logging| logging.call_method1("getLogger", ("gpumem",)))
        .and_then(|logger| logger.call_method1("warning", ("%s", printable(message))));
    // If the logger fails, there is nowhere left to report to.
    drop(said);
}

/// The same for what Python code of ours says.
#[pyfunction(name = "_log")]
pub fn log_from_python(py: Python<'_>, message: Text) {
    let Text(message) = message;
    log(py, &message);
}

/// Says it the first time only.
pub fn log_once(py: Python<'_>, message: &str) {
    static SAID: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());
    if lock(&SAID).insert(message.to_owned()) {
        log(py, message);
    }
}

/// Makes the next callback panic, so that a test sees it contained.
#[pyfunction]
pub fn panic_in_next_callback() {
    PANIC_NEXT.store(true, Ordering::Relaxed);
}

/// `ValueError: the message (module.py:12)`: the innermost frame says where.
fn described(py: Python<'_>, error: &PyErr) -> String {
    let place = error.traceback(py).and_then(|traceback| {
        let lines = py
            .import("traceback")
            .and_then(|module| module.call_method1("extract_tb", (traceback,)))
            .ok()?;
        let last = lines.get_item(lines.len().ok()?.checked_sub(1)?).ok()?;
        let Text(file) = last.getattr("filename").ok()?.extract().ok()?;
        let line: u32 = last.getattr("lineno").ok()?.extract().ok()?;
        Some(format!(" ({file}:{line})"))
    });
    format!("{error}{}", place.unwrap_or_default())
}

/// Runs `body`; what its panic says is returned and not printed into the user's cell.
pub fn quietly<T>(body: impl FnOnce() -> T + UnwindSafe) -> Result<T, String> {
    thread_local! {
        static IS_QUIET: Cell<bool> = const { Cell::new(false) };
        static PLACE: RefCell<Option<String>> = const { RefCell::new(None) };
    }
    // The hook is this library's own: no other in the process sees it.
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let print = panic::take_hook();
        panic::set_hook(Box::new(move |panic| {
            if IS_QUIET.get() {
                PLACE.set(panic.location().map(ToString::to_string));
            } else {
                print(panic);
            }
        }));
    });
    let was_quiet = IS_QUIET.replace(true);
    let outcome = panic::catch_unwind(body);
    IS_QUIET.set(was_quiet);
    outcome.map_err(|payload| {
        let message = panic_message(payload.as_ref());
        match PLACE.take() {
            Some(place) => format!("{message} ({place})"),
            None => message.to_owned(),
        }
    })
}

fn panic_message(payload: &(dyn Any + Send)) -> &str {
    payload
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| payload.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("without a message")
}
