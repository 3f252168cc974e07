//! Numba's device arrays. Their classes are written in Python: only attributes of their instances
//! are read.

use gpumem_model::units::Bytes;

use super::arrays::{self, ArrayMemory};
use super::{Adapter, QualifiedName, Sink, Unread};
use crate::still::Object;

/// How many pointers may stand between an array and the memory that was allocated.
const MAX_POINTERS: usize = 8;

pub(super) struct Numba;

impl Adapter for Numba {
    fn claims(&self, class: &QualifiedName) -> bool {
        class.module.ends_with("cudadrv.devicearray") && class.name == "DeviceNDArrayBase"
    }

    fn look(&self, array: &Object<'_>, sink: &mut Sink<'_, '_, '_>) -> Result<(), Unread> {
        arrays::describe_by(array.attribute("dtype"), array.attribute("shape"), sink);
        let Some(memory) = allocated(array) else {
            return Ok(());
        };
        let Some(size) = memory.attribute("size").and_then(|size| size.number()) else {
            return Ok(());
        };
        let block = ArrayMemory {
            device: device(&memory),
            address: memory.address(),
            n_bytes: Bytes::new(size),
            owner: memory.address(),
            is_data: false,
        };
        arrays::hold(&block, sink);
        Ok(())
    }
}

/// What was allocated, behind the pointers that count references or look at a part.
fn allocated<'s>(array: &Object<'s>) -> Option<Object<'s>> {
    let mut pointer = array.attribute("gpu_data")?;
    for _ in 0..MAX_POINTERS {
        let behind = ["_mem", "_owner"]
            .into_iter()
            .filter_map(|name| pointer.attribute(name))
            .find(|behind| !behind.is_none() && !behind.is(&pointer));
        match behind {
            Some(behind) => pointer = behind,
            None => break,
        }
    }
    Some(pointer)
}

fn device(memory: &Object<'_>) -> String {
    let class = memory.class().short_name();
    if class.contains("Mapped") {
        return "host".to_owned();
    }
    // A context of Numba's own, often behind a weak proxy: plain attributes.
    let context = memory.attribute("context");
    let context = context.map(|it| it.referent().unwrap_or(it));
    let ordinal = context
        .and_then(|context| context.attribute("device"))
        .and_then(|device| device.attribute("id")?.number());
    let managed = if class.contains("Managed") {
        " managed"
    } else {
        ""
    };
    format!("cuda:{}{managed}", ordinal.unwrap_or(0))
}
