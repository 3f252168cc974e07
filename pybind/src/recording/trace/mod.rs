//! `%%gpumem --trace`: the allocator's own history of one run.
//!
//! Of torch's CUDA allocator and of the simulated device. Host memory has no such
//! history. If the user already records torch's history, gpumem reads it and leaves it on;
//! otherwise gpumem records it during the run.

mod cells;
pub(crate) mod flight;
mod modules;
mod saved;
mod snapshot;
mod torch;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use gpumem_model::recording::{RunIdx, Source};
use gpumem_model::trace::Annotation;
use pyo3::prelude::*;
use pyo3::types::PyString;

use crate::recording::recorder::Traced;
use crate::recording::session::{self, RunId};
pub(crate) use cells::CompiledCells;
pub(crate) use flight::allocation_traceback;
use gpumem_base::clock::Clock;
use gpumem_machine::sim::{SimDevice, begin_traces};
use torch::TorchTrace;

const NOTHING: &str = "nothing to trace here: a history is kept by torch's CUDA allocator, once \
                       CUDA runs, and by the simulated device; host memory has none";

const TAKEN: &str = "not traced: another cell is being traced";

/// A run is traced: an allocator keeps one history.
static IS_TRACED: AtomicBool = AtomicBool::new(false);

/// The allocator history of the open run.
pub(crate) struct Tracing {
    /// `None` while another run is traced.
    turn: Option<TraceTurn>,
    clock: Clock,
    sim: Vec<Arc<SimDevice>>,
    torch: Option<TorchTrace>,
    /// Where torch's own snapshot goes, for its viewer.
    file: Option<Py<PyString>>,
    /// What the user should know.
    notes: Vec<String>,
}

/// The run of the history, as the shell knows it.
pub(crate) struct Traceable<'a, 'py> {
    pub(crate) run: RunIdx,
    pub(crate) shell: &'a Bound<'py, PyAny>,
    /// The cell as typed.
    pub(crate) source: &'a str,
}

/// The one run that is traced, for as long as this lives.
struct TraceTurn;

impl TraceTurn {
    fn take() -> Option<Self> {
        let is_free = !IS_TRACED.swap(true, Ordering::Relaxed);
        is_free.then_some(Self)
    }
}

impl Drop for TraceTurn {
    fn drop(&mut self) {
        IS_TRACED.store(false, Ordering::Relaxed);
    }
}

impl Tracing {
    /// Traces the run of a cell that has just begun.
    pub(crate) fn begin(
        py: Python<'_>,
        run: RunId,
        source: &str,
        file: Option<Py<PyString>>,
    ) -> PyResult<Self> {
        let (clock, sources) = session::traceable(py, run)?;
        let mut tracing = Self {
            turn: TraceTurn::take(),
            clock,
            sim: Vec::new(),
            torch: None,
            file,
            notes: Vec::new(),
        };
        if tracing.turn.is_none() {
            tracing.notes.push(TAKEN.to_owned());
            return Ok(tracing);
        }
        if sources.contains(&Source::Sim) {
            tracing.sim = begin_traces(clock);
        }
        if sources.contains(&Source::Torch) {
            let is_saved = tracing.file.is_some();
            match TorchTrace::begin(py, source, is_saved) {
                Ok(Ok(torch)) => tracing.torch = torch,
                Ok(Err(reason)) => tracing.notes.push(reason),
                Err(error) => tracing.notes.push(format!("torch is not traced: {error}")),
            }
        }
        let is_idle = tracing.sim.is_empty() && tracing.torch.is_none();
        if is_idle && tracing.notes.is_empty() {
            tracing.notes.push(NOTHING.to_owned());
        }
        Ok(tracing)
    }

    /// Leaves the allocators as they were, and hands what they did to the session. What the user
    /// should know.
    pub(crate) fn finish(
        mut self,
        py: Python<'_>,
        of: &Traceable<'_, '_>,
    ) -> PyResult<Vec<String>> {
        let mut annotations: Vec<Annotation> = Vec::new();
        let ended = |device: &Arc<SimDevice>| {
            Some(Traced {
                device: device.label().to_owned(),
                source: Source::Sim,
                history: device.end_trace()?,
            })
        };
        let sim: Vec<Traced> = self.sim.iter().filter_map(ended).collect();
        let snapshot = match self.torch.take() {
            Some(torch) => Some(torch.end(py, self.clock)?),
            None => None,
        };
        if let Some(file) = &self.file {
            let file = file.bind(py);
            self.notes.push(match &snapshot {
                Some(ended) => saved::save(ended.snapshot.bind(py), file),
                None if sim.is_empty() => format!("{file} was not written: nothing was traced"),
                None => {
                    let histories = sim.iter().map(|traced| &traced.history);
                    let snapshot = saved::as_torch_would(py, histories, self.clock)?;
                    saved::save(&snapshot, file)
                }
            });
        }
        let mut traced = sim;
        let run = session::run_as_traced(py, of.run)?;
        if let Some(mut ended) = snapshot {
            for (label, levels) in &run.torch_devices {
                let history = ended.history(py, label, *levels, run.span)?;
                traced.extend(history.map(|history| Traced {
                    device: label.clone(),
                    source: Source::Torch,
                    history,
                }));
            }
            annotations = ended.annotations(py, run.span)?;
        }
        let mut cells = CompiledCells::new(of.shell, run.execution_count, of.source)?;
        for traced in &mut traced {
            // Classes are found by the lines as compiled.
            modules::name(py, &mut traced.history.frames)?;
            cells.place(&mut traced.history.frames)?;
        }
        let n_more = session::traced(py, of.run, traced, &annotations)?;
        if n_more > 0 {
            self.notes.push(format!(
                "{n_more} more labels of record_function are not shown"
            ));
        }
        Ok(self.notes)
    }

    /// Leaves the allocators as they were; the run was not recorded to its end.
    pub(crate) fn abandon(self, py: Python<'_>) {
        for device in self.sim {
            drop(device.end_trace());
        }
        if let Some(torch) = self.torch {
            torch.stop(py);
        }
    }
}
