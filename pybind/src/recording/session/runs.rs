//! Begin, end and marks of the runs of cells and blocks.

use std::io;
use std::sync::atomic::Ordering;

use gpumem_model::recording::{Reading, RunIdx, RunKind};
use gpumem_model::units::Nanos;
use pyo3::prelude::*;

use super::reading::{readings, readings_after, readings_as_ordered};
use super::selection::Selection;
use super::{
    IS_RUNNING, LOOKS_AFTER_BLOCKS, Session, children, holder_search, is_owner, is_running,
    records_blocks, with_session,
};
use crate::recording::ending::RunEnding;
use crate::recording::oom::observer;
use crate::recording::recorder::{EnclosingRun, End, Launch, Mark, RunStart};
use crate::recording::{loops, run_end};
use gpumem_base::guard;
use gpumem_base::strand::Strand;
use gpumem_base::text::SourceCode;
use gpumem_machine::sampler::{Interval, SampledDevices};
use gpumem_machine::sources::{PendingReadings, SourceDevice};

/// A run of a cell or block of a session: one of another session is not open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RunId {
    session: u32,
    pub(super) run: RunIdx,
}

impl RunId {
    /// What code is in that is in no recorded run.
    pub(crate) const NONE: Self = Self {
        session: u32::MAX,
        run: RunIdx(u32::MAX),
    };

    /// As a number that a context keeps.
    pub(crate) fn to_bits(self) -> u64 {
        u64::from(self.session) << 32 | u64::from(self.run.0)
    }

    pub(crate) fn from_bits(bits: u64) -> Self {
        let half = |bits: u64| u32::try_from(bits & u64::from(u32::MAX)).unwrap_or_default();
        Self {
            session: half(bits >> 32),
            run: RunIdx(half(bits)),
        }
    }
}

/// Begins a cell's run, whose levels were ordered just before. `None` where nothing is recorded.
pub(crate) fn begin(
    py: Python<'_>,
    launch: Launch,
    ordered: Option<PendingReadings>,
    selection: &Selection,
    holders: bool,
) -> PyResult<Option<RunId>> {
    if !is_owner() {
        return Ok(None);
    }
    let strand = Strand::current(py);
    let beside = with_session(py, |session| session.recorder.open_beside(strand))?;
    let levels = readings_as_ordered(py, ordered, &selection.devices);
    if holders {
        holder_search::look_before(py, &levels)?;
    }
    let start = RunStart {
        strand,
        beside,
        levels,
    };
    let (id, sampling) = with_session(py, |session| {
        let run = session.recorder.begin(launch, start);
        session.devices.insert(run, selection.devices.clone());
        (session.id(run), session.opens(run, selection.interval))
    })?;
    warn_of_thread(py, sampling);
    loops::begin(py, id, holders);
    Ok(Some(id))
}

/// Ends a cell's run, and what was selected for it. The run; `None` where it is not open. The
/// `execution_count` is given where it is known better than when the run began.
pub(crate) fn end(
    py: Python<'_>,
    id: RunId,
    ending: RunEnding,
    execution_count: Option<u32>,
    selection: Selection,
) -> PyResult<Option<RunIdx>> {
    if !is_owner() {
        return Ok(None);
    }
    let Some(stopped) = with_session(py, |session| session.stop(id))? else {
        return Ok(None);
    };
    loops::end(py, Some(id));
    let run = stopped.run;
    let mut levels = readings_after(py, run, &selection.devices)?;
    children::note(py, run, &mut levels);
    drop(selection);
    let strand = Strand::current(py);
    let was_open = with_session(py, |session| {
        session.is_own(id) && session.end(stopped, ending, execution_count, strand, levels)
    })?;
    Ok(was_open.then_some(run))
}

/// The context of that block is inside of a recorded cell that goes on.
pub(crate) fn is_in_cell(py: Python<'_>, around: Option<RunId>) -> PyResult<bool> {
    let Some(around) = around else {
        return Ok(false);
    };
    with_session(py, |session| {
        let run = session.recorder.innermost(session.around(Some(around)));
        let recording = session.recorder.recording();
        // A block may outlive its cell.
        let outermost = run.map(|run| recording.run(recording.outermost(run)));
        outermost.is_some_and(|run| run.kind == RunKind::Cell && run.ended.is_none())
    })
}

/// A recorded cell goes on in this thread.
pub(crate) fn has_cell_here(py: Python<'_>) -> bool {
    let strand = Strand::current(py);
    is_running()
        && with_session(py, |session| session.recorder.has_cell_in(strand)).unwrap_or(false)
}

/// Begins a block, nested in the block `around` as far as that is open, or in the
/// cell's run. `None` where nothing is recorded.
pub(crate) fn begin_block(
    py: Python<'_>,
    name: &str,
    around: Option<RunId>,
    source: impl FnOnce() -> Option<SourceCode>,
) -> PyResult<Option<RunId>> {
    if !is_owner() || !records_blocks() {
        return Ok(None);
    }
    let strand = Strand::current(py);
    let (beside, devices, is_inside) = with_session(py, |session| {
        let around = session.around(around);
        let run = session.recorder.innermost(around);
        (
            session.recorder.open_beside(strand),
            session.devices_of(run),
            run.is_some(),
        )
    })?;
    let source = if is_inside { None } else { source() };
    let levels = readings(py, &devices);
    if !is_inside && LOOKS_AFTER_BLOCKS.load(Ordering::Relaxed) {
        holder_search::look_before(py, &levels)?;
    }
    let start = RunStart {
        strand,
        beside,
        levels,
    };
    let (id, is_outermost, sampling) = with_session(py, |session| {
        let around = session.around(around);
        let run = session.recorder.begin_block(name, source, around, start);
        let is_outermost = session.recorder.recording().run(run).parent.is_none();
        let sampling = if is_outermost {
            session.opens(run, None)
        } else {
            session.opens_inside(run);
            Ok(())
        };
        (session.id(run), is_outermost, sampling)
    })?;
    warn_of_thread(py, sampling);
    if is_outermost {
        loops::begin(py, id, false);
    }
    Ok(Some(id))
}

/// Ends a block. One of a session that was reset is forgotten already.
pub(crate) fn end_block(py: Python<'_>, id: RunId, ending: RunEnding) -> PyResult<()> {
    if !is_owner() {
        return Ok(());
    }
    let stopped = with_session(py, |session| {
        let stopped = session.stop(id)?;
        let devices = session.devices_of(Some(stopped.run));
        Some((stopped, devices))
    })?;
    let Some((stopped, devices)) = stopped else {
        return Ok(());
    };
    loops::end(py, Some(id));
    let run = stopped.run;
    let mut levels = readings_after(py, run, &devices)?;
    let is_outermost = with_session(py, |session| session.is_outermost(id))?;
    if is_outermost {
        children::note(py, run, &mut levels);
    }
    let strand = Strand::current(py);
    with_session(py, |session| {
        if session.is_own(id) {
            session.end(stopped, ending, None, strand, levels);
        }
    })?;
    run_end::tell(py, run);
    // A cell's end has its own look.
    if is_outermost && LOOKS_AFTER_BLOCKS.load(Ordering::Relaxed) {
        holder_search::look_for_holders(py, run)?;
    }
    Ok(())
}

/// Sets a mark in the block `around`, or in the cell's run.
pub(crate) fn mark(py: Python<'_>, mark: Mark<'_>, around: Option<RunId>) -> PyResult<()> {
    if !is_owner() {
        return Ok(());
    }
    let devices = with_session(py, |session| {
        let run = session.recorder.innermost(session.around(around));
        run.map(|run| session.devices_of(Some(run)))
    })?;
    let Some(devices) = devices else {
        return Ok(());
    };
    let readings = readings(py, &devices);
    with_session(py, |session| {
        let around = session.around(around);
        session.recorder.mark(mark, around, readings);
    })
}

pub(super) fn warn_of_thread(py: Python<'_>, sampling: io::Result<()>) {
    if let Err(error) = sampling {
        guard::log_failure(py, "runs have no samples: no thread was started", &error);
    }
}

/// A run whose code is over, and what was sampled in it: no sample of it is later.
pub(super) struct Stopped {
    pub(super) run: RunIdx,
    at: Nanos,
    sampled: SampledDevices,
}

impl Session {
    /// An outermost run is open: it is sampled.
    pub(super) fn opens(&mut self, run: RunIdx, interval: Option<Interval>) -> io::Result<()> {
        self.opens_inside(run);
        self.recorder.store_watches(run, self.sampler.watched(run));
        self.sampler.begin(run, interval.unwrap_or(self.interval))
    }

    /// A run in another is open, in whose samples are its own.
    fn opens_inside(&mut self, run: RunIdx) {
        self.ooms_before.insert(run, observer::mark_of_run());
        self.note_open();
    }

    /// The code of a run is over. `None` if it is of another session.
    fn stop(&mut self, id: RunId) -> Option<Stopped> {
        self.is_own(id).then(|| self.stopped(id.run))
    }

    pub(super) fn stopped(&mut self, run: RunIdx) -> Stopped {
        Stopped {
            run,
            at: self.recorder.clock().now(),
            sampled: self.sampler.end(run),
        }
    }

    /// False where it is not open.
    pub(super) fn end(
        &mut self,
        Stopped { run, at, sampled }: Stopped,
        ending: RunEnding,
        execution_count: Option<u32>,
        strand: Strand,
        levels: Vec<(SourceDevice, Reading)>,
    ) -> bool {
        self.devices.remove(&run);
        let seen = self.ooms_before.remove(&run).and_then(observer::since);
        let oom = match ending.oom {
            Some(report) => Some(report.completed_by(seen)),
            None => seen,
        };
        let end = End {
            strand,
            status: ending.status,
            at,
            execution_count,
            levels,
        };
        let was_open = self.recorder.end(run, end);
        if was_open {
            self.recorder.ran_out(run, oom);
            self.recorder.sampled(run, sampled);
        }
        self.note_open();
        let is_outermost = was_open && self.recorder.recording().run(run).parent.is_none();
        // Another cell may go on: should the process die, that is the one to know of.
        if let Some(other) = self.sampler.runs().last().filter(|_| is_outermost) {
            let so_far = self.sampler.watched(*other);
            self.recorder.store_watches_again(*other, so_far);
        }
        was_open
    }

    fn id(&self, run: RunIdx) -> RunId {
        RunId {
            session: self.number,
            run,
        }
    }

    /// It is a run of this session.
    pub(super) fn is_own(&self, id: RunId) -> bool {
        id.session == self.number
    }

    /// It is a run of this session, and in no other.
    fn is_outermost(&self, id: RunId) -> bool {
        let mut runs = self.recorder.recording().runs().iter();
        self.is_own(id) && runs.nth(id.run.get()).is_some_and(|it| it.parent.is_none())
    }

    /// The run around a context.
    fn around(&self, named: Option<RunId>) -> EnclosingRun {
        match named {
            None => EnclosingRun::Unknown,
            Some(id) if self.is_own(id) => EnclosingRun::Run(id.run),
            Some(_) => EnclosingRun::Nothing,
        }
    }

    /// What is read for a run: as its cell says.
    pub(super) fn devices_of(&self, run: Option<RunIdx>) -> Vec<String> {
        let outermost = run.map(|run| self.recorder.recording().outermost(run));
        let devices = outermost.and_then(|run| self.devices.get(&run));
        devices.cloned().unwrap_or_default()
    }

    fn note_open(&self) {
        IS_RUNNING.store(self.recorder.is_open(), Ordering::Relaxed);
    }
}
