//! Modules and optimizers: shorter ways to what they hold, and what it is to them.

use gpumem_heap::{Step, TensorCategory};

use super::super::{ObjectDetails, Sink};
use super::Access;
use crate::still::{Dict, Object};

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
pub(super) fn look(object: &Object<'_>, access: &Access, sink: &mut Sink<'_, '_, '_>) {
    let Some(attributes) = object.attributes() else {
        return;
    };
    let dict = |name: &str| attributes.get(name)?.dict();
    let own = sink.own();
    for (name, category) in [
        ("_parameters", Some(TensorCategory::Parameter)),
        ("_buffers", Some(TensorCategory::Parameter)),
        ("_modules", None),
    ] {
        for (key, value) in dict(name).into_iter().flat_map(|dict| dict.named()) {
            if value.is_none() {
                continue;
            }
            let part = sink.object(own, &value, member(&key));
            if let (Some(part), Some(category)) = (part, category) {
                sink.describe(part, ObjectDetails::with_category(category));
            }
        }
    }
    if dict("defaults").is_some() || attributes.get("param_groups").is_some() {
        let states = dict("state").into_iter().flat_map(|dict| dict.values());
        for state in states.filter_map(|state| state.dict()) {
            optimizer_state(&state, access, sink);
        }
    }
}

/// `model[0]`, `model.head`
fn member(name: &str) -> Step {
    match name.parse() {
        Ok(idx) => Step::Index(idx),
        Err(_) => Step::attribute(name),
    }
}

/// What is kept for one parameter.
fn optimizer_state(state: &Dict<'_>, access: &Access, sink: &mut Sink<'_, '_, '_>) {
    for (key, value) in state.named() {
        let name = format!("state[…]['{key}']");
        match value.list().filter(|_| value.is_exact_list()) {
            Some(values) => {
                for (idx, value) in values.enumerate() {
                    of_optimizer(&value, &format!("{name}[{idx}]"), access, sink);
                }
            }
            None => of_optimizer(&value, &name, access, sink),
        }
    }
}

fn of_optimizer(value: &Object<'_>, name: &str, access: &Access, sink: &mut Sink<'_, '_, '_>) {
    if access.is_tensor(value)
        && let Some(part) = sink.object(sink.own(), value, Step::attribute(name))
    {
        sink.describe(
            part,
            ObjectDetails::with_category(TensorCategory::OptimizerState),
        );
    }
}
