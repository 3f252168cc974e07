//! The frame of a look at the holders.

use serde::{Deserialize, Serialize};

use crate::holders::{Branch, DeviceHolders, Holder, Kept, Part, Rest, RootKind, Shared, Traits};
use crate::recording::{DeviceIdx, Frame, Held, RunIdx};
use crate::units::{ByteDelta, Bytes};

/// Branches nested deeper than that are left out.
const MAX_DEPTH: usize = 6;

#[derive(Serialize, Deserialize)]
pub(in crate::format) struct WireHolders {
    run: u32,
    device: u32,
    #[serde(default)]
    label: String,
    #[serde(default)]
    bytes: u64,
    #[serde(default)]
    n_storages: u64,
    #[serde(default)]
    roots: Vec<WireHolder>,
    #[serde(default)]
    more: WireRest,
    #[serde(default)]
    shared: Vec<WireShared>,
    #[serde(default)]
    more_shared: WireRest,
    #[serde(default)]
    kept: Vec<WireKept>,
    #[serde(default)]
    parts: Vec<WirePart>,
    #[serde(default)]
    is_cut: bool,
}

#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
struct WireRest {
    n: u64,
    bytes: u64,
}

#[derive(Serialize, Deserialize)]
struct WireKept {
    class: String,
    #[serde(default)]
    bytes: u64,
    #[serde(default)]
    name: String,
    #[serde(default)]
    path: String,
    #[serde(default)]
    what: String,
}

#[derive(Serialize, Deserialize)]
struct WirePart {
    part: String,
    #[serde(default)]
    bytes: u64,
}

#[derive(Serialize, Deserialize)]
struct WireHolder {
    name: String,
    class: String,
    #[serde(default)]
    retained: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    grown: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    fresh: Option<u64>,
    #[serde(default)]
    path: String,
    #[serde(default)]
    what: String,
    #[serde(default)]
    type_name: String,
    #[serde(default)]
    n_tensors: u64,
    #[serde(default)]
    scalars: bool,
    #[serde(default)]
    graph: u64,
    #[serde(default)]
    by_function: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    part: Option<String>,
    #[serde(default)]
    branches: Vec<WireBranch>,
    #[serde(default)]
    more: WireRest,
}

#[derive(Serialize, Deserialize)]
struct WireBranch {
    step: String,
    #[serde(default)]
    what: String,
    #[serde(default)]
    n: u64,
    #[serde(default)]
    bytes: u64,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    branches: Vec<WireBranch>,
    #[serde(default)]
    more: WireRest,
}

#[derive(Serialize, Deserialize)]
struct WireShared {
    #[serde(default)]
    names: Vec<String>,
    #[serde(default)]
    and_others: bool,
    #[serde(default)]
    bytes: u64,
    #[serde(default)]
    path: String,
    #[serde(default)]
    what: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    part: Option<String>,
}

impl From<&Held> for WireHolders {
    fn from(held: &Held) -> Self {
        let found = &held.holders;
        let part = |(part, bytes): &(Part, Bytes)| WirePart {
            part: part.name().to_owned(),
            bytes: bytes.get(),
        };
        Self {
            run: held.run.0,
            device: held.device.0,
            label: found.device.clone(),
            bytes: found.n_bytes.get(),
            n_storages: found.n_storages,
            roots: found.roots.iter().map(WireHolder::from).collect(),
            more: found.more.into(),
            shared: found.shared.iter().map(WireShared::from).collect(),
            more_shared: found.more_shared.into(),
            kept: found.kept.iter().map(WireKept::from).collect(),
            parts: found.parts.iter().map(part).collect(),
            is_cut: found.is_cut,
        }
    }
}

impl From<WireHolders> for Frame {
    /// Parts and places that this version does not know are left out.
    fn from(wire: WireHolders) -> Self {
        let part = |it: &WirePart| Some((Part::from_name(&it.part)?, Bytes::new(it.bytes)));
        let kept = |it: WireKept| {
            Some(Kept {
                place: RootKind::from_name(&it.class)?,
                n_bytes: Bytes::new(it.bytes),
                name: it.name,
                path: it.path,
                what: it.what,
            })
        };
        Self::Holders(Box::new(Held {
            run: RunIdx(wire.run),
            device: DeviceIdx(wire.device),
            holders: DeviceHolders {
                device: wire.label,
                n_bytes: Bytes::new(wire.bytes),
                n_storages: wire.n_storages,
                roots: wire.roots.into_iter().map(Holder::from).collect(),
                more: wire.more.into(),
                shared: wire.shared.into_iter().map(Shared::from).collect(),
                more_shared: wire.more_shared.into(),
                kept: wire.kept.into_iter().filter_map(kept).collect(),
                parts: wire.parts.iter().filter_map(part).collect(),
                is_cut: wire.is_cut,
            },
        }))
    }
}

impl From<&Kept> for WireKept {
    fn from(kept: &Kept) -> Self {
        Self {
            class: kept.place.name().to_owned(),
            bytes: kept.n_bytes.get(),
            name: kept.name.clone(),
            path: kept.path.clone(),
            what: kept.what.clone(),
        }
    }
}

impl From<Rest> for WireRest {
    fn from(rest: Rest) -> Self {
        Self {
            n: rest.n,
            bytes: rest.n_bytes.get(),
        }
    }
}

impl From<WireRest> for Rest {
    fn from(wire: WireRest) -> Self {
        Self {
            n: wire.n,
            n_bytes: Bytes::new(wire.bytes),
        }
    }
}

impl From<&Holder> for WireHolder {
    fn from(holder: &Holder) -> Self {
        Self {
            name: holder.name.clone(),
            class: holder.kind.name().to_owned(),
            retained: holder.retained.get(),
            grown: holder.grown.map(ByteDelta::get),
            fresh: holder.fresh.map(Bytes::get),
            path: holder.path.clone(),
            what: holder.what.clone(),
            type_name: holder.traits.type_name.clone(),
            n_tensors: holder.traits.n_tensors,
            scalars: holder.traits.scalars,
            graph: holder.traits.graph.get(),
            by_function: holder.traits.by_function,
            part: holder.traits.part.map(|part| part.name().to_owned()),
            branches: to_wire(&holder.branches, MAX_DEPTH),
            more: holder.more.into(),
        }
    }
}

impl From<WireHolder> for Holder {
    fn from(wire: WireHolder) -> Self {
        Self {
            name: wire.name,
            kind: RootKind::from_name(&wire.class).unwrap_or(RootKind::Unnamed),
            retained: Bytes::new(wire.retained),
            grown: wire.grown.map(ByteDelta::new),
            fresh: wire.fresh.map(Bytes::new),
            path: wire.path,
            what: wire.what,
            traits: Traits {
                type_name: wire.type_name,
                n_tensors: wire.n_tensors,
                scalars: wire.scalars,
                graph: Bytes::new(wire.graph),
                by_function: wire.by_function,
                part: wire.part.as_deref().and_then(Part::from_name),
            },
            branches: wire.branches.into_iter().map(Branch::from).collect(),
            more: wire.more.into(),
        }
    }
}

fn to_wire(branches: &[Branch], depth: usize) -> Vec<WireBranch> {
    let shown = branches.iter().filter(|_| depth > 0);
    let branch = |branch: &Branch| WireBranch {
        step: branch.step.clone(),
        what: branch.what.clone(),
        n: branch.n,
        bytes: branch.n_bytes.get(),
        branches: to_wire(&branch.branches, depth - 1),
        more: branch.more.into(),
    };
    shown.map(branch).collect()
}

impl From<WireBranch> for Branch {
    /// Nesting is bounded by the reader of values.
    fn from(wire: WireBranch) -> Self {
        Self {
            step: wire.step,
            what: wire.what,
            n: wire.n,
            n_bytes: Bytes::new(wire.bytes),
            branches: wire.branches.into_iter().map(Self::from).collect(),
            more: wire.more.into(),
        }
    }
}

impl From<&Shared> for WireShared {
    fn from(shared: &Shared) -> Self {
        Self {
            names: shared.names.clone(),
            and_others: shared.and_others,
            bytes: shared.n_bytes.get(),
            path: shared.path.clone(),
            what: shared.what.clone(),
            part: shared.part.map(|part| part.name().to_owned()),
        }
    }
}

impl From<WireShared> for Shared {
    fn from(wire: WireShared) -> Self {
        Self {
            names: wire.names,
            and_others: wire.and_others,
            n_bytes: Bytes::new(wire.bytes),
            path: wire.path,
            what: wire.what,
            part: wire.part.as_deref().and_then(Part::from_name),
        }
    }
}
