//! What pytest keeps while `pytest --gpumem` watches a suite: values of fixtures, instances of test
//! classes, and the variables of a failed test.

use gpumem_model::holders::RootKind;

use super::Roots;
use super::ipython::LAST_EXCEPTION;
use crate::still::{Object, Section};

/// Our module in pytest's process; before each search it lists what pytest keeps.
const MODULE: &str = "pytest_gpumem.kept";

/// Adds them, if a suite is watched: a name, a path and a value each.
pub(super) fn add<'s>(roots: &mut Roots<'s>, section: &'s Section<'s>) {
    let modules = section.modules();
    let Some(kept) = modules.and_then(|modules| modules.get(MODULE)?.globals()?.get("KEPT")) else {
        return;
    };
    for entry in kept.list().into_iter().flatten() {
        let fields: Vec<Object<'s>> = entry.tuple().into_iter().flatten().collect();
        let [name, path, value] = fields.as_slice() else {
            continue;
        };
        if let (Some(name), Some(path)) = (name.text(), path.text()) {
            let kind = if name == LAST_EXCEPTION {
                RootKind::Traceback
            } else {
                RootKind::Variable
            };
            roots.add(kind, &name, path, value.clone());
        }
    }
    roots.close(kept);
}
