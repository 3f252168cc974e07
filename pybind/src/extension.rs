//! The `IPython` extension: events around every cell, and the line after it.
//!
//! Events record; the magics only mark. Nothing of ours may reach the user's
//! cell: every callback is guarded, and the first failure stops the recording.

use std::mem;
use std::sync::{Mutex, MutexGuard, PoisonError};

use gpumem_core::printable::{printable, printable_lines};
use gpumem_core::recording::{Framework, RunIdx, Status};
use pyo3::exceptions::{PyException, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::MutexExt;
use pyo3::types::{PyDict, PyString};

use crate::ending::Ending;
use crate::modules::imported;
use crate::named_snapshot::on_oom;
use crate::recorder::{Launch, SourceText};
use crate::sampler::Interval;
use crate::session::{self, Selection};
use crate::text::{Text, strings};
use crate::trace::{Traceable, Tracing, flight};
use crate::{guard, interrupt, oom, rules, run_end, stored, trainers};

const ISSUES: &str = concat!(env!("CARGO_PKG_REPOSITORY"), "/issues");

static LOADED: Mutex<Vec<Py<Extension>>> = Mutex::new(Vec::new());

/// The options of one `%%gpumem` line.
#[derive(Debug, Default, FromPyObject)]
struct CellOptions {
    label: Option<Text>,
    devices: Vec<Text>,
    sources: Vec<Text>,
    reset_peak: bool,
    interval: Option<Text>,
    trace: bool,
    /// As Python has it: a file's name need not be UTF-8.
    trace_file: Option<Py<PyString>>,
    quiet: bool,
    /// None where the line leaves it to the default.
    holders: Option<bool>,
}

/// What one shell has of gpumem.
#[pyclass(frozen, module = "gpumem._gpumem")]
pub(crate) struct Extension {
    shell: Py<PyAny>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Takes the magics, the transformer and the traits out of the shell.
    uninstall: Option<Py<PyAny>>,
    /// Every cell is recorded, not only those that ask for it.
    record_all: bool,
    /// Nothing is printed after a cell that did not ask for it.
    quiet: bool,
    /// Who holds memory is looked for after a run that left some.
    holders: bool,
    /// Our failure, after which nothing is recorded.
    stopped: Option<Stopped>,
    /// The run below which the callback for a trainer was named.
    hinted: Option<RunIdx>,
    /// Why the last line was not shown.
    unsaid: Option<String>,
    /// The `ExecutionInfo` of each `run_cell` under way, outermost first.
    under_way: Vec<Py<PyAny>>,
    open: Option<Open>,
}

/// A failure of ours.
struct Stopped {
    reason: String,
    /// Jupyter's number of the cell in which it came.
    execution_count: Option<u32>,
    /// A cell that did not ask for it has said so.
    is_said: bool,
}

/// The recorded run that is under way.
struct Open {
    /// Where its cell stands in `State::under_way`.
    depth: usize,
    /// `%%gpumem` asked for it.
    asked: bool,
    quiet: bool,
    holders: bool,
    selection: Selection,
    /// `--trace` asked for it.
    traced: Option<Traced>,
}

/// The tracing of a run that is under way.
struct Traced {
    tracing: Tracing,
    /// The cell as typed.
    source: String,
}

#[pymethods]
impl Extension {
    fn pre_run_cell(&self, py: Python<'_>, info: &Bound<'_, PyAny>) {
        let number = || self.execution_count(py, info);
        self.guarded(py, number, || self.cell_begins(py, info));
        self.hand_on_interrupt(py, interrupt::raise_in_cell);
    }

    fn post_run_cell(&self, py: Python<'_>, result: &Bound<'_, PyAny>) {
        // Its own place in `In` is taken by now.
        let number = || {
            let next = self.execution_count(py, &result.getattr(intern!(py, "info"))?)?;
            Ok(next.and_then(|next| next.checked_sub(1)))
        };
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
        self.state(py).stopped.as_ref().map(Stopped::words)
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
        let (publish, output) = self.publication(py, &text, PyDict::new(py))?;
        publish.call((), Some(&output)).map(drop)
    }
}

impl Stopped {
    /// One line.
    fn words(&self) -> String {
        let number = self.execution_count;
        let after = number.map_or_else(String::new, |number| format!(" after In [{number}]"));
        let reason = printable(self.reason.trim_end_matches('.'));
        format!(
            "recording stopped{after}: {reason}. Your cells are not affected. \
             `%gpumem on` records again."
        )
    }
}

impl Traced {
    fn finish(
        self,
        py: Python<'_>,
        shell: &Bound<'_, PyAny>,
        run: RunIdx,
    ) -> PyResult<Vec<String>> {
        let source = &self.source;
        self.tracing.finish(py, &Traceable { run, shell, source })
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

    /// Lets nothing out of `body`; its first failure stops the recording. `number` is Jupyter's, of
    /// the cell.
    fn guarded(
        &self,
        py: Python<'_>,
        number: impl FnOnce() -> PyResult<Option<u32>>,
        body: impl FnOnce() -> PyResult<()>,
    ) {
        if self.state(py).stopped.is_some() {
            return;
        }
        if let Err(failure) = guard::caught(py, body) {
            let number = guard::caught(py, number).ok().flatten().flatten();
            self.state(py).stopped = Some(Stopped {
                reason: failure.clone(),
                execution_count: number,
                is_said: false,
            });
            // A second failure is no news.
            drop(guard::caught(py, || self.break_off(py)));
            guard::log(
                py,
                &format!(
                    "recording stopped: {failure}\n\
                     hint: your cells are not affected; `%gpumem on` records again; \
                     please report this at {ISSUES}"
                ),
            );
        }
    }

    fn cell_begins(&self, py: Python<'_>, info: &Bound<'_, PyAny>) -> PyResult<()> {
        self.drop_stale(py)?;
        let (depth, nested, record_all, holders) = {
            let mut state = self.state(py);
            state.under_way.push(info.clone().unbind());
            (
                state.under_way.len() - 1,
                state.open.is_some(),
                state.record_all,
                state.holders,
            )
        };
        if nested {
            return Ok(());
        }
        // A cell may hold half of a surrogate pair, which IPython refuses to compile.
        let raw_cell = info.getattr(intern!(py, "raw_cell"))?;
        let Text(source) = raw_cell.extract()?;
        let options = cell_options(&raw_cell, &source)?;
        if options.is_none() && (!record_all || is_control(&source)) {
            return Ok(());
        }
        let asked = options.is_some();
        let options = options.unwrap_or_default();
        let interval = options
            .interval
            .map(|interval| parsed_interval(&interval.0));
        let selection = Selection::begin(
            py,
            strings(options.devices),
            &strings(options.sources),
            options.reset_peak,
            interval.transpose()?,
        );
        let ordered = session::order(py);
        let launch = Launch {
            cell_id: text_of(&info.getattr(intern!(py, "cell_id"))?),
            execution_count: self.execution_count(py, info)?,
            source: source.clone(),
            label: options.label.map(String::from),
        };
        let holders = options.holders.unwrap_or(holders);
        session::begin(py, launch, ordered, &selection, holders)?;
        // A history of one run takes the place of the standing one.
        let flight = if options.trace {
            flight::end(py)
        } else {
            flight::begin(py, &source)
        };
        if let Err(error) = flight {
            guard::log_once(py, &format!("the flight recorder does not work: {error}"));
        }
        let traced = if options.trace {
            let tracing = Tracing::begin(py, &source, options.trace_file)?;
            Some(Traced { tracing, source })
        } else {
            None
        };
        oom::holders::watch(holders);
        on_oom::begin();
        self.state(py).open = Some(Open {
            depth,
            asked,
            quiet: options.quiet,
            holders,
            selection,
            traced,
        });
        Ok(())
    }

    fn cell_ended(&self, py: Python<'_>, result: &Bound<'_, PyAny>) -> PyResult<()> {
        let Some(position) = self.position(py, result)? else {
            return Ok(());
        };
        let (finished, open) = {
            let mut state = self.state(py);
            let finished = state.under_way.split_off(position);
            let is_over = state
                .open
                .as_ref()
                .is_some_and(|open| open.depth >= position);
            (finished, if is_over { state.open.take() } else { None })
        };
        drop(finished);
        let Some(mut open) = open else { return Ok(()) };
        let (selection, traced) = (mem::take(&mut open.selection), open.traced.take());
        oom::holders::watch(false);
        let ending = ending_of(result);
        if let Ok(Ending { oom: Some(oom), .. }) = &ending
            && oom.message.framework == Some(Framework::Torch)
        {
            // If torch's allocator could not tell it then.
            on_oom::at_this_moment(py);
        }
        let snapshot = on_oom::end();
        if !self.state(py).record_all {
            end_flight(py);
        }
        let ended = ending.and_then(|ending| session::end(py, ending, selection));
        let Ok(Some(run)) = ended else {
            if let Some(traced) = traced {
                traced.tracing.abandon(py);
            }
            return ended.map(drop);
        };
        run_end::tell(py, run);
        if open.asked && !open.quiet {
            // It is written while the line is made.
            session::hurry_store(py)?;
        }
        let is_traced = traced.is_some();
        let mut notes = match traced {
            Some(traced) => traced
                .finish(py, self.shell.bind(py), run)
                .unwrap_or_else(|error| vec![format!("the trace could not be read: {error}")]),
            None => Vec::new(),
        };
        notes.extend(snapshot);
        if open.holders {
            session::look_for_holders(py, run)?;
        }
        session::look_for_segments(py, run, is_traced)?;
        let hint = self.hint_at_trainer(py, run, result)?;
        let is_hint = hint.is_some();
        notes.extend(hint);
        let is_shown = self.say(py, &open, run, notes)?;
        if is_hint && is_shown {
            self.state(py).hinted = Some(run);
        }
        self.say_trouble_of_store(py, &open)
    }

    /// Ends what is recorded of a cell that goes on without us.
    fn break_off(&self, py: Python<'_>) -> PyResult<()> {
        let open = {
            let mut state = self.state(py);
            state.under_way.clear();
            state.open.take()
        };
        oom::holders::watch(false);
        drop(on_oom::end());
        end_flight(py);
        let (selection, traced) =
            open.map_or_else(Default::default, |open| (open.selection, open.traced));
        if let Some(traced) = traced {
            traced.tracing.abandon(py);
        }
        session::end(py, Ending::OK, selection).map(drop)
    }

    /// Where the cell of `result` stands among those under way.
    ///
    /// A cell of whitespace ends without having begun; a cell that was cancelled
    /// ends without a result, or with one whose `info` is not that of its begin.
    fn position(&self, py: Python<'_>, result: &Bound<'_, PyAny>) -> PyResult<Option<usize>> {
        if result.is_none() {
            return Ok(Some(0));
        }
        let info = result.getattr(intern!(py, "info"))?;
        let under_way = self.under_way(py);
        if let Some(position) = under_way.iter().rposition(|it| it.is(&info)) {
            return Ok(Some(position));
        }
        let raw_cell = info.getattr(intern!(py, "raw_cell"))?;
        for (position, candidate) in under_way.iter().enumerate().rev() {
            if candidate
                .getattr(py, intern!(py, "raw_cell"))?
                .bind(py)
                .eq(&raw_cell)?
            {
                return Ok(Some(position));
            }
        }
        Ok(None)
    }

    /// Ends what `IPython` finished without telling: a Ctrl-C between its last
    /// statement and the event would leave every later cell nested in this one.
    fn drop_stale(&self, py: Python<'_>) -> PyResult<()> {
        let under_way = self.under_way(py);
        let Some(outermost) = under_way.first() else {
            return Ok(());
        };
        let last = self
            .shell
            .getattr(py, intern!(py, "last_execution_result"))?;
        if last.is_none(py) || !last.getattr(py, "info")?.is(outermost) {
            return Ok(());
        }
        self.cell_ended(py, last.bind(py))
    }

    fn under_way(&self, py: Python<'_>) -> Vec<Py<PyAny>> {
        let state = self.state(py);
        state
            .under_way
            .iter()
            .map(|info| info.clone_ref(py))
            .collect()
    }

    /// Jupyter's number of the cell, where it gets one: the next place in `In`.
    /// The shell's own counter stands at the next cell already in some versions.
    fn execution_count(&self, py: Python<'_>, info: &Bound<'_, PyAny>) -> PyResult<Option<u32>> {
        if !info.getattr(intern!(py, "store_history"))?.is_truthy()? {
            return Ok(None);
        }
        let history = self.shell.getattr(py, intern!(py, "history_manager"))?;
        if history.is_none(py) {
            return Ok(None);
        }
        let inputs = history.getattr(py, intern!(py, "input_hist_parsed"))?;
        Ok(u32::try_from(inputs.bind(py).len()?).ok())
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

    /// The line after a cell, and whether it was shown. Where the user's output takes none, the next
    /// one says so.
    fn say(&self, py: Python<'_>, open: &Open, run: RunIdx, notes: Vec<String>) -> PyResult<bool> {
        let quiet = open.quiet || (!open.asked && self.state(py).quiet);
        if quiet {
            return Ok(false);
        }
        let line = session::line(py, run, open.asked, self.width(py)?)?;
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
        let (publish, output) = self.publication(py, &line, tag)?;
        match publish.call((), Some(&output)) {
            Err(error) if error.is_instance_of::<PyException>(py) => {
                self.state(py).unsaid = Some(error.to_string());
                Ok(false)
            }
            shown => shown.map(|_| true),
        }
    }

    /// Until one was shown: the callback for a trainer that ran for long in a cell without a mark.
    fn hint_at_trainer(
        &self,
        py: Python<'_>,
        run: RunIdx,
        result: &Bound<'_, PyAny>,
    ) -> PyResult<Option<String>> {
        let is_past = self.state(py).hinted.is_some() || result.is_none();
        if is_past || !session::is_long_and_unmarked(py, run)? || !trainers::is_imported(py)? {
            return Ok(None);
        }
        let raw_cell = result.getattr("info")?.getattr("raw_cell")?;
        Ok(trainers::hint(py, self.shell.bind(py), &raw_cell))
    }

    /// Once, below a cell without a line: why the session is not kept, or what happened to its file.
    fn say_trouble_of_store(&self, py: Python<'_>, open: &Open) -> PyResult<()> {
        let quiet = open.quiet || (!open.asked && self.state(py).quiet);
        if quiet {
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

    /// What became of the last session of this notebook, if that died.
    fn say_last_died(&self, py: Python<'_>) -> PyResult<()> {
        let Some(line) = stored::last_died(py, self.width(py)?)? else {
            return Ok(());
        };
        let (publish, output) = self.publication(py, &line, PyDict::new(py))?;
        publish.call((), Some(&output)).map(drop)
    }

    /// In place of the usual line: after each cell that asks for one, and once where every cell is
    /// recorded.
    fn say_stopped(&self, py: Python<'_>, result: &Bound<'_, PyAny>) -> PyResult<()> {
        let info = result.getattr(intern!(py, "info"))?;
        let raw_cell = info.getattr(intern!(py, "raw_cell"))?;
        let Text(source) = raw_cell.extract()?;
        // Reading the options may be what fails.
        let options = cell_options(&raw_cell, &source)
            .unwrap_or_else(|_| has_magic(&source).then(CellOptions::default));
        let words = {
            let mut state = self.state(py);
            let every_cell = state.record_all && !state.quiet && !is_control(&source);
            let Some(stopped) = &mut state.stopped else {
                return Ok(());
            };
            let is_shown = match options {
                Some(options) => !options.quiet,
                None => every_cell && !stopped.is_said,
            };
            if !is_shown {
                return Ok(());
            }
            stopped.is_said = true;
            stopped.words()
        };
        let (publish, output) = self.publication(py, &words, PyDict::new(py))?;
        publish.call((), Some(&output)).map(drop)
    }

    /// How the shell shows `text` as display data, and what to call that with. Never stdout, and
    /// tagged, so that nbstripout and nbval can drop it.
    fn publication<'py>(
        &self,
        py: Python<'py>,
        text: &str,
        tag: Bound<'py, PyDict>,
    ) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyDict>)> {
        let content = PyDict::new(py);
        content.set_item("text/plain", printable_lines(text))?;
        let metadata = PyDict::new(py);
        metadata.set_item("gpumem", tag)?;
        let output = PyDict::new(py);
        output.set_item("data", content)?;
        output.set_item("metadata", metadata)?;
        let publisher = self.shell.bind(py).getattr("display_pub")?;
        Ok((publisher.getattr("publish")?, output))
    }

    fn state(&self, py: Python<'_>) -> MutexGuard<'_, State> {
        self.state
            .lock_py_attached(py)
            .unwrap_or_else(PoisonError::into_inner)
    }
}

/// Records torch's history no longer, if that is our doing.
fn end_flight(py: Python<'_>) {
    if let Err(error) = flight::end(py) {
        guard::log_once(
            py,
            &format!("the flight recorder could not be stopped: {error}"),
        );
    }
}

fn trouble_words(trouble: &str) -> String {
    format!("{trouble}; recording goes on")
}

/// Loads gpumem into a shell. A second time does nothing.
#[pyfunction]
#[pyo3(signature = (ip))]
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
        .import("gpumem.magics")?
        .call_method1("install", (ip, &extension))?;
    extension.get().state(py).uninstall = Some(uninstall.unbind());
    close_at_exit(py)?;
    if !session::is_disabled() {
        let events = ip.getattr("events")?;
        for event in ["pre_run_cell", "post_run_cell"] {
            events.call_method1("register", (event, extension.getattr(event)?))?;
        }
        if let Err(failure) = guard::caught(py, || extension.get().say_last_died(py)) {
            guard::log(
                py,
                &format!("what became of the last session is not known: {failure}"),
            );
        }
    }
    LOADED
        .lock_py_attached(py)
        .unwrap_or_else(PoisonError::into_inner)
        .push(extension.unbind());
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
#[pyfunction]
#[pyo3(signature = (ip))]
pub(crate) fn unload_ipython_extension(py: Python<'_>, ip: &Bound<'_, PyAny>) -> PyResult<()> {
    let Some(extension) = loaded(py)
        .into_iter()
        .find(|extension| extension.get().shell.is(ip))
    else {
        return Ok(());
    };
    LOADED
        .lock_py_attached(py)
        .unwrap_or_else(PoisonError::into_inner)
        .retain(|it| !it.is(&extension));
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
    let loaded = LOADED
        .lock_py_attached(py)
        .unwrap_or_else(PoisonError::into_inner);
    loaded.iter().map(|it| it.clone_ref(py)).collect()
}

/// Every shell of this process: where gpumem is loaded, else the one that runs, if any.
pub(crate) fn shells(py: Python<'_>) -> Vec<Bound<'_, PyAny>> {
    let loaded = loaded(py);
    let mut shells: Vec<_> = loaded
        .iter()
        .map(|extension| extension.get().shell.bind(py).clone())
        .collect();
    if shells.is_empty() {
        let module = imported(py, "IPython.core.getipython").ok().flatten();
        let running = module.and_then(|module| module.call_method0("get_ipython").ok());
        shells.extend(running.filter(|shell| !shell.is_none()));
    }
    shells
}

/// The options of the cell's `%%gpumem` line, if it has one that is right.
fn cell_options(raw_cell: &Bound<'_, PyAny>, source: &str) -> PyResult<Option<CellOptions>> {
    if !source.contains("%%gpumem") {
        return Ok(None);
    }
    let magics = raw_cell.py().import("gpumem.magics")?;
    magics.call_method1("cell_options", (raw_cell,))?.extract()
}

fn has_magic(source: &str) -> bool {
    let mut lines = source.lines();
    lines.any(|line| line.trim_start().starts_with("%%gpumem"))
}

/// What a frontend sends as a text; `None` where it is none.
fn text_of(value: &Bound<'_, PyAny>) -> Option<String> {
    value.extract().ok().map(|Text(text)| text)
}

/// What `Extension.stopped` says of the shell that has stopped, if one has: a report says so.
#[pyfunction]
#[pyo3(name = "_stopped")]
pub(crate) fn stopped(py: Python<'_>) -> Option<String> {
    let mut loaded = loaded(py).into_iter();
    loaded.find_map(|extension| extension.get().stopped(py))
}

/// A text of several lines as a terminal may show it.
#[pyfunction]
#[pyo3(name = "_printable")]
pub(crate) fn shown_text(text: Text) -> String {
    let Text(text) = text;
    printable_lines(&text)
}

/// Says in a `ValueError` why a text is no interval of the sampler.
#[pyfunction]
#[pyo3(name = "_check_interval")]
pub(crate) fn check_interval(text: Text) -> PyResult<()> {
    let Text(text) = text;
    parsed_interval(&text).map(drop)
}

fn parsed_interval(text: &str) -> PyResult<Interval> {
    text.parse()
        .map_err(|words: String| PyValueError::new_err(words))
}

/// The cell does nothing but talk to gpumem, in line magics or in a `%%gpumem` line
/// that is a question or wrong: no run of the user's.
fn is_control(source: &str) -> bool {
    let mut lines = source
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty());
    let first = lines.clone().next();
    first.is_some_and(|line| line.starts_with("%%gpumem"))
        || lines.all(|line| line.starts_with("%gpumem"))
}

fn ending_of(result: &Bound<'_, PyAny>) -> PyResult<Ending> {
    if result.is_none() {
        return Ok(Ending::plain(Status::Interrupted));
    }
    let py = result.py();
    for attribute in [
        intern!(py, "error_before_exec"),
        intern!(py, "error_in_exec"),
    ] {
        let error = result.getattr(attribute)?;
        if !error.is_none() {
            return Ending::of_error(&error);
        }
    }
    Ok(Ending::OK)
}
