//! Who holds memory, as JSON.

use serde::Serialize;

use crate::holders::{Fix, Holder, Part, SharedMemory};
use crate::recording::{DeviceIdx, Recording, RunIdx};
use crate::units::Bytes;
use crate::wording;

/// The latest look at one device.
#[derive(Serialize)]
pub(super) struct JsonHolders<'a> {
    device: &'a str,
    run: RunIdx,
    n_bytes: Bytes,
    n_storages: u64,
    roots: &'a [Holder],
    shared: &'a [SharedMemory],
    /// What further names and what they share comes to.
    more_bytes: Bytes,
    parts: Vec<JsonPart>,
    is_cut: bool,
}

#[derive(Serialize)]
struct JsonPart {
    part: Part,
    n_bytes: Bytes,
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
        let parts = look.parts.iter();
        Some(Self {
            device: &recording.device(device).label,
            run,
            n_bytes: look.n_bytes,
            n_storages: look.n_storages,
            roots: &look.roots,
            shared: &look.shared,
            more_bytes: look.more.n_bytes + look.more_shared.n_bytes,
            parts: parts
                .map(|&(part, n_bytes)| JsonPart { part, n_bytes })
                .collect(),
            is_cut: look.is_cut,
        })
    }
}
