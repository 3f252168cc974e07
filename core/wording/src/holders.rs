//! What holds the memory.

use gpumem_model::holders::{Holder, RootKind};

/// `held by losses (list of 3 tensors, each with its graph)`.
pub(super) fn held_by(holder: &Holder) -> String {
    let Holder { name, what, .. } = holder;
    match holder.kind {
        kind if kind.is_graph_cycle() => format!("held by its own graph ({what})"),
        RootKind::Unnamed => format!("held by no name ({what})"),
        kind if kind.is_garbage() => {
            format!("held by objects that only refer to each other ({what})")
        }
        kind => match kind.description().filter(|_| !holder.is_local()) {
            Some(kind) => format!("held by {name}, {kind} ({what})"),
            None => format!("held by {name} ({what})"),
        },
    }
}
