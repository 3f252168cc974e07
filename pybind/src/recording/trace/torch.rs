//! The history of torch's CUDA allocator, recorded for one run or read from the user's own.

use gpumem_model::trace::{Annotation, History, HistoryLevels};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use super::snapshot::{self, AllocatorState, Before, TimeSpan, When};
use gpumem_base::clock::Clock;

/// The most events of a history; only the latest are kept. An event costs torch about a kilobyte.
const MAX_EVENTS: usize = 100_000;

/// What the user's own code would have to say to record a history.
pub(super) const RECORDS: &str = "_record_memory_history";

/// A history of torch's CUDA allocator under way.
pub(super) struct TorchTrace {
    /// `torch.cuda.memory`.
    memory: Py<PyAny>,
    is_enabled: Py<PyAny>,
    /// Whether gpumem records the history; otherwise it reads the user's.
    is_ours: bool,
    /// What each device held before; unknown where the user records.
    before: Vec<AllocatorState>,
}

/// A history that has come to its end.
pub(super) struct Ended {
    pub(super) snapshot: Py<PyAny>,
    before: Vec<AllocatorState>,
    is_ours: bool,
    when: When,
}

impl TorchTrace {
    /// Begins, where CUDA runs: a sentence, where that cannot be. `source` is the cell's.
    pub(super) fn begin(
        py: Python<'_>,
        source: &str,
        is_saved: bool,
    ) -> PyResult<Result<Option<Self>, String>> {
        let modules = py.import("sys")?.getattr("modules")?;
        let Some(torch) = modules.cast::<PyDict>()?.get_item("torch")? else {
            return Ok(Ok(None));
        };
        if source.contains(RECORDS) {
            let reason = "torch is not traced: this cell sets its memory history itself";
            return Ok(Err(reason.to_owned()));
        }
        let found = torch
            .getattr("_C")
            .and_then(|c| c.getattr("_cuda_isHistoryEnabled"));
        let Ok(is_enabled) = found else {
            let reason = "torch is not traced: this one does not tell whether you record its \
                          memory history already; 2.1 and later do";
            return Ok(Err(reason.to_owned()));
        };
        let trace = Self {
            memory: torch.getattr("cuda")?.getattr("memory")?.unbind(),
            is_ours: !is_enabled.call0()?.is_truthy()?,
            is_enabled: is_enabled.unbind(),
            before: Vec::new(),
        };
        // torch says no where its allocator is not the one that keeps histories.
        Ok(trace.start(py, is_saved)?.map(Some))
    }

    fn start(mut self, py: Python<'_>, is_saved: bool) -> PyResult<Result<Self, String>> {
        if !self.is_ours {
            return Ok(Ok(self));
        }
        let memory = self.memory.bind(py);
        let before = memory.call_method0("_snapshot")?;
        if snapshot::has_events(&before)? {
            let reason = "torch is not traced: it still holds a memory history that you recorded, \
                          which a new one would take the place of";
            return Ok(Err(reason.to_owned()));
        }
        self.before = snapshot::allocator_states(&before)?;
        let options = PyDict::new(py);
        // The stacks of frees are for torch's viewer: no figure of ours needs them.
        options.set_item("context", if is_saved { "all" } else { "alloc" })?;
        options.set_item("stacks", "python")?;
        options.set_item("max_entries", MAX_EVENTS)?;
        if let Err(error) = memory.call_method(RECORDS, ("all",), Some(&options)) {
            self.stop(py);
            return Err(error);
        }
        Ok(Ok(self))
    }

    /// Takes what was recorded, and leaves the allocator as it was.
    pub(super) fn end(self, py: Python<'_>, clock: Clock) -> PyResult<Ended> {
        let taken = self.memory.bind(py).call_method0("_snapshot");
        let when = When::now(clock);
        self.stop(py);
        Ok(Ended {
            snapshot: taken?.unbind(),
            before: self.before,
            is_ours: self.is_ours,
            when,
        })
    }

    /// Records no more, where that was our doing.
    pub(super) fn stop(&self, py: Python<'_>) {
        let is_enabled = || {
            self.is_enabled
                .bind(py)
                .call0()
                .and_then(|it| it.is_truthy())
        };
        // A Ctrl-C may come in between: the second time it is past.
        for _ in 0..2 {
            if !self.is_ours || matches!(is_enabled(), Ok(false)) {
                return;
            }
            let stopped = self.memory.bind(py).call_method1(RECORDS, (py.None(),));
            if stopped.is_ok() {
                return;
            }
        }
    }
}

impl Ended {
    /// What was done on a device, `cuda:0`, in the run of that span, which began with `levels`.
    pub(super) fn history(
        &mut self,
        py: Python<'_>,
        label: &str,
        levels: HistoryLevels,
        span: TimeSpan,
    ) -> PyResult<Option<History>> {
        let number = label.strip_prefix("cuda:").and_then(|n| n.parse().ok());
        let Some(number) = number else {
            return Ok(None);
        };
        let held = self.before.iter().position(|held| held.device == number);
        let before = if self.is_ours {
            let held = held.map_or_else(
                || AllocatorState::nothing(number),
                |it| self.before.swap_remove(it),
            );
            Before::Snapshot(held, MAX_EVENTS)
        } else {
            Before::Levels(levels)
        };
        snapshot::history(self.snapshot.bind(py), number, before, &self.when, span).map(Some)
    }

    /// The labels of `record_function` in the run: torch notes them while a history is recorded.
    pub(super) fn annotations(&self, py: Python<'_>, span: TimeSpan) -> PyResult<Vec<Annotation>> {
        let annotations = self
            .snapshot
            .bind(py)
            .cast::<PyDict>()?
            .get_item("external_annotations")?;
        let Some(annotations) = annotations else {
            return Ok(Vec::new());
        };
        snapshot::annotations(annotations.cast::<PyList>()?, &self.when, span)
    }
}
