//! What no name of the user's or of IPython's reaches.

use std::collections::HashSet;

use gpumem_model::holders::RootKind;
use gpumem_model::units::Bytes;

use super::heap::Heap;
use super::native::in_words;
use super::roots::{NamedRoot, Roots};
use super::{enter, garbage};
use crate::still::{Class, Object};

/// Shorter texts are mostly documentation of libraries.
const SHORTEST_IN_LIBRARIES: Bytes = Bytes::new(64 << 10);

/// Finds it, nearest to a name first, and enters it. `tracked` is all that the collector knows.
pub(super) fn find<'s>(
    heap: &mut Heap<'_, 's>,
    roots: &Roots<'s>,
    tracked: &[Object<'s>],
) -> Vec<NamedRoot<'s>> {
    heap.pass_shorter_than(SHORTEST_IN_LIBRARIES);
    let mut found = libraries(roots);
    enter(heap, &found);
    heap.settle();
    found.extend(garbage(heap, tracked));
    let strangers = strangers(heap, tracked);
    enter(heap, &strangers);
    found.extend(strangers);
    found
}

/// The globals of libraries, and the attributes of closed objects: IPython's own.
fn libraries<'s>(roots: &Roots<'s>) -> Vec<NamedRoot<'s>> {
    let of_module = roots.library_globals.iter().flat_map(|(module, globals)| {
        let owner = owner(module);
        let named = globals.named();
        named.map(move |(name, value)| system(owner, format!("{module}.{name}"), value))
    });
    let of_class = roots.library_globals.iter().flat_map(|(module, globals)| {
        let owner = owner(module);
        let named = globals.named();
        let classes = named.filter_map(|(_, value)| value.as_class());
        let own = classes.filter(move |class| class.module().as_deref() == Some(module));
        own.flat_map(move |class| collected_in(owner, module, &class))
    });
    let is_object = |it: &&Object<'s>| !it.is_module() && it.dict().is_none();
    let of_object = roots.closed.iter().filter(is_object).flat_map(|object| {
        let class = in_words(object);
        let named = object.attributes().into_iter().flat_map(|it| it.named());
        named.map(move |(name, value)| system("IPython", format!("{class}.{name}"), value))
    });
    // `sys.last_value`, `displayhook._`: these have better names already.
    let known: HashSet<_> = roots
        .found
        .iter()
        .map(|root| root.object.address())
        .collect();
    of_module
        .chain(of_class)
        .chain(of_object)
        .filter(|root| !known.contains(&root.object.address()))
        .collect()
}

/// Containers among the attributes of a library's class, such as the figures that pyplot has open.
fn collected_in<'s>(owner: &str, module: &str, class: &Class<'s>) -> Vec<NamedRoot<'s>> {
    let own = class.own_attributes().into_iter();
    let named = own.flat_map(|own| own.named());
    let collected = named.filter(|(_, value)| {
        let is_empty = value.dict().is_some_and(|dict| dict.len() == 0);
        !is_empty && (value.dict().is_some() || value.list().is_some() || value.is_set())
    });
    let class = class.qualname().unwrap_or_default();
    collected
        .map(|(name, value)| system(owner, format!("{module}.{class}.{name}"), value))
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

fn system<'s>(name: &str, path: String, object: Object<'s>) -> NamedRoot<'s> {
    NamedRoot::new(RootKind::System, name, path, object)
}

/// Objects that only refer to each other, and what they keep. Of those that lead to each other one
/// is enough: an instance of a class that Python code made, where there is one.
fn garbage<'s>(heap: &mut Heap<'_, 's>, tracked: &[Object<'s>]) -> Vec<NamedRoot<'s>> {
    let mut found = garbage::find(heap, tracked);
    found.sort_by_cached_key(|object| {
        let is_instance = object.class().is_heap_type() && object.as_class().is_none();
        (heap.is_claimed(object), !is_instance)
    });
    let mut first = Vec::new();
    for object in found {
        if !heap.is_met(object.address()) {
            heap.reach(&object);
            heap.run();
            first.push(object);
        }
    }
    without_name(RootKind::CyclicGarbage, "cyclic garbage", first)
}

/// Tensors that something else than an object of Python keeps, or an object that nothing leads to.
fn strangers<'s>(heap: &mut Heap<'_, 's>, tracked: &[Object<'s>]) -> Vec<NamedRoot<'s>> {
    let unmet = tracked.iter();
    let unmet = unmet.filter(|object| heap.is_claimed(object) && !heap.is_met(object.address()));
    without_name(RootKind::Unnamed, "unnamed", unmet.cloned().collect())
}

/// Roots without a name: each path begins with what the object is.
fn without_name<'s>(kind: RootKind, name: &str, objects: Vec<Object<'s>>) -> Vec<NamedRoot<'s>> {
    let root = |object| NamedRoot::new(kind, name, in_words(&object), object);
    objects.into_iter().map(root).collect()
}
