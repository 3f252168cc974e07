//! The CUDA allocator of the torch that the user has imported.

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::SnapshotDict;
use gpumem_base::modules::imported;

/// torch's own caching allocator for CUDA, which has started.
pub(super) struct TorchCudaAllocator<'py> {
    torch: Bound<'py, PyAny>,
}

impl<'py> TorchCudaAllocator<'py> {
    /// A sentence if there is nothing of which a snapshot could be taken. Starts nothing.
    pub(super) fn of_imported(py: Python<'py>) -> PyResult<Result<Self, String>> {
        let Some(torch) = imported(py, "torch")? else {
            return Ok(Err(
                "a snapshot is of PyTorch's CUDA memory, and torch is not imported".into(),
            ));
        };
        let cuda = torch.getattr(intern!(py, "cuda"))?;
        if !cuda.call_method0("is_initialized")?.is_truthy()? {
            let reason = "a snapshot is of PyTorch's CUDA memory, and torch has not started CUDA: no \
                          tensor was put on a GPU, or this torch has no CUDA";
            return Ok(Err(reason.to_owned()));
        }
        // Since torch 2.0.
        if let Some(backend) = cuda.getattr_opt("get_allocator_backend")? {
            let backend: String = backend.call0()?.extract()?;
            if backend != "native" {
                return Ok(Err(format!(
                    "torch's allocator is {backend}, which has no memory snapshot; its own, the \
                     default, has one"
                )));
            }
        }
        Ok(Ok(Self { torch }))
    }

    pub(super) fn snapshot(&self) -> PyResult<SnapshotDict<'py>> {
        let memory = self.torch.getattr("cuda")?.getattr("memory")?;
        Ok(memory.call_method0("_snapshot")?.cast_into::<PyDict>()?)
    }

    /// How many blocks every device has handed out and taken back so far; `None` if this torch does not
    /// say. As long as it stays the same, every block is whose it was.
    pub(super) fn n_actions(&self) -> Option<u64> {
        let stats = self
            .torch
            .getattr("_C")
            .ok()?
            .getattr("_cuda_memoryStats")
            .ok()?;
        let n_devices: u32 = self
            .torch
            .getattr("cuda")
            .ok()?
            .call_method0("device_count")
            .ok()?
            .extract()
            .ok()?;
        let mut sum = 0_u64;
        for device in 0..n_devices {
            let stats = stats.call1((device,)).ok()?;
            let allocation = stats.get_item("allocation").ok()?.get_item("all").ok()?;
            for name in ["allocated", "freed"] {
                let n: u64 = allocation.get_item(name).ok()?.extract().ok()?;
                sum = sum.wrapping_add(n);
            }
        }
        Some(sum)
    }
}
