//! The cells under way, each from its first event to its last.
//!
//! Cells of subshells (JEP 91) run at the same time, in threads of their own. A cell is nested in another if
//! the context that runs it says so: `run_cell` inside of a cell. Its end finds its begin by `IPython`'s
//! `ExecutionInfo`, whatever began or ended meanwhile.

use gpumem_model::recording::{Framework, Status};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyWeakrefMethods, PyWeakrefReference};

use super::options::{cell_options, is_control};
use super::parent::context_of_cell;
use super::{Extension, parsed_interval};
use crate::ipython::late_line;
use crate::python::blocks;
use crate::recording::ending::RunEnding;
use crate::recording::named_snapshot::on_oom;
use crate::recording::oom::holders::OomWatch;
use crate::recording::recorder::Launch;
use crate::recording::run_end;
use crate::recording::session::{self, RunId, Selection};
use crate::recording::trace::{Traceable, Tracing, flight};
use gpumem_base::guard;
use gpumem_base::modules::imported;
use gpumem_base::strand::{Strand, current_task};
use gpumem_base::text::{SourceCode, Text, strings};

pub(super) struct RunningCell {
    /// `IPython`'s `ExecutionInfo`.
    info: Py<PyAny>,
    /// As `threading` has it.
    thread: Option<Py<PyAny>>,
    strand: Strand,
    task: Option<Py<PyWeakrefReference>>,
    execution_count: Option<u32>,
    /// `None` if it is not recorded, or is part of a cell that is.
    recorded: Option<RecordedCell>,
}

pub(super) struct RecordedCell {
    run: RunId,
    /// What its context was in before.
    around: Option<RunId>,
    /// The cell has `%%gpumem`.
    pub(super) has_magic: bool,
    pub(super) quiet: bool,
    /// Searches for holders after the cell and when memory runs out in it.
    watching: Option<OomWatch>,
    selection: Selection,
    /// Set by `--trace`.
    traced: Option<TracedCell>,
    snapshot: on_oom::RunWatch,
    /// In which another thread shows something below it.
    context: Option<Py<PyAny>>,
}

struct TracedCell {
    tracing: Tracing,
    /// The cell as typed.
    source: String,
}

impl Extension {
    pub(super) fn cell_begins(&self, py: Python<'_>, info: &Bound<'_, PyAny>) -> PyResult<()> {
        // Read first: other cells begin while this one waits for its levels.
        let execution_count = self.next_count(py, info)?;
        self.end_stale(py)?;
        self.end_orphans(py)?;
        late_line::say(py)?;
        session::heap_changes(py)?;
        let around = blocks::current(py)?;
        let is_nested = session::is_in_cell(py, around)?;
        let cell = RunningCell {
            info: info.clone().unbind(),
            thread: current_thread(py)?,
            strand: Strand::current(py),
            task: task_here(py)?,
            execution_count,
            recorded: None,
        };
        let (record_all, holders) = {
            let mut state = self.state(py);
            state.cells.push(cell);
            (state.record_all, state.holders)
        };
        if is_nested {
            return Ok(());
        }
        // A cell may hold half of a surrogate pair, which IPython refuses to compile.
        let raw_cell = info.getattr(intern!(py, "raw_cell"))?;
        let Text(source) = raw_cell.extract()?;
        let options = cell_options(&raw_cell, &source)?;
        if options.is_none() && (!record_all || is_control(&source)) {
            if !is_control(&source) {
                session::note_unrecorded(py)?;
            }
            // What it marks is no part of a cell that runs in another thread.
            return blocks::set_current(py, around.or(Some(RunId::NONE)));
        }
        let has_magic = options.is_some();
        let options = options.unwrap_or_default();
        let interval = options.interval.map(|it| parsed_interval(&it.0));
        let selection = Selection::begin(
            py,
            strings(options.devices),
            &strings(options.sources),
            options.reset_peak,
            interval.transpose()?,
        );
        if session::is_before_first_run(py)? && self.has_defined_before(py)? {
            session::note_unrecorded(py)?;
        }
        let ordered = session::order(py);
        let launch = Launch {
            cell_id: text_of(&info.getattr(intern!(py, "cell_id"))?),
            execution_count,
            code: SourceCode {
                text: source.clone(),
                file: info
                    .getattr_opt("program_file")?
                    .and_then(|it| text_of(&it)),
            },
            label: options.label.map(String::from),
        };
        let holders = options.holders.unwrap_or(holders);
        let Some(run) = session::begin(py, launch, ordered, &selection, holders)? else {
            return Ok(());
        };
        let recorded = RecordedCell {
            run,
            around,
            has_magic,
            quiet: options.quiet,
            watching: holders.then(OomWatch::begin),
            selection,
            traced: None,
            snapshot: on_oom::begin(),
            context: context_of_cell(py)?,
        };
        self.with_cell(py, info, |cell| cell.recorded = Some(recorded));
        blocks::set_current(py, Some(run))?;
        // A history of one run takes the place of the standing one.
        let flight = if options.trace {
            flight::end(py)
        } else {
            flight::begin(py, &source)
        };
        if let Err(error) = flight {
            guard::log_failure(py, "the flight recorder does not work", &error);
        }
        if options.trace {
            let tracing = Tracing::begin(py, run, &source, options.trace_file)?;
            self.with_cell(py, info, |cell| {
                if let Some(recorded) = &mut cell.recorded {
                    recorded.traced = Some(TracedCell { tracing, source });
                }
            });
        }
        Ok(())
    }

    pub(super) fn cell_ended(&self, py: Python<'_>, result: &Bound<'_, PyAny>) -> PyResult<()> {
        let Some((cell, inside)) = self.take_ended(py, result)? else {
            return Ok(());
        };
        for cell in inside {
            self.break_off_cell(py, cell, Status::Interrupted)?;
        }
        let Some(mut recorded) = cell.recorded else {
            return Ok(());
        };
        let traced = recorded.traced.take();
        let looks = recorded.watching.take().is_some();
        let ending = ending_of(result);
        if let Ok(RunEnding { oom: Some(oom), .. }) = &ending
            && oom.message.framework == Some(Framework::Torch)
        {
            // If torch's allocator could not tell it then.
            on_oom::at_this_moment(py);
        }
        let snapshot = on_oom::end(&recorded.snapshot);
        self.leave(py, &recorded)?;
        let count = count_of(result).or(cell.execution_count);
        let selection = std::mem::take(&mut recorded.selection);
        let ended =
            ending.and_then(|ending| session::end(py, recorded.run, ending, count, selection));
        let Ok(Some(run)) = ended else {
            if let Some(traced) = traced {
                traced.tracing.abandon(py);
            }
            return ended.map(drop);
        };
        run_end::tell(py, run);
        if recorded.has_magic && !recorded.quiet {
            // It is written while the line is made.
            session::hurry_store(py)?;
        }
        let is_traced = traced.is_some();
        let mut notes = match traced {
            Some(TracedCell { tracing, source }) => {
                let (shell, source) = (self.shell.bind(py), &source);
                tracing
                    .finish(py, &Traceable { run, shell, source })
                    .unwrap_or_else(|error| vec![format!("the trace could not be read: {error}")])
            }
            None => Vec::new(),
        };
        notes.extend(snapshot);
        if looks {
            session::look_for_holders(py, run)?;
        }
        session::look_for_segments(py, run, is_traced)?;
        let hint = self.hint_at_trainer(py, run, result)?;
        let is_hint = hint.is_some();
        notes.extend(hint);
        let is_shown = self.say(py, &recorded, run, count, notes)?;
        if is_hint && is_shown {
            self.state(py).hinted = Some(run);
        }
        self.say_last_died(py)?;
        self.say_trouble_of_store(py, &recorded)
    }

    /// Says something below the cell of a run that goes on, from another thread; false if it is no cell of this
    /// shell.
    pub(super) fn say_inside(&self, py: Python<'_>, run: RunId, text: &str) -> PyResult<bool> {
        let found = {
            let state = self.state(py);
            let mut recorded = state.cells.iter().filter_map(|it| it.recorded.as_ref());
            let found = recorded.find(|it| it.run == run);
            found.map(|it| {
                (
                    it.context.as_ref().map(|it| it.clone_ref(py)),
                    it.quiet || (!it.has_magic && state.quiet),
                )
            })
        };
        let Some((context, is_quiet)) = found else {
            return Ok(false);
        };
        if !is_quiet {
            self.publish_in(py, context.as_ref().map(|it| it.bind(py)), text)?;
        }
        Ok(true)
    }

    /// Ends what is recorded of cells that go on without us.
    pub(super) fn break_off(&self, py: Python<'_>) -> PyResult<()> {
        let cells = std::mem::take(&mut self.state(py).cells);
        // One that fails keeps none of the others open.
        let outcomes = cells
            .into_iter()
            .map(|cell| self.break_off_cell(py, cell, Status::Ok));
        let outcomes: Vec<_> = outcomes.collect();
        end_flight(py);
        outcomes.into_iter().collect()
    }

    fn break_off_cell(&self, py: Python<'_>, cell: RunningCell, status: Status) -> PyResult<()> {
        let Some(recorded) = cell.recorded else {
            return Ok(());
        };
        self.leave(py, &recorded)?;
        if let Some(traced) = recorded.traced {
            traced.tracing.abandon(py);
        }
        let (ending, count) = (RunEnding::plain(status), cell.execution_count);
        session::end(py, recorded.run, ending, count, recorded.selection).map(drop)
    }

    /// A recorded cell is over: its context is in it no longer, and torch's history is not ours to record if
    /// it was the last.
    fn leave(&self, py: Python<'_>, recorded: &RecordedCell) -> PyResult<()> {
        if blocks::current(py)? == Some(recorded.run) {
            blocks::set_current(py, recorded.around)?;
        }
        let is_needed = {
            let state = self.state(py);
            state.record_all || state.cells.iter().any(|cell| cell.recorded.is_some())
        };
        if !is_needed {
            end_flight(py);
        }
        Ok(())
    }

    /// The cell of `result`, and those inside of it that never ended, which are under way no longer.
    ///
    /// A cell of whitespace ends without having begun. A cell that was cancelled ends without a result, or with
    /// one whose `info` is not that of its begin. And a cell whose subshell was deleted may tell of its end once
    /// its coroutine is freed: in any thread, in the middle of any cell.
    fn take_ended(
        &self,
        py: Python<'_>,
        result: &Bound<'_, PyAny>,
    ) -> PyResult<Option<(RunningCell, Vec<RunningCell>)>> {
        let position = if result.is_none() {
            self.cancelled(py)?
        } else {
            self.position(py, &result.getattr(intern!(py, "info"))?)?
        };
        let Some(position) = position else {
            return Ok(None);
        };
        let mut state = self.state(py);
        let later = state.cells.split_off(position);
        let mut later = later.into_iter();
        let Some(cell) = later.next() else {
            return Ok(None);
        };
        let (inside, others): (Vec<_>, Vec<_>) = later.partition(|it| it.strand == cell.strand);
        state.cells.extend(others);
        Ok(Some((cell, inside)))
    }

    /// The first cell of this thread whose task is over.
    fn cancelled(&self, py: Python<'_>) -> PyResult<Option<usize>> {
        let here = Strand::current(py).thread;
        let tasks: Vec<(usize, Py<PyWeakrefReference>)> = {
            let state = self.state(py);
            let cells = state.cells.iter().enumerate();
            let cells = cells.filter(|(_, it)| it.strand.thread == here);
            cells
                .filter_map(|(position, it)| Some((position, it.task.as_ref()?.clone_ref(py))))
                .collect()
        };
        for (position, task) in tasks {
            let task = task.bind(py).upgrade();
            let is_over = match task {
                Some(task) => task.call_method0(intern!(py, "done"))?.is_truthy()?,
                None => true,
            };
            if is_over {
                return Ok(Some(position));
            }
        }
        Ok(None)
    }

    fn position(&self, py: Python<'_>, info: &Bound<'_, PyAny>) -> PyResult<Option<usize>> {
        let here = Strand::current(py).thread;
        let running: Vec<(Py<PyAny>, bool)> = {
            let state = self.state(py);
            let cells = state.cells.iter();
            cells
                .map(|it| (it.info.clone_ref(py), it.strand.thread == here))
                .collect()
        };
        if let Some(position) = running.iter().rposition(|(it, _)| it.is(info)) {
            return Ok(Some(position));
        }
        let raw_cell = info.getattr(intern!(py, "raw_cell"))?;
        for (position, (candidate, is_here)) in running.iter().enumerate().rev() {
            let text = candidate.bind(py).getattr(intern!(py, "raw_cell"))?;
            if *is_here && text.eq(&raw_cell)? {
                return Ok(Some(position));
            }
        }
        Ok(None)
    }

    /// Ends what `IPython` finished without telling: a Ctrl-C between its last
    /// statement and the event would leave every later cell of the thread nested in this one.
    fn end_stale(&self, py: Python<'_>) -> PyResult<()> {
        let here = Strand::current(py).thread;
        let outermost = {
            let state = self.state(py);
            let outermost = state.cells.iter().find(|it| it.strand.thread == here);
            outermost.map(|it| it.info.clone_ref(py))
        };
        let Some(outermost) = outermost else {
            return Ok(());
        };
        let last = self
            .shell
            .getattr(py, intern!(py, "last_execution_result"))?;
        if last.is_none(py) || !last.getattr(py, "info")?.is(&outermost) {
            return Ok(());
        }
        self.cell_ended(py, last.bind(py))
    }

    /// Ends the cells whose threads are gone: nobody tells of a cell that awaits when its subshell is deleted.
    fn end_orphans(&self, py: Python<'_>) -> PyResult<()> {
        let threads: Vec<Option<Py<PyAny>>> = {
            let state = self.state(py);
            let threads = state.cells.iter().map(|it| it.thread.as_ref());
            threads.map(|it| it.map(|it| it.clone_ref(py))).collect()
        };
        for thread in threads.into_iter().flatten() {
            if thread
                .call_method0(py, intern!(py, "is_alive"))?
                .is_truthy(py)?
            {
                continue;
            }
            let place = |it: &RunningCell| it.thread.as_ref().is_some_and(|it| it.is(&thread));
            let mut state = self.state(py);
            let position = state.cells.iter().position(place);
            let cell = position.map(|position| state.cells.remove(position));
            drop(state);
            if let Some(cell) = cell {
                self.break_off_cell(py, cell, Status::Interrupted)?;
            }
        }
        Ok(())
    }

    fn with_cell(
        &self,
        py: Python<'_>,
        info: &Bound<'_, PyAny>,
        body: impl FnOnce(&mut RunningCell),
    ) {
        let mut state = self.state(py);
        state
            .cells
            .iter_mut()
            .rfind(|it| it.info.is(info))
            .map(body);
    }

    /// Jupyter's number of a cell that begins, where it gets one: the next place in `In`, or the one after
    /// those of cells that have not taken theirs yet. The shell's own counter stands at the next cell
    /// already in some versions.
    pub(super) fn next_count(
        &self,
        py: Python<'_>,
        info: &Bound<'_, PyAny>,
    ) -> PyResult<Option<u32>> {
        if !info.getattr(intern!(py, "store_history"))?.is_truthy()? {
            return Ok(None);
        }
        let history = self.shell.getattr(py, intern!(py, "history_manager"))?;
        if history.is_none(py) {
            return Ok(None);
        }
        let inputs = history.getattr(py, intern!(py, "input_hist_parsed"))?;
        let next = u32::try_from(inputs.bind(py).len()?).ok();
        let state = self.state(py);
        let taken = state.cells.iter().filter_map(|it| it.execution_count).max();
        Ok(next.max(taken.map(|it| it + 1)))
    }
}

/// Records torch's history no longer, if that is our doing.
pub(super) fn end_flight(py: Python<'_>) {
    if let Err(error) = flight::end(py) {
        guard::log_failure(py, "the flight recorder could not be stopped", &error);
    }
}

/// Jupyter's number of a cell that has ended, where it got one.
pub(super) fn count_of(result: &Bound<'_, PyAny>) -> Option<u32> {
    let py = result.py();
    let info = result.getattr(intern!(py, "info")).ok()?;
    let is_stored = info.getattr(intern!(py, "store_history")).ok()?;
    let count = result.getattr(intern!(py, "execution_count")).ok()?;
    let is_stored = is_stored.is_truthy().ok()?;
    count.extract().ok().filter(|_| is_stored)
}

/// The task that runs in this thread, if it can be watched.
fn task_here(py: Python<'_>) -> PyResult<Option<Py<PyWeakrefReference>>> {
    let task = current_task(py).map(|task| PyWeakrefReference::new(&task));
    Ok(task.transpose()?.map(Bound::unbind))
}

/// `None` where `threading` is not imported.
fn current_thread(py: Python<'_>) -> PyResult<Option<Py<PyAny>>> {
    let threading = imported(py, "threading")?;
    let current = threading.map(|it| it.call_method0(intern!(py, "current_thread")));
    Ok(current.transpose()?.map(Bound::unbind))
}

/// What a frontend sends as a text; `None` where it is none.
fn text_of(value: &Bound<'_, PyAny>) -> Option<String> {
    value.extract().ok().map(|Text(text)| text)
}

fn ending_of(result: &Bound<'_, PyAny>) -> PyResult<RunEnding> {
    if result.is_none() {
        return Ok(RunEnding::plain(Status::Interrupted));
    }
    let py = result.py();
    for attribute in [
        intern!(py, "error_before_exec"),
        intern!(py, "error_in_exec"),
    ] {
        let error = result.getattr(attribute)?;
        if !error.is_none() {
            return RunEnding::of_error(&error);
        }
    }
    Ok(RunEnding::OK)
}
