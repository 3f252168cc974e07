//! TensorFlow's allocators, one for each of its logical GPUs.

use gpumem_model::recording::{AllocatorLevels, DeviceKey, Source};
use pyo3::prelude::*;

use super::framework::{
    FrameworkSource, counted, cuda_device, imported, known, not_imported, not_reported, unused,
};
use super::{Answer, SourceDevice};

/// Reads the eager context once the user's code has made it: `tf.config` would make it, and then
/// memory growth and logical devices can no longer be set.
#[derive(Default)]
pub(super) struct TensorflowSource {
    context: Option<Py<PyAny>>,
    devices: Vec<(SourceDevice, Logical)>,
}

/// The logical devices that make up a GPU.
struct Logical {
    names: Vec<String>,
    /// What the user lets them have together.
    limit: Option<u64>,
}

impl FrameworkSource for TensorflowSource {
    fn source(&self) -> Source {
        Source::Tensorflow
    }

    fn devices(&mut self, py: Python<'_>) -> PyResult<Answer> {
        if imported(py, "tensorflow")?.is_none() {
            *self = Self::default();
            return Ok(not_imported());
        }
        let context = match imported(py, "tensorflow.python.eager.context")? {
            Some(module) => module.getattr("_context")?,
            None => return Ok(unused("imported, but not initialised yet")),
        };
        if context.is_none() || context.getattr("_context_handle")?.is_none() {
            *self = Self::default();
            return Ok(unused("imported, but not initialised yet"));
        }
        if !self.context.as_ref().is_some_and(|it| it.is(&context)) {
            self.devices = devices(&context)?;
            self.context = Some(context.unbind());
        }
        Ok(counted(&self.devices))
    }

    /// The total of the logical devices that share a GPU.
    fn read(&mut self, py: Python<'_>, key: &DeviceKey) -> PyResult<AllocatorLevels> {
        let Some((context, Logical { names, limit })) = self.logical(key) else {
            return Ok(AllocatorLevels::unread(Source::Tensorflow));
        };
        let (mut current, mut peak) = (0, 0);
        for name in names {
            let figures = context.bind(py).call_method1("get_memory_info", (name,))?;
            current += figures.get_item("current")?.extract::<u64>()?;
            peak += figures.get_item("peak")?.extract::<u64>()?;
        }
        // Several need not have been at their peaks together.
        let is_one = names.len() == 1;
        let limit = limit.map_or_else(not_reported, known);
        Ok(AllocatorLevels {
            allocated: known(current),
            active: not_reported(),
            reserved: not_reported(),
            inactive_split: not_reported(),
            peak_allocated: if is_one { known(peak) } else { not_reported() },
            limit,
            ..AllocatorLevels::unread(Source::Tensorflow)
        })
    }

    fn reset_peak(&mut self, py: Python<'_>, key: &DeviceKey) -> PyResult<()> {
        if let Some((context, logical)) = self.logical(key) {
            for name in &logical.names {
                context
                    .bind(py)
                    .call_method1("reset_memory_stats", (name,))?;
            }
        }
        Ok(())
    }
}

impl TensorflowSource {
    /// The context, and the logical devices that make up a GPU.
    fn logical(&self, key: &DeviceKey) -> Option<(&Py<PyAny>, &Logical)> {
        let mut devices = self.devices.iter();
        let (_, logical) = devices.find(|(found, _)| found.key == *key)?;
        Some((self.context.as_ref()?, logical))
    }
}

/// The GPUs in CUDA's numbers, each with the logical devices on it. The context is initialised: no
/// call here starts anything.
fn devices(context: &Bound<'_, PyAny>) -> PyResult<Vec<(SourceDevice, Logical)>> {
    let physical = context.call_method1("get_visible_devices", ("GPU",))?;
    let mut n_logical = 0;
    let mut devices = Vec::new();
    for device in physical.try_iter()? {
        let device = device?;
        // `/physical_device:GPU:1`
        let name: String = device.getattr("name")?.extract()?;
        let ordinal = name.rsplit(':').next().and_then(|it| it.parse().ok());
        let details = context.call_method1("get_device_details", (&device,));
        let model = details.and_then(|it| it.get_item("device_name")?.extract());
        let model = model.unwrap_or_else(|_| "GPU".to_owned());
        let parts = context.call_method1("get_logical_device_configuration", (&device,))?;
        // Logical devices are numbered through, in the order of the visible ones.
        let n_parts = if parts.is_none() { 1 } else { parts.len()? };
        let names = (n_logical..n_logical + n_parts).map(|idx| format!("GPU:{idx}"));
        n_logical += n_parts;
        if let Some(ordinal) = ordinal {
            let logical = Logical {
                names: names.collect(),
                limit: if parts.is_none() {
                    None
                } else {
                    limit(&parts)?
                },
            };
            devices.push((cuda_device(ordinal, None, model), logical));
        }
    }
    Ok(devices)
}

/// The sum of what the parts of a GPU may have, in the MiB that they were given; none where one of
/// them has no limit.
fn limit(parts: &Bound<'_, PyAny>) -> PyResult<Option<u64>> {
    let mut sum = Some(0);
    for part in parts.try_iter()? {
        let limit = part?.getattr("memory_limit")?.extract::<Option<f64>>()?;
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a limit in MiB is a small number above zero"
        )]
        let n_bytes = limit.map(|mib| (mib * 1024.0 * 1024.0) as u64);
        sum = sum.zip(n_bytes).map(|(sum, n_bytes)| sum + n_bytes);
    }
    Ok(sum)
}
