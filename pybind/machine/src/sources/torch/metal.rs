//! torch on Apple's Metal (`mps`). Its memory is the machine's own.

use gpumem_model::recording::{AllocatorLevels, DeviceKind, Source};
use pyo3::prelude::*;

use crate::sources::SourceDevice;
use crate::sources::framework::{known, limit};

pub(super) const KEY: &str = "mps:0";

/// `torch.mps`, whose functions would start Metal.
pub(super) struct Metal {
    module: Py<PyAny>,
    is_available: Py<PyAny>,
}

pub(super) fn device() -> SourceDevice {
    SourceDevice {
        key: KEY.into(),
        label: KEY.to_owned(),
        name: "Apple GPU (Metal)".to_owned(),
        kind: DeviceKind::Gpu,
    }
}

impl Metal {
    pub(super) fn find(torch: &Bound<'_, PyAny>) -> Option<Self> {
        let backend = torch.getattr("backends").and_then(|it| it.getattr("mps"));
        Some(Self {
            module: torch.getattr("mps").ok()?.unbind(),
            is_available: backend.ok()?.getattr("is_available").ok()?.unbind(),
        })
    }

    /// Whether Metal is in use: torch gives no other sign than the cached answer of an earlier query.
    pub(super) fn is_in_use(&self, py: Python<'_>) -> PyResult<bool> {
        let is_available = self.is_available.bind(py);
        let Ok(cached) = is_available.call_method0("cache_info") else {
            return Ok(false);
        };
        let n_answers: usize = cached.getattr("currsize")?.extract()?;
        Ok(n_answers > 0 && is_available.call0()?.is_truthy()?)
    }

    pub(super) fn levels(&self, py: Python<'_>) -> PyResult<AllocatorLevels> {
        let module = self.module.bind(py);
        let ask = |function: &str| module.call_method0(function)?.extract::<u64>();
        Ok(AllocatorLevels {
            allocated: known(ask("current_allocated_memory")?),
            reserved: known(ask("driver_allocated_memory")?),
            limit: limit(ask("recommended_max_memory")?),
            ..AllocatorLevels::unread(Source::Torch)
        })
    }
}
