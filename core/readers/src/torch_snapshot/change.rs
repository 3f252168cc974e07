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
use super::summary::{DeviceSummary, Summary};

/// What is other in a later snapshot of the same program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SnapshotChange {
    /// The devices of either, in order.
    pub devices: Vec<DeviceChange>,
}

/// What is other on one device: in the earlier snapshot, and in the later one.
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
    /// The largest block that nobody uses.
    #[serde(rename = "largest_hole_bytes")]
    pub largest_hole: (Bytes, Bytes),
    /// Stacks whose bytes or blocks are others, what changed most first: the frames of user code, innermost
    /// first. None if no stack was recorded.
    pub stacks: Vec<Change<Vec<Arc<CodeLine>>>>,
    /// Holders whose bytes or blocks are others, likewise: paths without indices, `losses[].grad_fn`.
    pub holders: Vec<Change<String>>,
}

/// What one stack or holder had, and has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change<W> {
    /// Whose.
    pub whose: W,
    /// Bytes in the earlier snapshot, and in the later one.
    pub bytes: (Bytes, Bytes),
    /// Blocks likewise.
    pub n_blocks: (usize, usize),
}

impl<W> Change<W> {
    /// What came to it.
    pub fn grown(&self) -> ByteDelta {
        self.bytes.1 - self.bytes.0
    }
}

/// Whose a change is, with the name of that in JSON.
trait Whose: Serialize {
    const NAME: &'static str;
}

impl Whose for Vec<Arc<CodeLine>> {
    const NAME: &'static str = "frames";
}

impl Whose for String {
    const NAME: &'static str = "name";
}

impl<W: Whose> Serialize for Change<W> {
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
    pub fn between(before: &Summary, after: &Summary) -> Self {
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
    fn between(device: SnapshotDevice, before: &Summary, after: &Summary) -> Self {
        let of = |summary| -> Option<&DeviceSummary> { find(summary, device) };
        let level = |what: fn(&DeviceSummary) -> Bytes| {
            let of = |summary| of(summary).map(what).unwrap_or_default();
            (of(before), of(after))
        };
        Self {
            device,
            reserved: level(|it| it.reserved),
            allocated: level(|it| it.allocated),
            largest_hole: level(|it| it.largest_hole),
            stacks: changes(stacks(of(before)), stacks(of(after))),
            holders: changes(holders(of(before)), holders(of(after))),
        }
    }
}

fn find(summary: &Summary, device: SnapshotDevice) -> Option<&DeviceSummary> {
    summary.devices.iter().find(|it| it.device == device)
}

type Row<W> = (W, Bytes, usize);

fn stacks(device: Option<&DeviceSummary>) -> Vec<Row<Vec<Arc<CodeLine>>>> {
    let stacks = device.into_iter().flat_map(|device| &device.stacks);
    stacks
        .map(|it| (it.frames.clone(), it.bytes, it.n_blocks))
        .collect()
}

fn holders(device: Option<&DeviceSummary>) -> Vec<Row<String>> {
    let holders = device.into_iter().flat_map(|device| &device.holders);
    holders
        .map(|it| (it.pattern.clone(), it.bytes, it.n_blocks))
        .collect()
}

/// Rows that are others, what changed most first.
fn changes<W: Clone + Eq + Hash + Ord>(before: Vec<Row<W>>, after: Vec<Row<W>>) -> Vec<Change<W>> {
    let mut sums: HashMap<W, Change<W>> = HashMap::new();
    let rows = before.into_iter().map(|row| (row, false));
    let rows = rows.chain(after.into_iter().map(|row| (row, true)));
    for ((whose, bytes, n_blocks), is_later) in rows {
        let change = sums.entry(whose.clone()).or_insert(Change {
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
    let is_other = |it: &Change<W>| it.bytes.0 != it.bytes.1 || it.n_blocks.0 != it.n_blocks.1;
    let mut changes: Vec<_> = sums.into_values().filter(is_other).collect();
    changes.sort_by(|a, b| {
        let key = |it: &Change<W>| Reverse(it.grown().magnitude());
        (key(a), &a.whose).cmp(&(key(b), &b.whose))
    });
    changes
}
