//! Private pools of torch's CUDA allocator: those of captured graphs
//! (`torch.cuda.CUDAGraph`) and the user's own (`torch.cuda.MemPool`).
//!
//! What tensors hold in them counts as theirs. The rest is reserved for as long as the pool is:
//! `torch.cuda.empty_cache()` does not give it back.

use gpumem_heap::TensorCategory;
use gpumem_model::units::Bytes;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::super::{Adapter, ObjectDetails, PoolId, QualifiedName, Sink, Unread};
use crate::still::{Class, Object};

const MODULE: &str = "torch._C";

/// A class written in C++, what reads its pool there, and what an instance is.
type PoolOwner = (&'static str, &'static str, &'static str);

const OWNERS: [PoolOwner; 2] = [
    ("_CUDAGraph", "pool", "CUDA graph with its pool"),
    ("_MemPool", "id", "memory pool"),
];

pub(crate) struct Pools;

impl Adapter for Pools {
    fn claims(&self, class: &QualifiedName) -> bool {
        class.module == MODULE && OWNERS.iter().any(|(name, ..)| *name == class.name)
    }

    fn look(&self, object: &Object<'_>, sink: &mut Sink<'_, '_, '_>) -> Result<(), Unread> {
        for base in object.class().lineage() {
            let Some((_, reader, what)) = owner(&base) else {
                continue;
            };
            sink.describe(
                sink.own(),
                ObjectDetails::named(what, TensorCategory::Workspace),
            );
            // A graph that has captured nothing yet has none, and says so by an error.
            let id = base.method(reader).and_then(|reader| reader.call(object));
            let id = id.as_ref().and_then(Object::tuple);
            let numbers: Vec<_> = id
                .into_iter()
                .flatten()
                .filter_map(|it| it.number())
                .collect();
            if let [first, second] = numbers[..] {
                sink.pool(PoolId(first, second));
            }
            break;
        }
        Ok(())
    }
}

/// Which of the owners a class is: itself, and not one that comes from it.
fn owner(class: &Class<'_>) -> Option<PoolOwner> {
    let (module, name) = (class.module()?, class.qualname()?);
    let owner = OWNERS.into_iter().find(|(owner, ..)| name == *owner);
    owner.filter(|_| module == MODULE)
}

/// The free bytes of a pool, by device. From torch 2.8 on the snapshot covers this pool alone and
/// omits its history. Earlier versions could only list every pool, so the result is unknown there.
pub(crate) fn free(py: Python<'_>, pool: PoolId) -> Vec<(String, Bytes)> {
    free_in(py, pool).unwrap_or_default()
}

fn free_in(py: Python<'_>, PoolId(first, second): PoolId) -> PyResult<Vec<(String, Bytes)>> {
    let modules = py.import("sys")?.getattr("modules")?;
    let snapshot = modules
        .get_item("torch._C")?
        .getattr("_cuda_memorySnapshot")?;
    let without_history = snapshot.call1(((first, second, false),));
    let snapshot = without_history.or_else(|_| snapshot.call1(((first, second),)))?;
    let mut free: Vec<(String, Bytes)> = Vec::new();
    for segment in snapshot.get_item("segments")?.try_iter()? {
        let segment = segment?.cast_into::<PyDict>()?;
        let figure = |name: &str| -> PyResult<u64> { segment.as_any().get_item(name)?.extract() };
        // An allocator may ignore the pool argument; each segment names its pool.
        let own = segment.get_item("segment_pool_id")?;
        if own.is_some_and(|own| {
            own.extract()
                .is_ok_and(|own: (u64, u64)| own != (first, second))
        }) {
            continue;
        }
        let device = format!("cuda:{}", figure("device")?);
        let n_free = figure("total_size")?.saturating_sub(figure("active_size")?);
        match free.iter_mut().find(|(label, _)| *label == device) {
            Some((_, n_bytes)) => *n_bytes += Bytes::new(n_free),
            None => free.push((device, Bytes::new(n_free))),
        }
    }
    free.retain(|(_, n_bytes)| *n_bytes > Bytes::ZERO);
    Ok(free)
}
