//! What libraries on top of torch keep: key-value caches, quantised parameters, paged states.
//!
//! They are known by their modules' names; nothing of them is imported or called.

use gpumem_core::holders::{Category, Step};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use super::super::peek;
use super::super::{Details, Sink};
use super::Access;

/// The caches of `transformers` and their layers.
pub(super) fn is_cache(module: &str) -> bool {
    module == "transformers.cache_utils"
}

/// What a quantised parameter of bitsandbytes needs to be read.
pub(super) fn is_quantization(module: &str, name: &str) -> bool {
    module == "bitsandbytes.functional" && name == "QuantState"
}

/// Tells what the tensors are to a cache, or to a quantised parameter.
pub(super) fn look<'py>(object: &Bound<'py, PyAny>, access: &Access, sink: &mut Sink<'_, '_, 'py>) {
    let class = object.get_type();
    let modules = peek::bases(&class)
        .into_iter()
        .flatten()
        .filter_map(|base| {
            let module = peek::own_attributes(&base)
                .ok()?
                .get_item("__module__")
                .ok()?;
            module.extract::<String>().ok()
        });
    let category = modules
        .into_iter()
        .find_map(|module| match module.as_str() {
            "transformers.cache_utils" => Some(Category::KvCache),
            "bitsandbytes.functional" => Some(Category::Parameter),
            _ => None,
        });
    if let Some(category) = category {
        tensors_in(object, category, access, sink);
    }
}

/// The tensors beside a quantised parameter itself: its scales and codes.
pub(super) fn quantized<'py>(
    tensor: &Bound<'py, PyAny>,
    access: &Access,
    sink: &mut Sink<'_, '_, 'py>,
) {
    let class = tensor.get_type();
    let module = peek::own_attributes(&class).and_then(|it| it.get_item("__module__"));
    let module = module.and_then(|it| it.extract::<String>());
    if module.is_ok_and(|module| module.starts_with("bitsandbytes.")) {
        tensors_in(tensor, Category::Parameter, access, sink);
    }
}

/// The tensors among an object's attributes, and in lists among them.
fn tensors_in<'py>(
    object: &Bound<'py, PyAny>,
    category: Category,
    access: &Access,
    sink: &mut Sink<'_, '_, 'py>,
) {
    let own = sink.own();
    let mut tell = |value: Bound<'py, PyAny>, step: String| {
        if access.is_tensor(&value)
            && let Some(part) = sink.object(own, value, Step::attribute(&step))
        {
            sink.describe(part, Details::of(category));
        }
    };
    let attributes = peek::attributes(object);
    for (name, value) in attributes
        .iter()
        .flat_map(|dict: &Bound<'py, PyDict>| dict.iter())
    {
        let Ok(name) = name.extract::<String>() else {
            continue;
        };
        if let Ok(values) = value.cast_exact::<PyList>() {
            for (idx, value) in values.iter().enumerate() {
                tell(value, format!("{name}[{idx}]"));
            }
        } else {
            tell(value, name);
        }
    }
}

/// Where a paged tensor of bitsandbytes belongs: memory that the driver moves between the host and
/// this device, though torch believes it on the host.
pub(super) fn paged_on(tensor: &Bound<'_, PyAny>) -> Option<String> {
    let is_paged = peek::attribute(tensor, "is_paged")?;
    if !is_paged.is_truthy().ok()? {
        return None;
    }
    let device = peek::attribute(tensor, "page_deviceid")?
        .extract::<u32>()
        .ok()?;
    Some(format!("cuda:{device} managed"))
}
