//! Handles of hooks: removing a handle releases its hook. None is called here.

use gpumem_model::holders::RootKind;

use super::roots::NamedRoot;
use crate::still::Object;

/// In a list of handles, as many are looked at.
const MAX_HANDLES: usize = 256;

/// The numbers of hooks, with the variable that is their handle, as torch's `register_forward_hook` returns it.
pub(super) fn handles(roots: &[NamedRoot<'_>]) -> Vec<(u64, String)> {
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
