//! What is shown below a cell.

use gpumem_model::printable::printable;
use gpumem_model::recording::RunIdx;
use gpumem_report as report;
use pyo3::exceptions::PyException;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::Extension;
use super::cells::RecordedCell;
use crate::ipython::late_line::{self, LateLine};
use crate::ipython::trainers;
use crate::python::stored;
use crate::recording::session::{self, SessionRun};
use gpumem_base::modules::imported;

impl Extension {
    /// The line after a cell, and whether it was shown. Where the user's output takes none, the next
    /// one says so.
    pub(super) fn say(
        &self,
        py: Python<'_>,
        cell: &RecordedCell,
        run: RunIdx,
        execution_count: Option<u32>,
        notes: Vec<String>,
    ) -> PyResult<bool> {
        if self.is_quiet(py, cell) {
            return Ok(false);
        }
        late_line::say(py)?;
        let width = self.width(py)?;
        let line = session::line(py, run, cell.has_magic, width)?;
        if line.is_none() && notes.is_empty() {
            return Ok(false);
        }
        let mut line = line.unwrap_or_default();
        let unsaid = self.state(py).unsaid.take().map(|reason| {
            format!("a line before this one was not shown: {reason}; `%gpumem_report` has its run")
        });
        session::wait_for_store(py)?;
        let trouble = session::store_trouble(py)?.map(|words| trouble_words(&words));
        for note in notes.into_iter().chain(unsaid).chain(trouble) {
            if !line.is_empty() {
                line.push('\n');
            }
            line.push_str("! ");
            line.push_str(&printable(&note));
        }
        let tag = PyDict::new(py);
        tag.set_item("run", run.0)?;
        let text = late_line::take_unsaid(py) + &line;
        let (publish, output) = self.publication(py, &text, tag)?;
        let late = SessionRun::with_late_answer(py, run)?;
        if let Some(run) = late {
            output.set_item("transient", late_line::display_id(py, run)?)?;
        }
        match publish.call((), Some(&output)) {
            Err(error) if error.is_instance_of::<PyException>(py) => {
                self.state(py).unsaid = Some(error.to_string());
                return Ok(false);
            }
            shown => shown?,
        };
        if let Some(run) = late {
            let late = LateLine {
                run,
                shell: self.shell.clone_ref(py),
                execution_count,
                width,
                output: output.unbind(),
                text,
            };
            late.wait(py)?;
        }
        Ok(true)
    }

    /// Until one was shown: the callback for a trainer that ran for long in a cell without a mark.
    pub(super) fn hint_at_trainer(
        &self,
        py: Python<'_>,
        run: RunIdx,
        result: &Bound<'_, PyAny>,
    ) -> PyResult<Option<String>> {
        let is_past = self.state(py).hinted.is_some() || result.is_none();
        if is_past || !session::is_long_without_steps(py, run)? || !trainers::is_imported(py)? {
            return Ok(None);
        }
        let raw_cell = result.getattr("info")?.getattr("raw_cell")?;
        Ok(trainers::hint(py, self.shell.bind(py), &raw_cell))
    }

    /// Once, below a cell without a line: why the session is not kept, or what happened to its file.
    pub(super) fn say_trouble_of_store(&self, py: Python<'_>, cell: &RecordedCell) -> PyResult<()> {
        if self.is_quiet(py, cell) {
            return Ok(());
        }
        let Some(trouble) = session::store_trouble(py)? else {
            return Ok(());
        };
        let words = format!("! {}", trouble_words(&trouble));
        let (publish, output) = self.publication(py, &words, PyDict::new(py))?;
        match publish.call((), Some(&output)) {
            // `%gpumem status` says it, too.
            Err(error) if error.is_instance_of::<PyException>(py) => Ok(()),
            shown => shown.map(drop),
        }
    }

    /// What became of the last session of this notebook, if that died: as soon as it is known.
    pub(super) fn say_last_died(&self, py: Python<'_>) -> PyResult<()> {
        let Some(session) = stored::last_died() else {
            return Ok(());
        };
        let line = report::last_session(&session, self.width(py)?);
        self.publish(py, &line, PyDict::new(py))
    }

    /// Shows `text` as display data.
    pub(super) fn publish(
        &self,
        py: Python<'_>,
        text: &str,
        tag: Bound<'_, PyDict>,
    ) -> PyResult<()> {
        let (publish, output) = self.publication(py, text, tag)?;
        publish.call((), Some(&output)).map(drop)
    }

    /// The same in that context.
    pub(super) fn publish_in(
        &self,
        py: Python<'_>,
        context: Option<&Bound<'_, PyAny>>,
        text: &str,
    ) -> PyResult<()> {
        let (publish, output) = self.publication(py, text, PyDict::new(py))?;
        match context {
            Some(context) => context.call_method("run", (publish,), Some(&output)),
            None => publish.call((), Some(&output)),
        }
        .map(drop)
    }

    /// How the shell shows `text` as display data, and what to call that with. Never on stdout, and tagged, so
    /// that nbstripout and nbval can drop it. It is shown below the cell of the thread that calls: Jupyter tells
    /// by a context variable which one that is.
    fn publication<'py>(
        &self,
        py: Python<'py>,
        text: &str,
        tag: Bound<'py, PyDict>,
    ) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyDict>)> {
        let metadata = PyDict::new(py);
        metadata.set_item("gpumem", tag)?;
        let output = PyDict::new(py);
        output.set_item("data", late_line::plain_text(py, text)?)?;
        output.set_item("metadata", metadata)?;
        let publisher = self.shell.bind(py).getattr("display_pub")?;
        Ok((publisher.getattr("publish")?, output))
    }

    fn is_quiet(&self, py: Python<'_>, cell: &RecordedCell) -> bool {
        cell.quiet || (!cell.has_magic && self.state(py).quiet)
    }

    /// How many columns a line has: those of a notebook, or of the terminal.
    fn width(&self, py: Python<'_>) -> PyResult<usize> {
        if self.shell.bind(py).hasattr(intern!(py, "kernel"))? {
            return Ok(session::NOTEBOOK_WIDTH);
        }
        // Imported by the shell: an import of ours would be seen by a program that replaced `__import__`.
        let Some(shutil) = imported(py, "shutil")? else {
            return Ok(session::NOTEBOOK_WIDTH);
        };
        let size = shutil.call_method0(intern!(py, "get_terminal_size"))?;
        size.getattr(intern!(py, "columns"))?.extract()
    }
}

fn trouble_words(trouble: &str) -> String {
    format!("{trouble}; recording goes on")
}
