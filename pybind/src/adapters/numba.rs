//! Numba's device arrays. Their classes are written in Python: only attributes of their instances
//! are read.

use gpumem_core::holders::Category;
use gpumem_core::units::Bytes;
use pyo3::prelude::*;

use super::arrays::{self, Block};
use super::identity::Proof;
use super::{Adapter, ClassName, Sink, peek};

/// How many pointers may stand between an array and the memory that was allocated.
const MAX_POINTERS: usize = 8;

pub(super) struct Numba;

impl Adapter for Numba {
    fn claims(&self, class: &ClassName) -> bool {
        class.module.ends_with("cudadrv.devicearray") && class.name == "DeviceNDArrayBase"
    }

    fn look<'py>(&self, array: &Bound<'py, PyAny>, sink: &mut Sink<'_, '_, 'py>) -> PyResult<()> {
        let shape = peek::attribute(array, "shape");
        let dtype = peek::attribute(array, "dtype");
        arrays::describe(
            dtype.as_ref().and_then(arrays::numpy_dtype),
            shape.as_ref().and_then(arrays::lengths),
            Category::Tensor,
            sink,
        );
        let Some(memory) = allocated(array) else {
            return Ok(());
        };
        let Some(size) = peek::attribute(&memory, "size") else {
            return Ok(());
        };
        let block = Block {
            device: device(&memory),
            address: memory.as_ptr() as usize,
            n_bytes: Bytes::new(size.extract()?),
        };
        arrays::hold(array.py(), &block, || Proof::object(&memory), sink);
        Ok(())
    }
}

/// What was allocated, behind the pointers that count references or look at a part.
fn allocated<'py>(array: &Bound<'py, PyAny>) -> Option<Bound<'py, PyAny>> {
    let mut pointer = peek::attribute(array, "gpu_data")?;
    for _ in 0..MAX_POINTERS {
        let behind = ["_mem", "_owner"]
            .into_iter()
            .filter_map(|name| peek::attribute(&pointer, name))
            .find(|behind| !behind.is_none() && !behind.is(&pointer));
        match behind {
            Some(behind) => pointer = behind,
            None => break,
        }
    }
    Some(pointer)
}

fn device(memory: &Bound<'_, PyAny>) -> String {
    let class = memory.get_type().name().map(|name| name.to_string());
    let class = class.unwrap_or_default();
    if class.contains("Mapped") {
        return "host".to_owned();
    }
    // A context of Numba's own, often behind a weak proxy: plain attributes.
    let ordinal = peek::attribute(memory, "context")
        .and_then(|context| context.getattr("device").ok())
        .and_then(|device| device.getattr("id").ok())
        .and_then(|id| id.extract::<i64>().ok());
    let managed = if class.contains("Managed") {
        " managed"
    } else {
        ""
    };
    format!("cuda:{}{managed}", ordinal.unwrap_or(0))
}
