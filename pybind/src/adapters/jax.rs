//! JAX's arrays.

use gpumem_core::holders::Category;
use gpumem_core::units::Bytes;
use pyo3::prelude::*;
use pyo3::types::PyList;

use super::arrays::{self, Block};
use super::identity::Proof;
use super::{Adapter, ClassName, Sink, peek};

pub(super) struct Jax;

impl Adapter for Jax {
    fn claims(&self, class: &ClassName) -> bool {
        class.name == "ArrayImpl" && class.module.starts_with("jaxlib")
    }

    fn look<'py>(&self, array: &Bound<'py, PyAny>, sink: &mut Sink<'_, '_, 'py>) -> PyResult<()> {
        let aval = peek::call(array, "aval")?;
        // Slots of a class of JAX's own.
        let shape = aval.getattr("shape")?;
        let dtype = arrays::numpy_dtype(&aval.getattr("dtype")?);
        arrays::describe(dtype, arrays::lengths(&shape), Category::Tensor, sink);
        if peek::call(array, "is_deleted")?.is_truthy()? {
            return Ok(());
        }
        let parts = peek::call(array, "_arrays")?;
        let parts = parts.cast::<PyList>()?;
        if parts.len() == 1 {
            return hold(array, array, sink);
        }
        parts.iter().try_for_each(|part| hold(&part, array, sink))
    }
}

/// Tells of an array that lies on one device, whole or as a part of `array`.
fn hold(
    part: &Bound<'_, PyAny>,
    array: &Bound<'_, PyAny>,
    sink: &mut Sink<'_, '_, '_>,
) -> PyResult<()> {
    let n_bytes = peek::call(part, "on_device_size_in_bytes")?.extract()?;
    // Its address is known once it is computed; asking before would wait for it.
    let is_ready = peek::call(part, "is_ready")?.is_truthy()?;
    let address = if is_ready {
        peek::call(part, "unsafe_buffer_pointer")?.extract()?
    } else {
        array.as_ptr() as usize
    };
    let block = Block {
        device: device(part)?,
        address,
        n_bytes: Bytes::new(n_bytes),
    };
    arrays::hold(part.py(), &block, || Proof::object(array), sink);
    Ok(())
}

fn device(part: &Bound<'_, PyAny>) -> PyResult<String> {
    let sharding = peek::call(part, "_sharding")?;
    let device = peek::call(&sharding, "_device")?;
    let platform: String = peek::call(&device, "platform")?.extract()?;
    Ok(match platform.as_str() {
        "cpu" => "host".to_owned(),
        "gpu" | "cuda" | "rocm" => {
            let ordinal = peek::call(&device, "local_hardware_id")?.extract::<i64>()?;
            format!("cuda:{ordinal}")
        }
        platform => format!(
            "{platform}:{}",
            peek::call(&device, "id")?.extract::<i64>()?
        ),
    })
}
