//! Modules and optimizers: shorter ways to what they hold, and what it is to them.

use gpumem_core::holders::{Category, Step};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString};

use super::super::peek;
use super::super::{Details, Sink};
use super::Access;

pub(super) fn is_module(module: &str, name: &str) -> bool {
    (module, name) == ("torch.nn.modules.module", "Module")
}

pub(super) fn is_optimizer(module: &str, name: &str) -> bool {
    match name {
        "Optimizer" => module == "torch.optim.optimizer",
        "Optimizer8bit" => module == "bitsandbytes.optim.optimizer",
        _ => false,
    }
}

/// Tells of a module's parameters, buffers and modules, and of an optimizer's state.
pub(super) fn look<'py>(object: &Bound<'py, PyAny>, access: &Access, sink: &mut Sink<'_, '_, 'py>) {
    let Some(attributes) = peek::attributes(object) else {
        return;
    };
    let dict = |name: &str| {
        let found = attributes.get_item(name).ok().flatten()?;
        found.cast_into::<PyDict>().ok()
    };
    let own = sink.own();
    for (name, category) in [
        ("_parameters", Some(Category::Parameter)),
        ("_buffers", Some(Category::Parameter)),
        ("_modules", None),
    ] {
        for (key, value) in dict(name).iter().flat_map(PyDictMethods::iter) {
            let Some(step) = member(&key).filter(|_| !value.is_none()) else {
                continue;
            };
            if let (Some(part), Some(category)) = (sink.object(own, value, step), category) {
                sink.describe(part, Details::of(category));
            }
        }
    }
    if dict("defaults").is_some() || attributes.contains("param_groups").unwrap_or(false) {
        for state in dict("state")
            .iter()
            .flat_map(|dict| dict.values().iter().collect::<Vec<_>>())
        {
            if let Ok(state) = state.cast::<PyDict>() {
                optimizer_state(state, access, sink);
            }
        }
    }
}

/// `model[0]`, `model.head`
fn member(key: &Bound<'_, PyAny>) -> Option<Step> {
    let name = key
        .cast_exact::<PyString>()
        .ok()?
        .to_string_lossy()
        .into_owned();
    Some(match name.parse() {
        Ok(idx) => Step::Index(idx),
        Err(_) => Step::attribute(&name),
    })
}

/// What is kept for one parameter.
fn optimizer_state<'py>(state: &Bound<'py, PyDict>, access: &Access, sink: &mut Sink<'_, '_, 'py>) {
    for (key, value) in state {
        let Ok(key) = key.cast_exact::<PyString>() else {
            continue;
        };
        let name = format!("state[…]['{}']", key.to_string_lossy());
        if let Ok(values) = value.cast_exact::<PyList>() {
            for (idx, value) in values.iter().enumerate() {
                of_optimizer(value, &format!("{name}[{idx}]"), access, sink);
            }
        } else {
            of_optimizer(value, &name, access, sink);
        }
    }
}

fn of_optimizer<'py>(
    value: Bound<'py, PyAny>,
    name: &str,
    access: &Access,
    sink: &mut Sink<'_, '_, 'py>,
) {
    if access.is_tensor(&value)
        && let Some(part) = sink.object(sink.own(), value, Step::attribute(name))
    {
        sink.describe(part, Details::of(Category::OptimizerState));
    }
}
