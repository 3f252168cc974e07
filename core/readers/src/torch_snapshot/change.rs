//! Two snapshots compared: what grew and what shrank, by stack and by holder.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::hash::Hash;
use std::sync::Arc;

use serde::ser::SerializeStruct;
use serde::{Serialize, Serializer};

use crate::code_line::CodeLine;
use gpumem_model::units::{ByteDelta, Bytes};

use super::model::SnapshotDevice;
use super::summary::{SnapshotDeviceSummary, TorchSnapshotSummary};

/// The differences between two snapshots of one program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SnapshotChange {
    /// The devices of both, in order.
    pub devices: Vec<DeviceChange>,
}

/// The differences on one device: values of the earlier and of the later snapshot.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DeviceChange {
    /// Which one.
    #[serde(rename = "label")]
    pub device: SnapshotDevice,
    /// Bytes of all segments.
    #[serde(rename = "reserved_bytes")]
    pub reserved: (Bytes, Bytes),
    /// Bytes of blocks that tensors hold.
    #[serde(rename = "allocated_bytes")]
    pub allocated: (Bytes, Bytes),
    /// The largest unused block.
    #[serde(rename = "largest_hole_bytes")]
    pub largest_hole: (Bytes, Bytes),
    /// Stacks whose bytes or blocks changed, the largest change first: the frames of user code, innermost first.
    /// None if no stack was recorded.
    pub stacks: Vec<ByteChange<Vec<Arc<CodeLine>>>>,
    /// Holders whose bytes or blocks changed, likewise: paths without indices, `losses[].grad_fn`.
    pub holders: Vec<ByteChange<String>>,
}

/// Memory of one stack or holder before and after.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ByteChange<W> {
    /// The stack or holder.
    pub whose: W,
    /// Bytes in the earlier snapshot, and in the later one.
    pub bytes: (Bytes, Bytes),
    /// Blocks likewise.
    pub n_blocks: (usize, usize),
}

impl<W> ByteChange<W> {
    /// The difference in bytes.
    pub fn grown(&self) -> ByteDelta {
        self.bytes.1 - self.bytes.0
    }
}

/// The owner of a change, with its name in JSON.
trait ChangeOwner: Serialize {
    const NAME: &'static str;
}

impl ChangeOwner for Vec<Arc<CodeLine>> {
    const NAME: &'static str = "frames";
}

impl ChangeOwner for String {
    const NAME: &'static str = "name";
}

impl<W: ChangeOwner> Serialize for ByteChange<W> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fields = serializer.serialize_struct("Change", 3)?;
        fields.serialize_field(W::NAME, &self.whose)?;
        fields.serialize_field("bytes", &self.bytes)?;
        fields.serialize_field("n_blocks", &self.n_blocks)?;
        fields.end()
    }
}

impl SnapshotChange {
    /// From an earlier snapshot to a later one.
    pub fn between(before: &TorchSnapshotSummary, after: &TorchSnapshotSummary) -> Self {
        let mut devices: Vec<SnapshotDevice> = Vec::new();
        for device in before.devices.iter().chain(&after.devices) {
            if !devices.contains(&device.device) {
                devices.push(device.device);
            }
        }
        devices.sort_unstable();
        let devices = devices.into_iter();
        Self {
            devices: devices
                .map(|device| DeviceChange::between(device, before, after))
                .collect(),
        }
    }
}

impl DeviceChange {
    fn between(
        device: SnapshotDevice,
        before: &TorchSnapshotSummary,
        after: &TorchSnapshotSummary,
    ) -> Self {
        let (before, after) = (find(before, device), find(after, device));
        let level = |what: fn(&SnapshotDeviceSummary) -> Bytes| {
            (
                before.map(what).unwrap_or_default(),
                after.map(what).unwrap_or_default(),
            )
        };
        Self {
            device,
            reserved: level(|it| it.reserved),
            allocated: level(|it| it.allocated),
            largest_hole: level(|it| it.largest_hole),
            stacks: changes(stacks(before), stacks(after)),
            holders: changes(holders(before), holders(after)),
        }
    }
}

fn find(summary: &TorchSnapshotSummary, device: SnapshotDevice) -> Option<&SnapshotDeviceSummary> {
    summary.devices.iter().find(|it| it.device == device)
}

type GroupedBytes<W> = (W, Bytes, usize);

fn stacks(device: Option<&SnapshotDeviceSummary>) -> Vec<GroupedBytes<Vec<Arc<CodeLine>>>> {
    let stacks = device.into_iter().flat_map(|device| &device.stacks);
    stacks
        .map(|it| (it.frames.clone(), it.bytes, it.n_blocks))
        .collect()
}

fn holders(device: Option<&SnapshotDeviceSummary>) -> Vec<GroupedBytes<String>> {
    let holders = device.into_iter().flat_map(|device| &device.holders);
    holders
        .map(|it| (it.pattern.clone(), it.bytes, it.n_blocks))
        .collect()
}

/// Rows that changed, the largest change first.
fn changes<W: Clone + Eq + Hash + Ord>(
    before: Vec<GroupedBytes<W>>,
    after: Vec<GroupedBytes<W>>,
) -> Vec<ByteChange<W>> {
    let mut sums: HashMap<W, ByteChange<W>> = HashMap::new();
    let rows = before.into_iter().map(|row| (row, false));
    let rows = rows.chain(after.into_iter().map(|row| (row, true)));
    for ((whose, bytes, n_blocks), is_later) in rows {
        let change = sums.entry(whose.clone()).or_insert(ByteChange {
            whose,
            bytes: Default::default(),
            n_blocks: Default::default(),
        });
        let (of_bytes, of_blocks) = if is_later {
            (&mut change.bytes.1, &mut change.n_blocks.1)
        } else {
            (&mut change.bytes.0, &mut change.n_blocks.0)
        };
        *of_bytes += bytes;
        *of_blocks += n_blocks;
    }
    let is_other = |it: &ByteChange<W>| it.bytes.0 != it.bytes.1 || it.n_blocks.0 != it.n_blocks.1;
    let mut changes: Vec<_> = sums.into_values().filter(is_other).collect();
    changes.sort_by(|a, b| {
        let key = |it: &ByteChange<W>| Reverse(it.grown().magnitude());
        (key(a), &a.whose).cmp(&(key(b), &b.whose))
    });
    changes
}
