//! `CuPy`'s arrays: each points into memory of a pool, which several may share.

use gpumem_core::holders::Category;
use gpumem_core::units::Bytes;
use pyo3::prelude::*;

use super::arrays::{self, Block};
use super::identity::Proof;
use super::{Adapter, ClassName, Sink, peek};

pub(super) struct CuPy;

impl Adapter for CuPy {
    fn claims(&self, class: &ClassName) -> bool {
        matches!(
            (class.module.as_str(), class.name.as_str()),
            ("cupy" | "cupy._core.core", "ndarray" | "_ndarray_base")
        )
    }

    fn look<'py>(&self, array: &Bound<'py, PyAny>, sink: &mut Sink<'_, '_, 'py>) -> PyResult<()> {
        let shape = peek::read(array, "shape").ok();
        let dtype = peek::read(array, "dtype").ok();
        arrays::describe(
            dtype.as_ref().and_then(arrays::numpy_dtype),
            shape.as_ref().and_then(arrays::lengths),
            Category::Tensor,
            sink,
        );
        let pointer = peek::read(array, "data")?;
        let memory = peek::read(&pointer, "mem")?;
        let ordinal: i64 = peek::read(&memory, "device_id")?.extract()?;
        let is_managed = memory.get_type().name()?.to_string().contains("Managed");
        let block = Block {
            device: format!("cuda:{ordinal}{}", if is_managed { " managed" } else { "" }),
            address: peek::read(&memory, "ptr")?.extract()?,
            n_bytes: Bytes::new(peek::read(&memory, "size")?.extract()?),
        };
        if block.n_bytes > Bytes::ZERO {
            arrays::hold(array.py(), &block, || Proof::object(&memory), sink);
        }
        Ok(())
    }
}
