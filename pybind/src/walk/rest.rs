//! What no name of the user's or of IPython's reaches.

use std::collections::HashSet;

use gpumem_core::holders::RootKind;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyModule, PyType};

use super::classes::is_heap_type;
use super::heap::Heap;
use super::roots::{Root, Roots, entries};
use super::{enter, garbage};
use crate::adapters::peek;

/// Finds it, nearest to a name first, and enters it.
pub(super) fn find<'py>(heap: &mut Heap<'_, 'py>, roots: &Roots<'py>) -> PyResult<Vec<Root<'py>>> {
    let mut found = libraries(heap, roots);
    enter(heap, &found);
    heap.settle();
    let tracked = tracked(heap.py)?;
    found.extend(garbage(heap, &tracked));
    let strangers = strangers(heap, &tracked);
    enter(heap, &strangers);
    found.extend(strangers);
    Ok(found)
}

/// The globals of libraries, and the attributes of what was closed: IPython's own objects.
fn libraries<'py>(heap: &Heap<'_, 'py>, roots: &Roots<'py>) -> Vec<Root<'py>> {
    let of_module = roots.library_globals.iter().flat_map(|(module, globals)| {
        let named = entries(globals).into_iter();
        let owner = owner(module);
        named.map(move |(name, value)| system(owner, format!("{module}.{name}"), value))
    });
    let is_object = |it: &&Bound<'py, PyAny>| {
        !it.is_instance_of::<PyModule>() && !it.is_instance_of::<PyDict>()
    };
    let of_object = roots.closed.iter().filter(is_object).flat_map(|object| {
        let class = heap.facts().in_words(object);
        let attributes = peek::attributes(object).map(|dict| entries(&dict));
        let named = attributes.into_iter().flatten();
        named.map(move |(name, value)| system("IPython", format!("{class}.{name}"), value))
    });
    // `sys.last_value`, `displayhook._`: these have better names already.
    let known: HashSet<_> = roots
        .found
        .iter()
        .map(|root| root.object.as_ptr())
        .collect();
    of_module
        .chain(of_object)
        .filter(|root| !known.contains(&root.object.as_ptr()))
        .collect()
}

/// What a library's module is to its user, where that is more than its name.
fn owner(module: &str) -> &str {
    let is_of = |package: &str| {
        let rest = module.strip_prefix(package);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    };
    if is_of("torch._inductor.cudagraph_trees") {
        "CUDA graphs of torch.compile"
    } else if ["torch._dynamo", "torch._inductor", "torch._functorch"]
        .into_iter()
        .any(is_of)
    {
        "torch.compile"
    } else {
        module
    }
}

fn system<'py>(name: &str, path: String, object: Bound<'py, PyAny>) -> Root<'py> {
    Root {
        name: name.to_owned(),
        kind: RootKind::System,
        path,
        object,
    }
}

/// Every object that the garbage collector knows.
fn tracked(py: Python<'_>) -> PyResult<Bound<'_, PyList>> {
    let objects = py.import("gc")?.call_method0("get_objects")?;
    Ok(objects.cast_into()?)
}

/// Objects that only refer to each other, and what they keep. Of those that lead to each other one
/// is enough: an instance of a class that Python code made, where there is one.
fn garbage<'py>(heap: &mut Heap<'_, 'py>, tracked: &Bound<'py, PyList>) -> Vec<Root<'py>> {
    let mut found = garbage::find(heap, tracked);
    found.sort_by_cached_key(|object| {
        let is_instance = is_heap_type(&object.get_type()) && !object.is_instance_of::<PyType>();
        (heap.is_claimed(object), !is_instance)
    });
    let mut first = Vec::new();
    for object in found {
        if !heap.is_met(object.as_ptr() as usize) {
            heap.reach(&object);
            heap.run();
            first.push(object);
        }
    }
    in_words(heap, RootKind::CyclicGarbage, "cyclic garbage", first)
}

/// Tensors that something else than an object of Python keeps, or an object that nothing leads to.
fn strangers<'py>(heap: &mut Heap<'_, 'py>, tracked: &Bound<'py, PyList>) -> Vec<Root<'py>> {
    let unmet: Vec<_> = tracked
        .iter()
        .filter(|object| heap.is_claimed(object) && !heap.is_met(object.as_ptr() as usize))
        .collect();
    in_words(heap, RootKind::Unnamed, "unnamed", unmet)
}

/// Roots without a name: each path begins with what the object is.
fn in_words<'py>(
    heap: &Heap<'_, 'py>,
    kind: RootKind,
    name: &str,
    objects: Vec<Bound<'py, PyAny>>,
) -> Vec<Root<'py>> {
    let root = |object| Root {
        name: name.to_owned(),
        kind,
        path: heap.facts().in_words(&object),
        object,
    };
    objects.into_iter().map(root).collect()
}
