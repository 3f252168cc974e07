//! Who holds memory, as JSON.

use serde::Serialize;

use gpumem_model::holders::{DeviceHolders, StorageUse};
use gpumem_model::object;
use gpumem_model::recording::{Recording, RunIdx};
use gpumem_model::units::Bytes;
use gpumem_wording::Remedy;

/// The latest look at one device.
pub(super) struct JsonHolders<'a> {
    device: &'a str,
    run: RunIdx,
    look: &'a DeviceHolders,
}

object! { JsonHolders<'_>, it => {
    device: it.device,
    run: it.run,
    n_bytes: it.look.n_bytes,
    n_storages: it.look.n_storages,
    roots: it.look.roots,
    shared: it.look.shared,
    // What further names and what they share comes to.
    more_bytes: it.look.more.n_bytes + it.look.more_shared.n_bytes,
    parts: it.look.parts.iter().map(|&(part, n_bytes)| JsonPart { part, n_bytes }).collect::<Vec<_>>(),
    is_cut: it.look.is_cut,
}}

#[derive(Serialize)]
struct JsonPart {
    part: StorageUse,
    n_bytes: Bytes,
}

#[derive(Serialize)]
pub(super) struct JsonFix<'a> {
    before: Option<&'a str>,
    after: &'a str,
    why: String,
}

impl<'a> JsonFix<'a> {
    /// `None` of a command.
    pub(super) fn new(remedy: &'a Remedy) -> Option<Self> {
        Some(Self {
            before: remedy.before.as_deref(),
            after: &remedy.after,
            why: remedy.reason.as_ref()?.ticked(),
        })
    }
}

impl<'a> JsonHolders<'a> {
    /// Of each device that was looked at.
    pub(super) fn by_device(recording: &'a Recording) -> Vec<Self> {
        let devices = recording.devices().iter();
        let looks = devices.filter_map(|device| {
            let (run, look) = recording.latest_holders(device.idx)?;
            let device = &device.label;
            Some(Self { device, run, look })
        });
        looks.collect()
    }
}
