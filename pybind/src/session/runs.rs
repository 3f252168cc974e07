//! Begin, end and marks of the runs of cells and blocks.

use std::io;
use std::sync::atomic::Ordering;

use gpumem_core::recording::{DeviceKey, Reading, RunIdx, Sample};
use gpumem_core::units::Nanos;
use pyo3::prelude::*;

use super::held;
use super::reading::{readings_after, readings_as_ordered, readings_inside, with_sources};
use super::storing::note_device_used;
use super::{IS_RUNNING, Session, is_owner, is_running, records_blocks, with_session};
use crate::ending::Ending;
use crate::oom::observer;
use crate::recorder::{Launch, Mark};
use crate::sampler::Interval;
use crate::sources::{Found, Ordered};
use crate::{guard, loops, run_end};

/// What was sampled of each device, by its key.
type SampledDevices = Vec<(DeviceKey, Vec<Sample>)>;

/// A block of a session: one of another session is not open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BlockId {
    session: u32,
    run: RunIdx,
}

impl BlockId {
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

/// What of the machine a run reads, for as long as this lives. No names stand for all that there is.
#[derive(Debug, Default)]
pub(crate) struct Selection {
    /// Labels of devices.
    devices: Vec<String>,
    /// How often they are sampled at the most; `None` leaves it to the session.
    interval: Option<Interval>,
    /// What is read when the run is over; `None` where it is what is read anyway.
    restored_sources: Option<Vec<String>>,
}

impl Selection {
    /// Reads from `sources` alone; resets the peak counters first, if the user says so.
    pub(crate) fn begin(
        py: Python<'_>,
        devices: Vec<String>,
        sources: &[String],
        reset_peak: bool,
        interval: Option<Interval>,
    ) -> Self {
        let restored_sources = if sources.is_empty() {
            None
        } else {
            with_sources(py, |asked| {
                let before = asked.chosen();
                asked.choose(sources).ok().map(|()| before)
            })
            .flatten()
        };
        if reset_peak {
            let failures = with_sources(py, |asked| asked.reset_peaks(py, &devices));
            for failure in failures.into_iter().flatten() {
                guard::log_once(py, &failure);
            }
        }
        Self {
            devices,
            interval,
            restored_sources,
        }
    }
}

impl Drop for Selection {
    /// However the run ended, and also where it did not: the session may have been reset inside it.
    fn drop(&mut self) {
        if let Some(before) = self.restored_sources.take() {
            // These were chosen before, so they can be chosen again.
            Python::try_attach(|py| with_sources(py, |sources| drop(sources.choose(&before))));
        }
    }
}

/// Begins a cell's run, whose levels were ordered just before.
pub(crate) fn begin(
    py: Python<'_>,
    launch: Launch,
    ordered: Option<Ordered>,
    selection: &Selection,
    holders: bool,
) -> PyResult<()> {
    if !is_owner() {
        return Ok(());
    }
    let before = readings_as_ordered(py, ordered, &selection.devices);
    if holders {
        held::look_before(py, &before)?;
    }
    let (id, sampling) = with_session(py, |session| {
        let run = session.recorder.begin(launch, before);
        session.ooms_before.insert(run, observer::mark());
        session.devices.clone_from(&selection.devices);
        (
            session.block_id(run),
            session.sample(run, selection.interval),
        )
    })?;
    warn_of_thread(py, sampling);
    loops::begin(py, id);
    Ok(())
}

/// Ends the open run of a cell, if there is one, and what was selected for it.
pub(crate) fn end(
    py: Python<'_>,
    ending: Ending,
    selection: Selection,
) -> PyResult<Option<RunIdx>> {
    if !is_owner() || !is_running() {
        return Ok(None);
    }
    let stopped = with_session(py, |session| {
        let run = session.recorder.cell_run()?;
        Some((session.block_id(run), session.stopped(run)))
    })?;
    let Some((id, (run, ended, sampled))) = stopped else {
        return Ok(None);
    };
    loops::end(py, Some(id));
    let after = readings_after(py, run, &selection.devices)?;
    note_device_used(py, &after)?;
    drop(selection);
    with_session(py, |session| {
        session.devices.clear();
        session
            .end(run, ending, ended, after, sampled)
            .then_some(run)
    })
}

/// Begins a block, nested in the block `around` as far as that is open, or in the
/// cell's run. `None` where nothing is recorded.
pub(crate) fn begin_block(
    py: Python<'_>,
    name: &str,
    around: Option<BlockId>,
) -> PyResult<Option<BlockId>> {
    if !is_owner() || !records_blocks() {
        return Ok(None);
    }
    let before = readings_inside(py)?;
    let (id, is_first, sampling) = with_session(py, |session| {
        let around = session.own(around);
        let run = session.recorder.begin_block(name, around, before);
        session.ooms_before.insert(run, observer::mark());
        let is_first = session.sampled.is_none() && session.recorder.cell_run().is_none();
        let sampling = if is_first {
            session.sample(run, None)
        } else {
            Ok(())
        };
        session.note_open();
        (session.block_id(run), is_first, sampling)
    })?;
    warn_of_thread(py, sampling);
    if is_first {
        loops::begin(py, id);
    }
    Ok(Some(id))
}

/// Ends a block. One of a session that was reset is forgotten already.
pub(crate) fn end_block(py: Python<'_>, id: BlockId, ending: Ending) -> PyResult<()> {
    if !is_owner() {
        return Ok(());
    }
    let stopped = with_session(py, |session| {
        let run = session.own(Some(id))?;
        Some(session.stopped(run))
    })?;
    let Some((run, ended, sampled)) = stopped else {
        return Ok(());
    };
    loops::end(py, Some(id));
    let devices = with_session(py, |session| session.devices.clone())?;
    let after = readings_after(py, run, &devices)?;
    with_session(py, |session| {
        if session.own(Some(id)).is_some() {
            session.end(run, ending, ended, after, sampled);
        }
    })?;
    run_end::tell(py, run);
    Ok(())
}

/// Sets a mark in the block `around`, or in the cell's run.
pub(crate) fn mark(py: Python<'_>, mark: Mark<'_>, around: Option<BlockId>) -> PyResult<()> {
    if !is_owner() {
        return Ok(());
    }
    let readings = readings_inside(py)?;
    with_session(py, |session| {
        let around = session.own(around);
        session.recorder.mark(mark, around, readings);
    })
}

pub(super) fn warn_of_thread(py: Python<'_>, sampling: io::Result<()>) {
    if let Err(error) = sampling {
        guard::log_once(
            py,
            &format!("runs have no samples: no thread was started: {error}"),
        );
    }
}

impl Session {
    /// The run of an interval is open: it is sampled.
    pub(super) fn opens(&mut self, run: RunIdx) -> io::Result<()> {
        self.ooms_before.insert(run, observer::mark());
        self.sample(run, None)
    }

    /// Samples from now on in `run`; the run that was sampled so far keeps what it has.
    fn sample(&mut self, run: RunIdx, interval: Option<Interval>) -> io::Result<()> {
        if let Some(other) = self.sampled.replace(run) {
            let points = self.sampler.end();
            self.recorder.sampled(other, points);
        }
        self.note_open();
        self.recorder.store_watches(run, self.sampler.watched());
        self.sampler.begin(interval.unwrap_or(self.interval))
    }

    /// What was sampled in `run`, which ends now: no sample of it is later.
    pub(super) fn stopped(&mut self, run: RunIdx) -> (RunIdx, Nanos, SampledDevices) {
        let sampled = self.samples_of(run);
        (run, self.recorder.clock().now(), sampled)
    }

    /// What was sampled in `run`.
    fn samples_of(&mut self, run: RunIdx) -> SampledDevices {
        if self.sampled != Some(run) {
            return Vec::new();
        }
        self.sampled = None;
        self.sampler.end()
    }

    /// False where it is not open.
    pub(super) fn end(
        &mut self,
        run: RunIdx,
        ending: Ending,
        ended: Nanos,
        after: Vec<(Found, Reading)>,
        sampled: SampledDevices,
    ) -> bool {
        let seen = self.ooms_before.remove(&run).and_then(observer::since);
        let oom = match ending.oom {
            Some(report) => Some(report.completed_by(seen)),
            None => seen,
        };
        let was_open = self.recorder.end(run, ending.status, ended, after);
        if was_open {
            self.recorder.ran_out(run, oom);
            self.recorder.sampled(run, sampled);
        }
        self.note_open();
        was_open
    }

    fn block_id(&self, run: RunIdx) -> BlockId {
        BlockId {
            session: self.number,
            run,
        }
    }

    /// The run of a block, if it is of this session.
    pub(super) fn own(&self, block: Option<BlockId>) -> Option<RunIdx> {
        block
            .filter(|block| block.session == self.number)
            .map(|block| block.run)
    }

    fn note_open(&self) {
        IS_RUNNING.store(self.recorder.is_open(), Ordering::Relaxed);
    }
}
