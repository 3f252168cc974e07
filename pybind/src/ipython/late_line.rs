//! What is found when the line of its cell has been shown already.
//!
//! A look answers in its own time. A kernel shows the line anew as soon as the answer adds something:
//! while it is idle, or when the next cell begins. Other shells say it with the next line.

use std::mem;
use std::sync::Mutex;
use std::time::Duration;

use gpumem_model::printable::printable_lines;
use pyo3::exceptions::PyException;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyCFunction, PyDict};

use crate::recording::session::{self, SessionRun};
use gpumem_base::guard;
use gpumem_base::locks::lock_attached;
use gpumem_base::modules::imported;

/// An idle kernel looks for the answer after this time, and then after half as long again each time,
/// until no look takes as long.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

static WAITING: Mutex<LateLines> = Mutex::new(LateLines {
    line: None,
    unsaid: String::new(),
});

struct LateLines {
    line: Option<LateLine>,
    /// Findings for the next line, with the cells that they belong to.
    unsaid: String,
}

/// A line that is shown before all is known of its run.
pub(crate) struct LateLine {
    pub(crate) run: SessionRun,
    pub(crate) shell: Py<PyAny>,
    pub(crate) execution_count: Option<u32>,
    pub(crate) width: usize,
    /// What it was published with.
    pub(crate) output: Py<PyDict>,
    pub(crate) text: String,
}

impl LateLine {
    pub(crate) fn wait(self, py: Python<'_>) -> PyResult<()> {
        let is_in_kernel = self.is_in_kernel(py)?;
        lock_attached(py, &WAITING).line = Some(self);
        if is_in_kernel {
            call_later(py, FIRST_PAUSE)?;
        }
        Ok(())
    }

    fn is_in_kernel(&self, py: Python<'_>) -> PyResult<bool> {
        self.shell.bind(py).hasattr(intern!(py, "kernel"))
    }

    /// Shows the line again, with what was found since.
    fn update(&self, py: Python<'_>, findings: &str) -> PyResult<()> {
        let text = format!("{}\n{findings}", self.text);
        let output = self.output.bind(py);
        output.set_item("data", plain_text(py, &text)?)?;
        output.set_item("update", true)?;
        let publisher = self.shell.bind(py).getattr("display_pub")?;
        match publisher.getattr("publish")?.call((), Some(output)) {
            // If the line cannot be shown, the report has it.
            Err(error) if error.is_instance_of::<PyException>(py) => Ok(()),
            shown => shown.map(drop),
        }
    }
}

/// A text as display data.
pub(crate) fn plain_text<'py>(py: Python<'py>, text: &str) -> PyResult<Bound<'py, PyDict>> {
    let content = PyDict::new(py);
    content.set_item("text/plain", printable_lines(text))?;
    Ok(content)
}

/// The display id by which a line is updated.
pub(crate) fn display_id(py: Python<'_>, run: SessionRun) -> PyResult<Bound<'_, PyDict>> {
    let transient = PyDict::new(py);
    transient.set_item("display_id", run.display_id())?;
    Ok(transient)
}

/// A cell begins or ends: what was found for an earlier one is shown there, or with the next line.
pub(crate) fn say(py: Python<'_>) -> PyResult<()> {
    let Some((line, findings)) = take_answered(py)? else {
        return Ok(());
    };
    if line.is_in_kernel(py)? {
        return line.update(py, &findings);
    }
    let number = line.execution_count;
    let of_cell = number.map_or_else(String::new, |number| format!("In [{number}]:\n"));
    lock_attached(py, &WAITING)
        .unsaid
        .extend([&*of_cell, &*findings, "\n"]);
    Ok(())
}

/// What the next line begins with.
pub(crate) fn take_unsaid(py: Python<'_>) -> String {
    mem::take(&mut lock_attached(py, &WAITING).unsaid)
}

/// The line whose answer has come, and what that adds to it.
fn take_answered(py: Python<'_>) -> PyResult<Option<(LateLine, String)>> {
    let Some(line) = lock_attached(py, &WAITING).line.take() else {
        return Ok(None);
    };
    let findings = session::late_findings(py, line.run, line.width)?;
    if findings.is_none() {
        lock_attached(py, &WAITING).line = Some(line);
        return Ok(None);
    }
    let findings = findings.filter(|findings| !findings.is_empty());
    Ok(findings.map(|findings| (line, findings)))
}

/// Looks for the answer when that much time has passed, if the kernel's event loop is free.
fn call_later(py: Python<'_>, pause: Duration) -> PyResult<()> {
    let Some(events) = imported(py, "asyncio.events")? else {
        return Ok(());
    };
    let event_loop = events.call_method0("_get_running_loop")?;
    if event_loop.is_none() {
        return Ok(());
    }
    let callback = PyCFunction::new_closure(py, None, None, move |arguments, _| {
        let py = arguments.py();
        let update = || update_if_answered(py, pause);
        guard::logged(py, "a finding was not shown", update);
    })?;
    let seconds = pause.as_secs_f64();
    event_loop
        .call_method1("call_later", (seconds, callback))
        .map(drop)
}

fn update_if_answered(py: Python<'_>, pause: Duration) -> PyResult<()> {
    if let Some((line, findings)) = take_answered(py)? {
        return line.update(py, &findings);
    }
    let is_waiting = lock_attached(py, &WAITING).line.is_some();
    if is_waiting && pause < LONGEST_PAUSE {
        call_later(py, pause * 3 / 2)?;
    }
    Ok(())
}
