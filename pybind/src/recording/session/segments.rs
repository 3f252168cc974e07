//! Where a device's memory lies, after a run that leaves much of it free in pieces.

use std::time::{Duration, Instant};

use gpumem_analyzer::inspection::SegmentsWanted;
use gpumem_model::recording::RunIdx;
use gpumem_model::segments::Segments;
use gpumem_model::units::Nanos;
use pyo3::prelude::*;

use super::reading::with_sources;
use super::{is_owner, with_session};
use gpumem_base::guard;

/// The most blocks that are read: each is a Python object first, and more would be noticeable.
pub(crate) const MAX_BLOCKS: u64 = 50_000;

/// What looking may take in a session, in which it is worth a look again and again.
const PATIENCE: Duration = Duration::from_millis(250);
/// And this part of the time that the session has gone on.
const SHARE: u32 = 50;

/// What looking took so far.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Spent(Duration);

impl Spent {
    fn leaves_time(self, session: Nanos) -> bool {
        self.0 <= PATIENCE + Duration::from_nanos(session.get()) / SHARE
    }
}

/// Records where memory lies on the devices of which so much is free in pieces that it is worth a
/// look, and not as it was at the last one. A run that was traced has time for any number of blocks.
pub(crate) fn look_for_segments(py: Python<'_>, run: RunIdx, is_traced: bool) -> PyResult<()> {
    if !is_owner() {
        return Ok(());
    }
    let devices = with_session(py, |session| {
        let has_time = session.spent.leaves_time(session.recorder.clock().now());
        if has_time || is_traced {
            session.recorder.segments_wanted(run)
        } else {
            Vec::new()
        }
    })?;
    for (SegmentsWanted { device, n_blocks }, label) in devices {
        let started = Instant::now();
        let found = match n_blocks {
            Some(n) if n > MAX_BLOCKS && !is_traced => Some(Err(too_many(n))),
            _ => look(py, &label),
        };
        let spent = started.elapsed();
        with_session(py, |session| {
            session.spent.0 += spent;
            if let Some(found) = found {
                session.recorder.mapped(run, device, found);
            }
        })?;
    }
    Ok(())
}

/// Why this many blocks are not read.
pub(crate) fn too_many(n: u64) -> String {
    format!("{n} blocks take a while to look at: `%%gpumem --trace` takes that time")
}

/// `None` if no source reports it.
fn look(py: Python<'_>, label: &str) -> Option<Result<Segments, String>> {
    let found = with_sources(py, |sources| sources.segments(py, label))?;
    found.unwrap_or_else(|error| {
        let message = format!("where the memory of {label} lies is not known: {error}");
        guard::log_once(py, &message);
        None
    })
}
