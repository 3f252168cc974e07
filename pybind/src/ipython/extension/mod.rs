//! The `IPython` extension: events around every cell, and the line after it.
//!
//! Events record; the magics only mark. Nothing of ours may reach the user's
//! cell: every callback is guarded, and the first failure stops the recording.

mod cells;
mod failure;
mod history;
mod line;
mod options;
mod parent;

use std::sync::{Mutex, MutexGuard};

use gpumem_model::recording::RunIdx;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::python::{rules, stored};
use crate::recording::recorder::SourceText;
use crate::recording::session::{self, RunId};
use cells::{RunningCell, count_of, end_flight};
use failure::StopReason;
use gpumem_base::locks::lock_attached;
use gpumem_base::shells::{self, LoadedShell};
use gpumem_base::text::Text;
use gpumem_base::{guard, interrupt};
use gpumem_machine::sampler::Interval;

/// What one shell has of gpumem.
#[pyclass(frozen, module = "gpumem._gpumem")]
pub(crate) struct Extension {
    shell: Py<PyAny>,
    state: Mutex<ShellState>,
}

#[derive(Default)]
struct ShellState {
    /// Takes the magics, the transformer and the traits out of the shell.
    uninstall: Option<Py<PyAny>>,
    /// Every cell is recorded, not only those that ask for it.
    record_all: bool,
    /// Nothing is printed after a cell that did not ask for it.
    quiet: bool,
    /// Searches for holders after a run that kept memory.
    holders: bool,
    /// Our failure, after which nothing is recorded.
    stopped: Option<StopReason>,
    /// The run below which the callback for a trainer was named.
    hinted: Option<RunIdx>,
    /// Why the last line was not shown.
    unsaid: Option<String>,
    /// Every `run_cell` under way, in the order in which they began.
    cells: Vec<RunningCell>,
}

#[pymethods]
impl Extension {
    fn pre_run_cell(&self, py: Python<'_>, info: &Bound<'_, PyAny>) {
        let number = || self.next_count(py, info);
        self.guarded(py, number, || self.cell_begins(py, info));
        self.hand_on_interrupt(py, interrupt::raise_in_cell);
    }

    fn post_run_cell(&self, py: Python<'_>, result: &Bound<'_, PyAny>) {
        let number = || Ok(count_of(result));
        self.guarded(py, number, || self.cell_ended(py, result));
        if self.state(py).stopped.is_some() {
            // What stopped the recording may fail here, too; it has been said.
            drop(guard::caught(py, || self.say_stopped(py, result)));
        }
        interrupt::forget(self.shell.bind(py));
        self.hand_on_interrupt(py, |shell, error| interrupt::end_cell(shell, result, error));
    }

    /// What `GpuMem.rules` says now.
    #[expect(clippy::unused_self, reason = "a method beside `configure`")]
    fn judge_by(&self, py: Python<'_>, thresholds: &Bound<'_, PyDict>) -> PyResult<()> {
        session::judge_by(py, rules::from_python(thresholds)?)
    }

    /// What `GpuMem`'s other traits say now.
    fn configure(
        &self,
        py: Python<'_>,
        record_all: bool,
        quiet: bool,
        source_text: Text,
        holders: bool,
        interval: Text,
    ) -> PyResult<()> {
        let (Text(source_text), Text(interval)) = (source_text, interval);
        session::sample_every(py, parsed_interval(&interval)?)?;
        let kept = SourceText::from_name(&source_text).unwrap_or_default();
        session::keep_source_text(py, kept)?;
        session::look_after_blocks(holders);
        let mut state = self.state(py);
        state.record_all = record_all;
        state.quiet = quiet;
        state.holders = holders;
        drop(state);
        if !record_all {
            end_flight(py);
        }
        Ok(())
    }

    /// In words: our failure, after which nothing is recorded until `resume`, and how to go on.
    #[getter]
    fn stopped(&self, py: Python<'_>) -> Option<String> {
        self.state(py).stopped.as_ref().map(StopReason::message)
    }

    /// Records again after a failure of ours.
    fn resume(&self, py: Python<'_>) {
        let stopped = self.state(py).stopped.take();
        if stopped.is_some() {
            // The failure may have left a run open.
            drop(guard::caught(py, || self.break_off(py)));
        }
    }

    /// Shows `text` as display data with our tag.
    fn show(&self, py: Python<'_>, text: Text) -> PyResult<()> {
        let Text(text) = text;
        self.publish(py, &text, PyDict::new(py))
    }
}

impl Extension {
    /// Hands the user's Ctrl-C to the cell, which `IPython` would drop where a callback raises it.
    fn hand_on_interrupt(
        &self,
        py: Python<'_>,
        hand_on: impl FnOnce(&Bound<'_, PyAny>, PyErr) -> PyResult<()>,
    ) {
        if let Err(interrupt) = py.check_signals()
            && let Err(error) = hand_on(self.shell.bind(py), interrupt)
        {
            guard::log(py, &format!("a Ctrl-C was lost: {error}"));
        }
    }

    fn state(&self, py: Python<'_>) -> MutexGuard<'_, ShellState> {
        lock_attached(py, &self.state)
    }
}

/// Loads gpumem into a shell. A second time does nothing.
#[pyfunction(signature = (ip))]
pub(crate) fn load_ipython_extension(py: Python<'_>, ip: &Bound<'_, PyAny>) -> PyResult<()> {
    if loaded(py)
        .iter()
        .any(|extension| extension.get().shell.is(ip))
    {
        return Ok(());
    }
    let extension = Bound::new(
        py,
        Extension {
            shell: ip.clone().unbind(),
            state: Mutex::default(),
        },
    )?;
    let uninstall = py
        .import("gpumem._install")?
        .call_method1("install", (ip, &extension))?;
    extension.get().state(py).uninstall = Some(uninstall.unbind());
    close_at_exit(py)?;
    if !session::is_disabled() {
        let events = ip.getattr("events")?;
        for event in ["pre_run_cell", "post_run_cell"] {
            events.call_method1("register", (event, extension.getattr(event)?))?;
        }
        let say_last_died = || {
            stored::search_last(py)?;
            extension.get().say_last_died(py)
        };
        if let Err(failure) = guard::caught(py, say_last_died) {
            guard::log(
                py,
                &format!("could not find out how the last session ended: {failure}"),
            );
        }
    }
    shells::loaded(py).push(LoadedShell {
        shell: ip.clone().unbind(),
        extension: extension.into_any().unbind(),
    });
    Ok(())
}

/// The session's file is closed when the process ends in order.
fn close_at_exit(py: Python<'_>) -> PyResult<()> {
    let close = py.import("gpumem._gpumem")?.getattr("_close_store")?;
    let atexit = py.import("atexit")?;
    atexit.call_method1("unregister", (&close,))?;
    atexit.call_method1("register", (close,))?;
    Ok(())
}

/// Takes everything of gpumem out of a shell; the recording stays.
#[pyfunction(signature = (ip))]
pub(crate) fn unload_ipython_extension(py: Python<'_>, ip: &Bound<'_, PyAny>) -> PyResult<()> {
    let Some(extension) = loaded(py)
        .into_iter()
        .find(|extension| extension.get().shell.is(ip))
    else {
        return Ok(());
    };
    shells::loaded(py).retain(|it| !it.extension.is(&extension));
    let events = ip.getattr("events")?;
    for event in ["pre_run_cell", "post_run_cell"] {
        let unregistered =
            events.call_method1("unregister", (event, extension.getattr(py, event)?));
        // A cell of the user's may have taken it out already.
        if let Err(error) = unregistered
            && !error.is_instance_of::<PyValueError>(py)
        {
            return Err(error);
        }
    }
    let uninstall = extension.get().state(py).uninstall.take();
    if let Some(uninstall) = uninstall {
        uninstall.call0(py)?;
    }
    extension.get().break_off(py)
}

fn loaded(py: Python<'_>) -> Vec<Py<Extension>> {
    let loaded = shells::loaded(py);
    let extensions = loaded.iter().map(|it| it.extension.bind(py));
    let extensions = extensions.filter_map(|it| it.cast::<Extension>().ok());
    extensions.map(|it| it.clone().unbind()).collect()
}

/// Says something below the cell of a run that goes on, from another thread.
pub(crate) fn say_inside(py: Python<'_>, run: RunId, text: &str) -> PyResult<()> {
    for extension in loaded(py) {
        if extension.get().say_inside(py, run, text)? {
            break;
        }
    }
    Ok(())
}

/// The reason of the shell that has stopped, if one has, for reports.
#[pyfunction(name = "_stopped")]
pub(crate) fn stopped(py: Python<'_>) -> Option<String> {
    let mut loaded = loaded(py).into_iter();
    loaded.find_map(|extension| extension.get().stopped(py))
}

/// Says in a `ValueError` why a text is no interval of the sampler.
#[pyfunction(name = "_check_interval")]
pub(crate) fn check_interval(text: Text) -> PyResult<()> {
    let Text(text) = text;
    parsed_interval(&text).map(drop)
}

fn parsed_interval(text: &str) -> PyResult<Interval> {
    text.parse()
        .map_err(|words: String| PyValueError::new_err(words))
}
