//! TensorFlow's eager tensors and variables.
//!
//! A tensor gives the address of its bytes through `DLPack`. On a GPU the call would wait for all
//! work in progress, so it is not made, and two tensors that share a buffer there count twice. On a
//! tensor without plain numbers the call would end the process.
#![expect(unsafe_code, reason = "the pointer inside a capsule")]

use gpumem_heap::TensorCategory;
use gpumem_model::units::Bytes;

use super::arrays::{self, ArrayMemory};
use super::{Adapter, QualifiedName, Sink, Unread};
use crate::still::Object;

/// The host, as people write it.
const HOST: &str = "host";

pub(super) struct TensorFlow;

/// Name and bytes of an element by the number that TensorFlow has for its type. Of strings,
/// variants and resources the bytes are not known.
fn element(number: u64) -> Option<(&'static str, u64)> {
    Some(match number {
        1 => ("float32", 4),
        2 => ("float64", 8),
        3 => ("int32", 4),
        4 => ("uint8", 1),
        5 => ("int16", 2),
        6 => ("int8", 1),
        8 => ("complex64", 8),
        9 => ("int64", 8),
        10 => ("bool", 1),
        11 => ("qint8", 1),
        12 => ("quint8", 1),
        13 => ("qint32", 4),
        14 => ("bfloat16", 2),
        15 => ("qint16", 2),
        16 => ("quint16", 2),
        17 => ("uint16", 2),
        18 => ("complex128", 16),
        19 => ("float16", 2),
        22 => ("uint32", 4),
        23 => ("uint64", 8),
        24 => ("float8_e5m2", 1),
        25 => ("float8_e4m3fn", 1),
        _ => return None,
    })
}

impl Adapter for TensorFlow {
    fn claims(&self, class: &QualifiedName) -> bool {
        matches!(
            (class.module.as_str(), class.name.as_str()),
            ("tensorflow.python.framework.ops", "EagerTensor")
                | (
                    "tensorflow.python.ops.resource_variable_ops",
                    "BaseResourceVariable"
                )
        )
    }

    fn look(&self, object: &Object<'_>, sink: &mut Sink<'_, '_, '_>) -> Result<(), Unread> {
        let found = match object.attribute("_handle") {
            Some(handle) => variable(object, &handle, sink),
            None => tensor(object, sink),
        };
        found.ok_or(Unread("a tensor of TensorFlow"))
    }
}

fn tensor(tensor: &Object<'_>, sink: &mut Sink<'_, '_, '_>) -> Option<()> {
    let number = tensor.call("_datatype_enum")?.number()?;
    let shape = arrays::lengths(&tensor.call("_shape_tuple")?);
    hold(tensor, number, shape, TensorCategory::Tensor, sink)
}

/// Its bytes are behind a handle, which has no size: shape and type say it.
fn variable(variable: &Object<'_>, handle: &Object<'_>, sink: &mut Sink<'_, '_, '_>) -> Option<()> {
    let shape = variable.attribute("_shape");
    let shape = shape.and_then(|shape| arrays::lengths(&shape.read("_dims")?));
    let dtype = variable.attribute("_dtype");
    let number = dtype.and_then(|dtype| dtype.call("_type_enum")?.number());
    let number = number.unwrap_or(0);
    hold(handle, number, shape, TensorCategory::Parameter, sink)
}

/// `tensor` has the bytes, though another object may be the one that is looked at.
fn hold(
    tensor: &Object<'_>,
    number: u64,
    shape: Option<Vec<u64>>,
    category: TensorCategory,
    sink: &mut Sink<'_, '_, '_>,
) -> Option<()> {
    let Some((dtype, element_bytes)) = element(number) else {
        return Some(());
    };
    let n_elements = shape.as_ref().map_or(0, |shape| shape.iter().product());
    arrays::describe(Some(dtype.to_owned()), shape, category, sink);
    let device = label(&tensor.read("backing_device")?.text()?);
    let is_read = category == TensorCategory::Tensor && device == HOST;
    let address = is_read.then(|| address(tensor)).flatten();
    let block = ArrayMemory {
        device,
        address: address.unwrap_or(tensor.address()),
        n_bytes: Bytes::new(element_bytes.saturating_mul(n_elements)),
        owner: tensor.address(),
        is_data: address.is_some(),
    };
    if block.n_bytes > Bytes::ZERO {
        arrays::hold(&block, sink);
    }
    Some(())
}

/// The address of the first byte of a numeric tensor on the host. Nothing is copied.
fn address(tensor: &Object<'_>) -> Option<usize> {
    let modules = tensor.section().modules()?;
    let module = modules.get("tensorflow.python._pywrap_tfe")?.globals()?;
    let to_capsule = module.get("TFE_ToDlpackCapsule")?.function()?;
    let capsule = to_capsule.call(tensor)?;
    let tensor = capsule.capsule(c"dltensor")?;
    // SAFETY: a `DLManagedTensor` begins with the address of the bytes, and lives as long as the
    // capsule, which lets go of it unused.
    let address = unsafe { *tensor.as_ptr().cast::<usize>() };
    (address != 0).then_some(address)
}

/// `/job:localhost/replica:0/task:0/device:GPU:0` → `cuda:0`
fn label(device: &str) -> String {
    let mut parts = device.rsplit(':');
    let ordinal = parts.next().unwrap_or_default();
    match parts.next().unwrap_or_default() {
        "GPU" => format!("cuda:{ordinal}"),
        "CPU" | "" => HOST.to_owned(),
        other => format!("{}:{ordinal}", other.to_lowercase()),
    }
}
