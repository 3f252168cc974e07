//! `GpuMem.flight_recorder`: torch's own history, bounded, while cells are recorded.
//!
//! What torch did last is in every snapshot that is taken meanwhile. A history that the user has begun
//! is left alone, and ours makes room for one.

use std::sync::Mutex;

use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::torch::RECORDS;
use gpumem_base::locks::lock;
use gpumem_base::modules::imported;

/// What an event may take of memory, in bytes. Measured with torch 2.15 and 2.8: an allocation that is not
/// freed takes 590, 1350 and 2380 bytes with a stack of 10, 40 and 100 frames; one that is freed shares its
/// stack among three events.
const EVENT_BYTES: u64 = 2048;

/// torch keeps no fewer.
const FEWEST_EVENTS: u64 = 100;

static STATE: Mutex<RecorderState> = Mutex::new(RecorderState {
    n_bytes: 0,
    on: None,
});

struct RecorderState {
    /// What the user allows the history to take, in bytes; 0 for none.
    n_bytes: u64,
    /// gpumem's history is recorded, and this notes whether other code begins or ends one.
    on: Option<Py<PyAny>>,
}

/// What `GpuMem.flight_recorder` says now, in bytes.
#[pyfunction(name = "_flight_recorder")]
pub(crate) fn flight_recorder(py: Python<'_>, n_bytes: u64) -> PyResult<()> {
    let has_changed = std::mem::replace(&mut lock(&STATE).n_bytes, n_bytes) != n_bytes;
    // It restarts with another size when the next cell is recorded.
    if has_changed { end(py) } else { Ok(()) }
}

/// A recorded cell of this source begins.
pub(crate) fn begin(py: Python<'_>, source: &str) -> PyResult<()> {
    let n_bytes = lock(&STATE).n_bytes;
    if n_bytes == 0 {
        return Ok(());
    }
    // The user is about to record a history, or to stop one.
    if source.contains(RECORDS) {
        return end(py);
    }
    let Some(history) = CudaHistory::of_imported(py)? else {
        return Ok(());
    };
    if history.is_enabled()? {
        return Ok(());
    }
    // Other code has stopped gpumem's history, or there was none.
    end(py)?;
    history.start(n_bytes / EVENT_BYTES)?;
    match history.watch() {
        Ok(watch) => {
            lock(&STATE).on = Some(watch);
            Ok(())
        }
        Err(error) => history.stop().and(Err(error)),
    }
}

/// Stops gpumem's history, not the user's.
pub(crate) fn end(py: Python<'_>) -> PyResult<()> {
    let Some(watch) = lock(&STATE).on.take() else {
        return Ok(());
    };
    watch.call_method0(py, "end")?;
    let is_ours = !watch.getattr(py, "was_called")?.is_truthy(py)?;
    match CudaHistory::of_imported(py)? {
        Some(history) if is_ours && history.is_enabled()? => history.stop(),
        _ => Ok(()),
    }
}

/// The function of torch 2.15 and later that tells where memory at an address was allocated, while somebody records
/// a history. Whoever asks a torch that has not started CUDA ends the process.
pub(crate) fn allocation_traceback(py: Python<'_>) -> PyResult<Option<Bound<'_, PyAny>>> {
    match CudaHistory::of_imported(py)? {
        Some(history) if history.is_enabled()? => {
            let memory = history.torch.getattr("cuda")?.getattr("memory")?;
            memory.getattr_opt("_allocation_traceback")
        }
        _ => Ok(None),
    }
}

/// The history of torch's CUDA allocator.
struct CudaHistory<'py> {
    torch: Bound<'py, PyAny>,
}

impl<'py> CudaHistory<'py> {
    /// `None` unless torch has started CUDA and reports whether a history is recorded.
    fn of_imported(py: Python<'py>) -> PyResult<Option<Self>> {
        let Some(torch) = imported(py, "torch")? else {
            return Ok(None);
        };
        let cuda = torch.getattr("cuda")?;
        let is_known = torch.getattr("_C")?.hasattr("_cuda_isHistoryEnabled")?;
        let backend = cuda.getattr_opt("get_allocator_backend")?;
        let is_running = is_known && cuda.call_method0("is_initialized")?.is_truthy()?;
        let is_native = match backend.filter(|_| is_running) {
            Some(backend) => backend.call0()?.eq("native")?,
            None => false,
        };
        Ok(is_native.then_some(Self { torch }))
    }

    fn is_enabled(&self) -> PyResult<bool> {
        let functions = self.torch.getattr("_C")?;
        functions
            .call_method0("_cuda_isHistoryEnabled")?
            .is_truthy()
    }

    /// Each device has a history of its own.
    fn start(&self, n_events: u64) -> PyResult<()> {
        let cuda = self.torch.getattr("cuda")?;
        let n_devices: u64 = cuda.call_method0("device_count")?.extract()?;
        let options = PyDict::new(self.torch.py());
        options.set_item("context", "alloc")?;
        options.set_item("stacks", "python")?;
        let n_events = (n_events / n_devices.max(1)).max(FEWEST_EVENTS);
        options.set_item("max_entries", n_events)?;
        let memory = cuda.getattr("memory")?;
        memory
            .call_method(RECORDS, ("all",), Some(&options))
            .map(drop)
    }

    /// The function that notes when other code begins or ends a history.
    fn watch(&self) -> PyResult<Py<PyAny>> {
        let py = self.torch.py();
        let memory = self.torch.getattr("cuda")?.getattr("memory")?;
        let watch = py.import("gpumem._history")?.getattr("Watch")?;
        Ok(watch.call1((memory.getattr(RECORDS)?,))?.unbind())
    }

    fn stop(&self) -> PyResult<()> {
        let memory = self.torch.getattr("cuda")?.getattr("memory")?;
        memory
            .call_method1(RECORDS, (self.torch.py().None(),))
            .map(drop)
    }
}
