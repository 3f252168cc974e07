//! `CuPy`'s arrays: each points into memory of a pool, which several may share.

use gpumem_model::units::Bytes;

use super::arrays::{self, ArrayMemory};
use super::{Adapter, QualifiedName, Sink, Unread};
use crate::still::Object;

pub(super) struct CuPy;

impl Adapter for CuPy {
    fn claims(&self, class: &QualifiedName) -> bool {
        matches!(
            (class.module.as_str(), class.name.as_str()),
            ("cupy" | "cupy._core.core", "ndarray" | "_ndarray_base")
        )
    }

    fn look(&self, array: &Object<'_>, sink: &mut Sink<'_, '_, '_>) -> Result<(), Unread> {
        arrays::describe_by(array.read("dtype"), array.read("shape"), sink);
        let block = block(array).ok_or(Unread("the memory of a CuPy array"))?;
        if block.n_bytes > Bytes::ZERO {
            arrays::hold(&block, sink);
        }
        Ok(())
    }
}

fn block(array: &Object<'_>) -> Option<ArrayMemory> {
    let memory = array.read("data")?.read("mem")?;
    let ordinal = memory.read("device_id")?.number()?;
    let is_managed = memory.class().short_name().contains("Managed");
    Some(ArrayMemory {
        device: format!("cuda:{ordinal}{}", if is_managed { " managed" } else { "" }),
        address: usize::try_from(memory.read("ptr")?.number()?).ok()?,
        n_bytes: Bytes::new(memory.read("size")?.number()?),
        owner: memory.address(),
        is_data: true,
    })
}
