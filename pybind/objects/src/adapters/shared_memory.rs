//! Blocks of Python's `multiprocessing.shared_memory`, which arrays show without owning them.

use gpumem_model::units::Bytes;

use super::arrays::{self, ArrayMemory};
use super::{Adapter, QualifiedName, Sink, Unread};
use crate::still::Object;

pub(super) struct SharedMemoryAdapter;

impl Adapter for SharedMemoryAdapter {
    fn claims(&self, class: &QualifiedName) -> bool {
        class.module == "multiprocessing.shared_memory" && class.name == "SharedMemory"
    }

    fn look(&self, object: &Object<'_>, sink: &mut Sink<'_, '_, '_>) -> Result<(), Unread> {
        // A block that is closed has none.
        let Some(mapped) = object.attribute("_mmap").filter(|it| !it.is_none()) else {
            return Ok(());
        };
        let n_bytes = object.attribute("_size").and_then(|size| size.number());
        let block = ArrayMemory {
            device: "host".to_owned(),
            address: mapped.address(),
            n_bytes: Bytes::new(n_bytes.ok_or(Unread("the size of a SharedMemory"))?),
            owner: mapped.address(),
            is_data: false,
        };
        arrays::hold(&block, sink);
        Ok(())
    }
}
