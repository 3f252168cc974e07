//! What the session learns of a run's history.

use gpumem_model::recording::{RunIdx, Source};
use gpumem_model::trace::Annotation;
use pyo3::prelude::*;

use super::{RunId, with_recorder, with_session};
use crate::recording::recorder::{RunAsTraced, Traced};
use gpumem_base::clock::Clock;

/// The clock of a cell's run, and whose allocators its devices have.
pub(crate) fn traceable(py: Python<'_>, id: RunId) -> PyResult<(Clock, Vec<Source>)> {
    with_session(py, |session| {
        let recorder = &session.recorder;
        let sources = session.is_own(id).then(|| recorder.allocators_of(id.run));
        (recorder.clock(), sources.unwrap_or_default())
    })
}

/// What a run's history is compared with.
pub(crate) fn run_as_traced(py: Python<'_>, run: RunIdx) -> PyResult<RunAsTraced> {
    with_recorder(py, |recorder| recorder.run_as_traced(run))
}

/// The run was traced. How many labels there was no room for.
pub(crate) fn traced(
    py: Python<'_>,
    run: RunIdx,
    histories: Vec<Traced>,
    annotations: &[Annotation],
) -> PyResult<usize> {
    with_recorder(py, |recorder| recorder.traced(run, histories, annotations))
}
