//! The frame of a look at the holders.

use serde::Serialize;

use crate::format::messagepack::{Outcome, Reader};
use crate::format::record::{Decode, DecodeFields};
use crate::holders::{Holder, HolderBranch, Kept, Part, Rest, RootKind, SharedMemory};
use crate::recording::HolderSnapshot;
use crate::units::{ByteDelta, Bytes};

/// Branches nested deeper than that are left out.
const MAX_DEPTH: usize = 6;

#[derive(Serialize)]
pub(in crate::format) struct WireHolders {
    run: u32,
    device: u32,
    label: String,
    bytes: u64,
    n_storages: u64,
    roots: Vec<WireHolder>,
    more: WireRest,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    sharing: Vec<WireHolder>,
    shared: Vec<WireShared>,
    more_shared: WireRest,
    kept: Vec<WireKept>,
    parts: Vec<WirePart>,
    is_cut: bool,
}

#[derive(Serialize)]
struct WireRest {
    n: u64,
    bytes: u64,
}

#[derive(Serialize)]
struct WireKept {
    class: String,
    bytes: u64,
    name: String,
    path: String,
    what: String,
}

#[derive(Serialize)]
struct WirePart {
    part: String,
    bytes: u64,
}

#[derive(Serialize)]
struct WireHolder {
    name: String,
    class: String,
    retained: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    grown: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    fresh: Option<u64>,
    path: String,
    what: String,
    type_name: String,
    n_tensors: u64,
    scalars: bool,
    graph: u64,
    by_function: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    part: Option<String>,
    branches: Vec<WireBranch>,
    more: WireRest,
}

#[derive(Serialize)]
struct WireBranch {
    step: String,
    what: String,
    n: u64,
    bytes: u64,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    branches: Vec<WireBranch>,
    more: WireRest,
}

#[derive(Serialize)]
struct WireShared {
    names: Vec<String>,
    and_others: bool,
    bytes: u64,
    path: String,
    what: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    part: Option<String>,
}

impl From<&HolderSnapshot> for WireHolders {
    fn from(held: &HolderSnapshot) -> Self {
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
            sharing: found.sharing.iter().map(WireHolder::from).collect(),
            shared: found.shared.iter().map(WireShared::from).collect(),
            more_shared: found.more_shared.into(),
            kept: found.kept.iter().map(WireKept::from).collect(),
            parts: found.parts.iter().map(part).collect(),
            is_cut: found.is_cut,
        }
    }
}

impl DecodeFields for HolderSnapshot {
    fn required(&self) -> &'static [&'static str] {
        &["run", "device"]
    }

    fn field(&mut self, name: &str, value: &mut Reader<'_>) -> Outcome<()> {
        let found = &mut self.holders;
        match name {
            "run" => self.run.fill(value),
            "device" => self.device.fill(value),
            "label" => found.device.fill(value),
            "bytes" => found.n_bytes.fill(value),
            "n_storages" => found.n_storages.fill(value),
            "roots" => found.roots.fill(value),
            "more" => found.more.fill(value),
            "sharing" => found.sharing.fill(value),
            "shared" => found.shared.fill(value),
            "more_shared" => found.more_shared.fill(value),
            "kept" => value.list_of(&mut found.kept, FoundKept::known),
            "parts" => value.list_of(&mut found.parts, FoundPart::known),
            "is_cut" => found.is_cut.fill(value),
            _ => value.skip(),
        }
    }
}

/// What the bytes of a part come to; this version may not know the part.
#[derive(Default)]
struct FoundPart {
    part: Option<Part>,
    n_bytes: Bytes,
}

impl FoundPart {
    fn known(self) -> Option<(Part, Bytes)> {
        Some((self.part?, self.n_bytes))
    }
}

impl DecodeFields for FoundPart {
    fn required(&self) -> &'static [&'static str] {
        &["part"]
    }

    fn field(&mut self, name: &str, value: &mut Reader<'_>) -> Outcome<()> {
        match name {
            "part" => value.name(Part::from_name, &mut self.part),
            "bytes" => self.n_bytes.fill(value),
            _ => value.skip(),
        }
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

/// What a place keeps, which this version may not know.
#[derive(Default)]
struct FoundKept {
    place: Option<RootKind>,
    n_bytes: Bytes,
    name: String,
    path: String,
    what: String,
}

impl FoundKept {
    fn known(self) -> Option<Kept> {
        Some(Kept {
            place: self.place?,
            n_bytes: self.n_bytes,
            name: self.name,
            path: self.path,
            what: self.what,
        })
    }
}

impl DecodeFields for FoundKept {
    fn required(&self) -> &'static [&'static str] {
        &["class"]
    }

    fn field(&mut self, name: &str, value: &mut Reader<'_>) -> Outcome<()> {
        match name {
            "class" => value.name(RootKind::from_name, &mut self.place),
            "bytes" => self.n_bytes.fill(value),
            "name" => self.name.fill(value),
            "path" => self.path.fill(value),
            "what" => self.what.fill(value),
            _ => value.skip(),
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

impl DecodeFields for Rest {
    fn field(&mut self, name: &str, value: &mut Reader<'_>) -> Outcome<()> {
        match name {
            "n" => self.n.fill(value),
            "bytes" => self.n_bytes.fill(value),
            _ => value.skip(),
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

impl DecodeFields for Holder {
    fn required(&self) -> &'static [&'static str] {
        &["name", "class"]
    }

    fn field(&mut self, name: &str, value: &mut Reader<'_>) -> Outcome<()> {
        let traits = &mut self.traits;
        match name {
            "name" => self.name.fill(value),
            "class" => {
                let mut kind = None;
                value.name(RootKind::from_name, &mut kind)?;
                self.kind = kind.unwrap_or_default();
                Ok(())
            }
            "retained" => self.retained.fill(value),
            "grown" => self.grown.fill(value),
            "fresh" => self.fresh.fill(value),
            "path" => self.path.fill(value),
            "what" => self.what.fill(value),
            "type_name" => traits.type_name.fill(value),
            "n_tensors" => traits.n_tensors.fill(value),
            "scalars" => traits.scalars.fill(value),
            "graph" => traits.graph.fill(value),
            "by_function" => traits.by_function.fill(value),
            "part" => value.name(Part::from_name, &mut traits.part),
            "branches" => self.branches.fill(value),
            "more" => self.more.fill(value),
            _ => value.skip(),
        }
    }
}

fn to_wire(branches: &[HolderBranch], depth: usize) -> Vec<WireBranch> {
    let shown = branches.iter().filter(|_| depth > 0);
    let branch = |branch: &HolderBranch| WireBranch {
        step: branch.step.clone(),
        what: branch.what.clone(),
        n: branch.n,
        bytes: branch.n_bytes.get(),
        branches: to_wire(&branch.branches, depth - 1),
        more: branch.more.into(),
    };
    shown.map(branch).collect()
}

/// Nesting is bounded by the reader.
impl DecodeFields for HolderBranch {
    fn required(&self) -> &'static [&'static str] {
        &["step"]
    }

    fn field(&mut self, name: &str, value: &mut Reader<'_>) -> Outcome<()> {
        match name {
            "step" => self.step.fill(value),
            "what" => self.what.fill(value),
            "n" => self.n.fill(value),
            "bytes" => self.n_bytes.fill(value),
            "branches" => self.branches.fill(value),
            "more" => self.more.fill(value),
            _ => value.skip(),
        }
    }
}

impl From<&SharedMemory> for WireShared {
    fn from(shared: &SharedMemory) -> Self {
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

impl DecodeFields for SharedMemory {
    fn field(&mut self, name: &str, value: &mut Reader<'_>) -> Outcome<()> {
        match name {
            "names" => self.names.fill(value),
            "and_others" => self.and_others.fill(value),
            "bytes" => self.n_bytes.fill(value),
            "path" => self.path.fill(value),
            "what" => self.what.fill(value),
            "part" => value.name(Part::from_name, &mut self.part),
            _ => value.skip(),
        }
    }
}
