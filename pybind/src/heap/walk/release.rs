//! What lets go of memory by itself: methods of a class, handles of hooks. Nothing of it is called.

use gpumem_model::holders::RootKind;

use super::native::Native;
use super::roots::Root;
use crate::heap::still::{Class, Object, Section};

/// Methods by which an object lets go of what it has, the surest first.
const METHODS: [&str; 10] = [
    "free_memory",
    "release_memory",
    "clear_memory",
    "clear_cache",
    "empty_cache",
    "reset_cache",
    "unload",
    "release",
    "clear",
    "reset",
];

/// In a list of handles, as many are looked at.
const MAX_HANDLES: usize = 256;

/// The method of an object's class that lets go of what the object has. A container's own `clear` is none:
/// it lets go of everything else, too.
pub(super) fn method_of(object: &Object<'_>) -> Option<&'static str> {
    if Native::of(object) == Some(Native::LruCache) {
        return Some("cache_clear");
    }
    let is_container = object.dict().is_some() || object.list().is_some() || object.is_set();
    let class = object.class();
    if is_container || !class.is_heap_type() || object.as_class().is_some() {
        return None;
    }
    METHODS.into_iter().find(|name| {
        let found = class
            .lineage()
            .find_map(|class| Some((class.own_attributes()?.get(name)?, class)));
        found.is_some_and(|(it, class)| {
            Native::is_function(&it) && !is_of_python(object.section(), &class)
        })
    })
}

/// A class of the standard library, where `release` lets go of a lock.
fn is_of_python<'s>(section: &'s Section<'s>, class: &Class<'s>) -> bool {
    let names = section.sys(c"stdlib_module_names");
    let names = names.and_then(|it| it.set());
    let module = class.module().unwrap_or_default();
    let top = module.split('.').next().unwrap_or_default();
    let is_it = |name: Object<'_>| name.text().is_some_and(|name| name == top);
    names.into_iter().flatten().any(is_it)
}

/// The numbers of hooks, with the variable that is their handle, as torch's `register_forward_hook` returns it.
pub(super) fn handles(roots: &[Root<'_>]) -> Vec<(u64, String)> {
    let variables = roots.iter().filter(|it| it.kind == RootKind::Variable);
    let mut found = Vec::new();
    for root in variables {
        found.extend(hook_of(&root.object).map(|hook| (hook, root.path.clone())));
        let list = root.object.list().into_iter().flatten();
        for (idx, item) in list.take(MAX_HANDLES).enumerate() {
            let Some(hook) = hook_of(&item) else {
                break;
            };
            found.push((hook, format!("{}[{idx}]", root.path)));
        }
    }
    found
}

/// The number of the hook that a handle removes.
fn hook_of(object: &Object<'_>) -> Option<u64> {
    let is_handle = object.class().qualname()? == "RemovableHandle";
    let own = object.attributes().filter(|_| is_handle)?;
    own.get("id")?.number()
}
