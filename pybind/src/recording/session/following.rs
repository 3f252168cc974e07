//! An open report follows the session, also while a cell runs.

use std::sync::Arc;
use std::time::Duration;

use gpumem_model::recording::Frame;
use gpumem_wire as wire;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use super::{Session, with_session};
use crate::recording::recorder::Notifier;

/// An open run is sent again when it has grown by this part: its chart is at most this many pixels
/// wide, so a run of days sends thousands of updates rather than millions.
const SHARE_OF_A_RUN: u32 = 1000;

/// What an open report has not received yet. One report follows the session at a time.
#[pyclass(frozen, module = "gpumem._gpumem")]
pub(crate) struct Subscription {
    notifier: Arc<Notifier>,
}

/// Follows the session of this id from its first `n_runs` runs on, instead of whoever followed it so
/// far; `None` where that session is over.
#[pyfunction(name = "_follow")]
pub(crate) fn follow(
    py: Python<'_>,
    session: &str,
    n_runs: usize,
) -> PyResult<Option<Subscription>> {
    let notifier = Arc::<Notifier>::default();
    with_session(py, |current| {
        let recorder = &mut current.recorder;
        let is_current = recorder.recording().header().session == session;
        is_current.then(|| {
            recorder.follow(n_runs, Arc::clone(&notifier));
            Subscription { notifier }
        })
    })
}

#[pymethods]
impl Subscription {
    /// Waits for news without the GIL, and for `pause` seconds more; then returns its frames. `None`
    /// when there will be no more. For one thread.
    fn next<'py>(&self, py: Python<'py>, pause: f64) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let pause = Duration::try_from_secs_f64(pause).unwrap_or_default();
        loop {
            let open_for = with_session(py, |session| session.recorder.open_for())?;
            let patience = open_for.map(|age| Duration::from_nanos(age.get()) / SHARE_OF_A_RUN);
            if !py.detach(|| self.notifier.wait(patience, pause)) {
                return Ok(None);
            }
            let Some(news) = with_session(py, |session| session.news(&self.notifier))? else {
                return Ok(None);
            };
            if !news.is_empty() {
                let bytes = py.detach(|| wire::encode_frames(news));
                return Ok(Some(PyBytes::new(py, &bytes)));
            }
        }
    }

    /// Wakes waiting threads: there will be no more frames.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        self.notifier.end();
        with_session(py, |session| session.recorder.unfollow(&self.notifier))
    }
}

impl Session {
    /// With what has been sampled so far in the run that is open.
    fn news(&mut self, notifier: &Arc<Notifier>) -> Option<Vec<Frame>> {
        for run in self.sampler.runs() {
            self.recorder.sampled_so_far(run, self.sampler.so_far(run));
        }
        self.recorder.news(notifier)
    }
}
