//! A memory snapshot of `PyTorch` as JSON.

use serde::Serialize;

use gpumem_readers::torch_snapshot::{DeviceSummary, SnapshotChange, Summary};

/// A snapshot as JSON. Fields named `*_bytes` are bytes, `*_micros` microseconds; unknown is `null`.
pub fn torch_snapshot_json(summary: &Summary) -> String {
    let settings = summary.settings.iter();
    let json = JsonSnapshot {
        devices: &summary.devices,
        settings: settings
            .map(|(name, value)| (name.clone(), value.clone().into()))
            .collect(),
        n_annotations: summary.n_annotations,
    };
    serde_json::to_string(&json).expect("a snapshot holds strings and numbers only")
}

#[derive(Serialize)]
struct JsonSnapshot<'a> {
    devices: &'a [DeviceSummary],
    settings: serde_json::Map<String, serde_json::Value>,
    n_annotations: usize,
}

/// A comparison of two snapshots as JSON. Fields named `*_bytes` are bytes: in the earlier snapshot, and in the
/// later one.
pub fn torch_change_json(change: &SnapshotChange) -> String {
    serde_json::to_string(change).expect("a comparison holds strings and numbers only")
}
