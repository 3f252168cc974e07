//! PyTorch's caching allocators, one for each kind of device whose backend runs.

mod backend;
mod metal;
mod segments;
mod stats;

use gpumem_model::recording::{AllocatorLevels, DeviceKey, Source};
use gpumem_model::segments::Segments;
use pyo3::intern;
use pyo3::prelude::*;

use super::framework::{FrameworkSource, imported, not_imported, unused};
use super::{Answer, SourceDevice};
use backend::Backend;
use metal::Metal;
pub use segments::segments;

/// Backends whose modules (`torch.cuda`, …) and statistics have one shape. torch on `ROCm` calls
/// its devices `cuda` too.
const BACKENDS: [&str; 3] = ["cuda", "xpu", "mtia"];

#[derive(Default)]
pub(super) struct TorchSource {
    attached: Option<Attached>,
}

/// The torch that is imported.
struct Attached {
    module: Py<PyAny>,
    backends: Vec<Backend>,
    metal: Option<Metal>,
}

impl FrameworkSource for TorchSource {
    fn source(&self) -> Source {
        Source::Torch
    }

    fn devices(&mut self, py: Python<'_>) -> PyResult<Answer> {
        let Some(torch) = imported(py, "torch")? else {
            self.attached = None;
            return Ok(not_imported());
        };
        let is_same = |it: &Attached| it.module.is(&torch);
        let attached = match self.attached.take().filter(is_same) {
            Some(attached) => attached,
            None => Attached::new(&torch)?,
        };
        let devices = self.attached.insert(attached).devices(&torch)?;
        if devices.is_empty() {
            return Ok(unused("imported, but CUDA is not initialised yet"));
        }
        Ok(Ok(devices))
    }

    fn read(&mut self, py: Python<'_>, key: &DeviceKey) -> PyResult<AllocatorLevels> {
        if let Some(attached) = &mut self.attached {
            for backend in &mut attached.backends {
                if let Some(levels) = backend.read(py, key)? {
                    return Ok(levels);
                }
            }
            if let Some(metal) = attached
                .metal
                .as_ref()
                .filter(|_| key.as_str() == metal::KEY)
            {
                return metal.levels(py);
            }
        }
        Ok(AllocatorLevels::unread(Source::Torch))
    }

    fn segments(
        &mut self,
        py: Python<'_>,
        key: &DeviceKey,
    ) -> PyResult<Option<Result<Segments, String>>> {
        let Some(attached) = &self.attached else {
            return Ok(None);
        };
        let mut backends = attached.backends.iter();
        let found = backends.find_map(|backend| backend.tells_segments_of(key));
        found
            .map(|ordinal| segments(attached.module.bind(py), ordinal))
            .transpose()
    }

    fn reset_peak(&mut self, py: Python<'_>, key: &DeviceKey) -> PyResult<()> {
        let mut backends = self.attached.iter().flat_map(|it| &it.backends);
        backends.try_for_each(|backend| backend.reset_peak(py, key))
    }
}

impl Attached {
    fn new(torch: &Bound<'_, PyAny>) -> PyResult<Self> {
        let py = torch.py();
        // Every torch has this one; one that lacks it is still being imported.
        torch.getattr(intern!(py, "cuda"))?;
        let mut names = BACKENDS.map(str::to_owned).to_vec();
        names.extend(plugin(torch));
        let backends = names
            .into_iter()
            .filter_map(|name| Backend::find(torch, name));
        Ok(Self {
            backends: backends.collect(),
            metal: Metal::find(torch),
            module: torch.clone().unbind(),
        })
    }

    fn devices(&mut self, torch: &Bound<'_, PyAny>) -> PyResult<Vec<SourceDevice>> {
        let mut devices = Vec::new();
        for backend in &mut self.backends {
            devices.extend_from_slice(backend.devices(torch)?);
        }
        if let Some(metal) = &self.metal
            && metal.is_in_use(torch.py())?
        {
            devices.push(metal::device());
        }
        Ok(devices)
    }
}

/// The device type that an extension has registered (`npu`, …): a name, and nothing is started.
fn plugin(torch: &Bound<'_, PyAny>) -> Option<String> {
    let name = torch
        .getattr("_C")
        .and_then(|c| c.call_method0("_get_privateuse1_backend_name"))
        .and_then(|name| name.extract::<String>());
    name.ok().filter(|name| name != "privateuseone")
}
