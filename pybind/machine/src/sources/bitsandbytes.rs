//! The paged optimizer states of bitsandbytes: managed memory that torch takes for the CPU's.

use gpumem_model::recording::{AllocatorLevels, DeviceKey, Source};
use pyo3::prelude::*;
use pyo3::types::PyList;

use super::Answer;
use super::framework::{FrameworkSource, imported, known, managed_device, not_imported, unused};

/// Reads the list in which bitsandbytes keeps every paged tensor. It only grows.
#[derive(Default)]
pub(super) struct BitsandbytesSource {
    tensors: Option<Py<PyList>>,
    /// How many of them have been counted, and their bytes.
    counted: (usize, u64),
}

impl FrameworkSource for BitsandbytesSource {
    fn source(&self) -> Source {
        Source::Bitsandbytes
    }

    fn devices(&mut self, py: Python<'_>) -> PyResult<Answer> {
        let Some(functional) = imported(py, "bitsandbytes.functional")? else {
            *self = Self::default();
            return Ok(not_imported());
        };
        let Ok(manager) = functional.getattr("GlobalPageManager") else {
            return Ok(unused("this version of it keeps no list of paged states"));
        };
        // `get_instance()` would make one.
        let instance = manager.getattr("_instance")?;
        if instance.is_none() {
            return Ok(unused("imported, but no optimizer has paged states"));
        }
        let tensors = instance.getattr("paged_tensors")?.cast_into::<PyList>()?;
        if !self.tensors.as_ref().is_some_and(|it| it.is(&tensors)) {
            self.tensors = Some(tensors.unbind());
            self.counted = (0, 0);
        }
        Ok(Ok(vec![managed_device()]))
    }

    fn read(&mut self, py: Python<'_>, _key: &DeviceKey) -> PyResult<AllocatorLevels> {
        let (Some(tensors), Some(torch)) = (&self.tensors, imported(py, "torch")?) else {
            return Ok(AllocatorLevels::unread(Source::Bitsandbytes));
        };
        let tensors = tensors.bind(py);
        if tensors.len() < self.counted.0 {
            self.counted = (0, 0);
        }
        if tensors.len() > self.counted.0 {
            // A mode of the user's would see the question.
            let unseen = torch.getattr("_C")?.call_method0("DisableTorchFunction")?;
            unseen.call_method0("__enter__")?;
            let counted = count(tensors, self.counted);
            unseen.call_method1("__exit__", (py.None(), py.None(), py.None()))?;
            self.counted = counted?;
        }
        let (n_blocks, n_bytes) = self.counted;
        Ok(AllocatorLevels {
            allocated: known(n_bytes),
            n_blocks: u64::try_from(n_blocks).ok(),
            ..AllocatorLevels::unread(Source::Bitsandbytes)
        })
    }
}

/// Adds those that were not counted before.
fn count(tensors: &Bound<'_, PyList>, counted: (usize, u64)) -> PyResult<(usize, u64)> {
    let (mut n_tensors, mut n_bytes) = counted;
    for tensor in tensors.iter().skip(n_tensors) {
        n_bytes += tensor.getattr("nbytes")?.extract::<u64>()?;
        n_tensors += 1;
    }
    Ok((n_tensors, n_bytes))
}
