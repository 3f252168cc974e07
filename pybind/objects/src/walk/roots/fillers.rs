//! Variables that a thread fills, and no function that a cell may call.

use std::collections::{HashMap, HashSet};

use gpumem_model::holders::RootKind;

use super::Roots;
use crate::still::Object;
use crate::walk::native::Native;
use crate::walk::native::function_name;

/// Code in code: deeper than people nest functions.
const DEEPEST: usize = 8;

/// Notes with each variable that the functions of `frames`, which run beside the cells, mention and
/// nothing else does, who fills it. Only in a copy of the process: an audit hook of the user's may hear
/// that code is read.
pub(super) fn note(roots: &mut Roots<'_>, frames: &[Object<'_>]) {
    let is_copy = |frame: &Object<'_>| frame.section().is_copy();
    if !frames.first().is_some_and(is_copy) {
        return;
    }
    let codes: Vec<Object<'_>> = frames.iter().filter_map(Object::code_of_frame).collect();
    let own: HashSet<usize> = codes.iter().map(Object::address).collect();
    let mut filled: HashMap<String, String> = HashMap::new();
    for (frame, code) in frames.iter().zip(&codes) {
        let who = function_name(frame).unwrap_or_default();
        // What runs as a whole, as a cell does, is no function.
        for name in mentioned(code, 0)
            .into_iter()
            .filter(|_| !who.starts_with('<'))
        {
            filled
                .entry(name)
                .or_insert_with(|| format!("{who} (thread)"));
        }
    }
    let variables = || {
        roots
            .found
            .iter()
            .filter(|it| it.kind == RootKind::Variable)
    };
    let functions = variables().flat_map(|root| functions_of(&root.object));
    let others = functions.filter_map(|function| function.read("__code__"));
    for code in others.filter(|code| !own.contains(&code.address())) {
        for name in mentioned(&code, 0) {
            filled.remove(&name);
        }
    }
    let found = roots.found.iter_mut();
    for root in found.filter(|it| it.kind == RootKind::Variable) {
        root.filled_by = filled.get(&root.name).cloned();
    }
}

/// A function itself, or the methods that stand in a class.
fn functions_of<'s>(object: &Object<'s>) -> Vec<Object<'s>> {
    if Native::is_function(object) {
        return vec![object.clone()];
    }
    let own = object.as_class().and_then(|class| class.own_attributes());
    let values = own.into_iter().flat_map(|own| own.values());
    values.filter(Native::is_function).collect()
}

/// The names of globals and attributes in a function's code, and in that of the functions in it.
fn mentioned(code: &Object<'_>, depth: usize) -> Vec<String> {
    let tuple = |name: &str| code.read(name).and_then(|it| Some(it.tuple()?.collect()));
    let names: Vec<Object<'_>> = tuple("co_names").unwrap_or_default();
    let inner: Vec<Object<'_>> = tuple("co_consts").unwrap_or_default();
    let mut found: Vec<String> = names.iter().filter_map(Object::text).collect();
    let is_code = |object: &&Object<'_>| object.class().address() == code.class().address();
    for inner in inner.iter().filter(is_code).filter(|_| depth < DEEPEST) {
        found.extend(mentioned(inner, depth + 1));
    }
    found
}
