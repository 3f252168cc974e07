//! What libraries on top of torch keep: key-value caches, quantised parameters, paged states.
//!
//! They are known by their modules' names; nothing of them is imported or called.

use gpumem_heap::{Step, TensorCategory};

use super::super::{ObjectDetails, Sink};
use super::Access;
use crate::still::Object;

/// The caches of `transformers` and their layers.
pub(super) fn is_cache(module: &str) -> bool {
    module == "transformers.cache_utils"
}

/// What a quantised parameter of bitsandbytes needs to be read.
pub(super) fn is_quantization(module: &str, name: &str) -> bool {
    module == "bitsandbytes.functional" && name == "QuantState"
}

/// Tells what the tensors are to a cache, or to a quantised parameter.
pub(super) fn look(object: &Object<'_>, access: &Access, sink: &mut Sink<'_, '_, '_>) {
    let modules = object.class().lineage().filter_map(|base| base.module());
    let category = modules
        .into_iter()
        .find_map(|module| match module.as_str() {
            "transformers.cache_utils" => Some(TensorCategory::KvCache),
            "bitsandbytes.functional" => Some(TensorCategory::Parameter),
            _ => None,
        });
    if let Some(category) = category {
        tensors_in(object, category, access, sink);
    }
}

/// The tensors beside a quantised parameter itself: its scales and codes.
pub(super) fn quantized(tensor: &Object<'_>, access: &Access, sink: &mut Sink<'_, '_, '_>) {
    let module = tensor.class().module();
    if module.is_some_and(|module| module.starts_with("bitsandbytes.")) {
        tensors_in(tensor, TensorCategory::Parameter, access, sink);
    }
}

/// The tensors among an object's attributes, and in lists among them.
fn tensors_in(
    object: &Object<'_>,
    category: TensorCategory,
    access: &Access,
    sink: &mut Sink<'_, '_, '_>,
) {
    let own = sink.own();
    let mut tell = |value: &Object<'_>, step: String| {
        if access.is_tensor(value)
            && let Some(part) = sink.object(own, value, Step::attribute(&step))
        {
            sink.describe(part, ObjectDetails::with_category(category));
        }
    };
    let attributes = object.attributes().into_iter();
    for (name, value) in attributes.flat_map(|dict| dict.named()) {
        match value.list().filter(|_| value.is_exact_list()) {
            Some(values) => {
                for (idx, value) in values.enumerate() {
                    tell(&value, format!("{name}[{idx}]"));
                }
            }
            None => tell(&value, name),
        }
    }
}

/// Where a paged tensor of bitsandbytes belongs: memory that the driver moves between the host and
/// this device, though torch believes it on the host.
pub(super) fn paged_on(tensor: &Object<'_>) -> Option<String> {
    let is_paged = tensor.attribute("is_paged")?.is_true()?;
    let device = is_paged.then(|| tensor.attribute("page_deviceid"))??;
    Some(format!("cuda:{} managed", device.number()?))
}
