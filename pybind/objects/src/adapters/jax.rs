//! JAX's arrays.

use gpumem_model::units::Bytes;

use super::arrays::{self, ArrayMemory};
use super::{Adapter, QualifiedName, Sink, Unread};
use crate::still::Object;

pub(super) struct Jax;

impl Adapter for Jax {
    fn claims(&self, class: &QualifiedName) -> bool {
        class.name == "ArrayImpl" && class.module.starts_with("jaxlib")
    }

    fn look(&self, array: &Object<'_>, sink: &mut Sink<'_, '_, '_>) -> Result<(), Unread> {
        let aval = array
            .call("aval")
            .ok_or(Unread("the shape of a JAX array"))?;
        // Slots of a class of JAX's own.
        arrays::describe_by(aval.read("dtype"), aval.read("shape"), sink);
        let is_deleted = array.call("is_deleted").and_then(|it| it.is_true());
        if is_deleted.ok_or(Unread("whether a JAX array is deleted"))? {
            return Ok(());
        }
        let parts = array.call("_arrays");
        let parts = parts.as_ref().and_then(Object::list);
        let parts: Vec<_> = parts.ok_or(Unread("the parts of a JAX array"))?.collect();
        let unread = Unread("the buffer of a JAX array");
        if parts.len() == 1 {
            return hold(array, array, sink).ok_or(unread);
        }
        let held = parts.iter().try_for_each(|part| hold(part, array, sink));
        held.ok_or(unread)
    }
}

/// Tells of an array that lies on one device, whole or as a part of `array`.
fn hold(part: &Object<'_>, array: &Object<'_>, sink: &mut Sink<'_, '_, '_>) -> Option<()> {
    let n_bytes = part.call("on_device_size_in_bytes")?.number()?;
    // Its address is known once it is computed; asking before would wait for it.
    let is_ready = part.call("is_ready")?.is_true()?;
    let address = if is_ready {
        usize::try_from(part.call("unsafe_buffer_pointer")?.number()?).ok()?
    } else {
        array.address()
    };
    let block = ArrayMemory {
        device: device(part)?,
        address,
        n_bytes: Bytes::new(n_bytes),
        owner: array.address(),
        is_data: is_ready,
    };
    arrays::hold(&block, sink);
    Some(())
}

fn device(part: &Object<'_>) -> Option<String> {
    let device = part.call("_sharding")?.call("_device")?;
    let platform = device.call("platform")?.text()?;
    Some(match platform.as_str() {
        "cpu" => "host".to_owned(),
        "gpu" | "cuda" | "rocm" => {
            format!("cuda:{}", device.call("local_hardware_id")?.number()?)
        }
        platform => format!("{platform}:{}", device.call("id")?.number()?),
    })
}
