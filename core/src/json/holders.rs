//! Who holds memory, as JSON.

use serde::Serialize;

use crate::holders::{DeviceHolders, Fix, Holder, HolderBranch, SharedMemory};
use crate::recording::{DeviceIdx, Recording};
use crate::units::ByteDelta;
use crate::wording;

/// The latest look at one device.
#[derive(Serialize)]
pub(super) struct JsonHolders<'a> {
    device: &'a str,
    run: u32,
    n_bytes: u64,
    n_storages: u64,
    roots: Vec<JsonHolder<'a>>,
    shared: Vec<JsonShared<'a>>,
    /// What further names and what they share comes to.
    more_bytes: u64,
    parts: Vec<JsonPart>,
    is_cut: bool,
}

#[derive(Serialize)]
struct JsonPart {
    part: &'static str,
    n_bytes: u64,
}

#[derive(Serialize)]
pub(super) struct JsonHolder<'a> {
    name: &'a str,
    kind: &'static str,
    n_bytes: u64,
    grown_bytes: Option<i64>,
    path: &'a str,
    what: &'a str,
    children: Vec<JsonBranch<'a>>,
}

#[derive(Serialize)]
struct JsonBranch<'a> {
    step: &'a str,
    what: &'a str,
    n: u64,
    n_bytes: u64,
    children: Vec<JsonBranch<'a>>,
}

#[derive(Serialize)]
pub(super) struct JsonFix<'a> {
    before: Option<&'a str>,
    after: &'a str,
    why: String,
}

impl<'a> From<&'a Fix> for JsonFix<'a> {
    fn from(fix: &'a Fix) -> Self {
        Self {
            before: fix.before.as_deref(),
            after: &fix.after,
            why: wording::fix_reason(fix),
        }
    }
}

#[derive(Serialize)]
struct JsonShared<'a> {
    names: &'a [String],
    and_others: bool,
    n_bytes: u64,
    path: &'a str,
    what: &'a str,
}

impl<'a> JsonHolders<'a> {
    /// Of each device that was looked at.
    pub(super) fn of(recording: &'a Recording) -> Vec<Self> {
        let devices = recording.devices().iter();
        devices
            .filter_map(|it| Self::on(recording, it.idx))
            .collect()
    }

    fn on(recording: &'a Recording, device: DeviceIdx) -> Option<Self> {
        let (run, look) = recording.latest_holders(device)?;
        let DeviceHolders {
            roots,
            shared,
            parts,
            ..
        } = look;
        Some(Self {
            device: &recording.device(device).label,
            run: run.0,
            n_bytes: look.n_bytes.get(),
            n_storages: look.n_storages,
            roots: roots.iter().map(JsonHolder::from).collect(),
            shared: shared.iter().map(JsonShared::from).collect(),
            more_bytes: (look.more.n_bytes + look.more_shared.n_bytes).get(),
            parts: parts
                .iter()
                .map(|(part, n_bytes)| JsonPart {
                    part: part.name(),
                    n_bytes: n_bytes.get(),
                })
                .collect(),
            is_cut: look.is_cut,
        })
    }
}

impl<'a> From<&'a Holder> for JsonHolder<'a> {
    fn from(holder: &'a Holder) -> Self {
        Self {
            name: &holder.name,
            kind: holder.kind.name(),
            n_bytes: holder.retained.get(),
            grown_bytes: holder.grown.map(ByteDelta::get),
            path: &holder.path,
            what: &holder.what,
            children: holder.branches.iter().map(JsonBranch::from).collect(),
        }
    }
}

impl<'a> From<&'a HolderBranch> for JsonBranch<'a> {
    fn from(branch: &'a HolderBranch) -> Self {
        Self {
            step: &branch.step,
            what: &branch.what,
            n: branch.n,
            n_bytes: branch.n_bytes.get(),
            children: branch.branches.iter().map(JsonBranch::from).collect(),
        }
    }
}

impl<'a> From<&'a SharedMemory> for JsonShared<'a> {
    fn from(shared: &'a SharedMemory) -> Self {
        Self {
            names: &shared.names,
            and_others: shared.and_others,
            n_bytes: shared.n_bytes.get(),
            path: &shared.path,
            what: &shared.what,
        }
    }
}
