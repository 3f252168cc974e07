//! A snapshot's totals, holes, owners and failed requests.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::hash::Hash;

use serde::Serialize;

use crate::code_line::CodeLine;
use gpumem_model::segments::BlockState;
use gpumem_model::trace::Action;
use gpumem_model::units::Bytes;

use super::equal_sets::{EqualSets, equal_sets};
use super::holder::{SnapshotHolder, holders};
use super::lifetimes::{LineLifetimes, lifetimes};
use super::lines::line_of;
use super::live::Life;
use super::model::{
    DeviceSnapshot, SnapshotBlock, SnapshotDevice, SnapshotFrame, SnapshotSegment, TorchSnapshot,
};
use super::stacks::{Frames, StackTotal, stack_totals};
use super::timeline::SnapshotTimeline;

/// A snapshot summed up.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TorchSnapshotSummary {
    /// In the order of their numbers, the host last.
    pub devices: Vec<SnapshotDeviceSummary>,
    /// Names and values of the allocator's settings.
    pub settings: BTreeMap<String, String>,
    /// Number of annotations, such as the steps of an optimizer.
    pub n_annotations: usize,
}

/// One device of a snapshot.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SnapshotDeviceSummary {
    /// The device.
    #[serde(rename = "label")]
    pub device: SnapshotDevice,
    /// Bytes of all segments.
    #[serde(rename = "reserved_bytes")]
    pub reserved: Bytes,
    /// Bytes of blocks that tensors hold.
    #[serde(rename = "allocated_bytes")]
    pub allocated: Bytes,
    /// Allocated bytes plus blocks that await a stream.
    #[serde(rename = "active_bytes")]
    pub active: Bytes,
    /// Requested bytes among the allocated ones; the rest is rounding.
    #[serde(rename = "requested_bytes")]
    pub requested: Bytes,
    /// Bytes of unused blocks.
    #[serde(rename = "inactive_bytes")]
    pub inactive: Bytes,
    /// Inactive bytes in segments without an active block: `torch.cuda.empty_cache()` returns them.
    #[serde(rename = "releasable_bytes")]
    pub releasable: Bytes,
    /// The largest inactive block.
    #[serde(rename = "largest_hole_bytes")]
    pub largest_hole: Bytes,
    /// Number of segments.
    pub n_segments: usize,
    /// Of these, mapped parts of expandable segments.
    #[serde(rename = "n_expandable_segments")]
    pub n_expandable: usize,
    /// Number of blocks of any state.
    pub n_blocks: usize,
    /// Number of blocks that tensors hold.
    pub n_allocated_blocks: usize,
    /// Whether a segment's stated sums differ from its blocks' sums.
    pub is_inconsistent: bool,
    /// Allocated bytes by the line that allocated them, largest first.
    pub owners: Vec<LineOwner>,
    /// The same by stack, largest first.
    pub stacks: Vec<StackTotal>,
    /// Their holders, largest first; empty unless gpumem wrote the file.
    pub holders: Vec<SnapshotHolder>,
    /// Sets of blocks with the same sizes, as an optimizer keeps them.
    pub equal_sets: Option<EqualSets>,
    /// Requests that failed, oldest first.
    #[serde(rename = "failed_requests")]
    pub failed: Vec<FailedRequest>,
    /// The levels over the trace; `None` without a trace.
    pub timeline: Option<SnapshotTimeline>,
    /// Lifetimes of the trace's blocks by line, the highest bytes × lifetime first.
    pub lifetimes: Vec<LineLifetimes>,
}

/// Bytes of one line of code.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LineOwner {
    /// The innermost line of the stack in user code; `None` if no stack was recorded.
    pub line: Option<CodeLine>,
    /// Its bytes.
    pub bytes: Bytes,
    /// Number of blocks.
    pub n_blocks: usize,
}

/// A request that failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FailedRequest {
    /// The requested bytes.
    #[serde(rename = "wanted_bytes")]
    pub wanted: Bytes,
    /// The driver's free bytes at that time.
    #[serde(rename = "driver_free_bytes")]
    pub driver_free: Option<Bytes>,
    /// The largest inactive block that could serve it: of its stream, in no private pool.
    #[serde(rename = "largest_hole_bytes")]
    pub largest_hole: Bytes,
    /// The line that requested it.
    pub line: Option<CodeLine>,
    /// Number of allocations and frees between it and the snapshot. If none, the snapshot's holes were there then.
    #[serde(rename = "n_later_events")]
    pub n_later: usize,
}

impl TorchSnapshotSummary {
    /// Sums up a snapshot with its devices' blocks.
    pub(super) fn new(snapshot: &TorchSnapshot<'_>, lives: &[Vec<Life>]) -> Self {
        let lines = snapshot.lines();
        let devices = snapshot.devices.iter().zip(lives);
        let mut frames = Frames::default();
        Self {
            devices: devices
                .map(|(device, lives)| {
                    SnapshotDeviceSummary::new(device, lives, snapshot, &lines, &mut frames)
                })
                .collect(),
            settings: snapshot.settings.clone(),
            n_annotations: snapshot.n_annotations,
        }
    }
}

impl SnapshotDeviceSummary {
    fn new<'t>(
        device: &DeviceSnapshot,
        lives: &[Life],
        snapshot: &TorchSnapshot<'t>,
        lines: &[Option<SnapshotFrame<'t>>],
        frames: &mut Frames<'t>,
    ) -> Self {
        let segments = &device.segments;
        let blocks = || segments.iter().flat_map(|segment| &segment.blocks);
        let in_state = |state| blocks().filter(move |block| block.state == state);
        let size = |block: &SnapshotBlock| block.size;
        let allocated: Bytes = in_state(BlockState::Held).map(size).sum();
        let awaits: Bytes = in_state(BlockState::Awaiting).map(size).sum();
        let requested = in_state(BlockState::Held).map(|block| block.requested);
        let mut tallies = Tallies::new();
        for block in in_state(BlockState::Held) {
            tallies.add(line_of(lines, block.stack), block.size);
        }
        let (owners, _) = tallies.largest_first(code_line);
        Self {
            device: device.device,
            reserved: segments.iter().map(|segment| segment.size).sum(),
            allocated,
            active: allocated + awaits,
            requested: requested.sum(),
            inactive: in_state(BlockState::Free).map(size).sum(),
            releasable: segments.iter().map(releasable).sum(),
            largest_hole: in_state(BlockState::Free)
                .map(size)
                .max()
                .unwrap_or_default(),
            n_segments: segments.len(),
            n_expandable: segments.iter().filter(|all| all.is_expandable).count(),
            n_blocks: blocks().count(),
            n_allocated_blocks: in_state(BlockState::Held).count(),
            is_inconsistent: segments.iter().any(is_inconsistent),
            owners,
            stacks: stack_totals(device, snapshot, lines, frames),
            holders: holders(in_state(BlockState::Held), &snapshot.holders),
            equal_sets: equal_sets(device, snapshot),
            failed: failed(device, lines),
            timeline: SnapshotTimeline::new(device, lives, lines),
            lifetimes: lifetimes(device, lives, lines),
        }
    }
}

/// The bytes of a segment that `empty_cache` returns: all of it if it is unused; for an expandable one, the unused
/// parts that it maps one by one.
///
/// Source: `release_blocks` and `ExpandableSegment::unmap` in `PyTorch`'s `CUDACachingAllocator.cpp`.
fn releasable(segment: &SnapshotSegment) -> Bytes {
    let mut blocks = segment.blocks.iter();
    if blocks.all(|block| block.state == BlockState::Free) {
        return segment.size;
    }
    let Some(start) = segment.address.filter(|_| segment.is_expandable) else {
        return Bytes::ZERO;
    };
    let part = if segment.is_small { 2 << 20 } else { 20 << 20 };
    let free = segment.blocks.iter();
    let free = free.filter(|block| block.state == BlockState::Free);
    let parts = free.filter_map(|block| {
        let from = block.address?.checked_sub(start)?;
        let to = from.checked_add(block.size.get())?;
        (to / part * part).checked_sub(from.checked_next_multiple_of(part)?)
    });
    parts.map(Bytes::new).sum()
}

/// The largest inactive block in no private pool, and of that stream, if it is known.
fn largest_hole(segments: &[SnapshotSegment], stream: Option<u64>) -> Bytes {
    let is_other = |of: Option<u64>| of.zip(stream).is_some_and(|(of, stream)| of != stream);
    let usable = segments
        .iter()
        .filter(|it| !it.is_private && !is_other(it.stream));
    let blocks = usable.flat_map(|segment| &segment.blocks);
    let free = blocks.filter(|block| block.state == BlockState::Free);
    free.map(|block| block.size).max().unwrap_or_default()
}

fn is_inconsistent(segment: &SnapshotSegment) -> bool {
    let sum = |is_part: fn(&SnapshotBlock) -> bool| -> Bytes {
        let parts = segment.blocks.iter().filter(|block| is_part(block));
        parts.map(|block| block.size).sum()
    };
    let allocated = sum(|block| block.state == BlockState::Held);
    let active = sum(|block| block.state != BlockState::Free);
    segment
        .stated_allocated
        .is_some_and(|stated| stated != allocated)
        || segment.stated_active.is_some_and(|stated| stated != active)
        || sum(|_| true) != segment.size
}

fn failed(device: &DeviceSnapshot, lines: &[Option<SnapshotFrame<'_>>]) -> Vec<FailedRequest> {
    let mut n_later = 0;
    let mut failed = Vec::new();
    let mut streams = device.failed_streams.iter().rev();
    for event in device.events.iter().rev() {
        match event.action {
            Some(Action::OutOfMemory) => failed.push(FailedRequest {
                wanted: event.size,
                driver_free: event.address.map(Bytes::new),
                largest_hole: largest_hole(&device.segments, streams.next().copied().flatten()),
                line: line_of(lines, event.stack).map(code_line),
                n_later,
            }),
            Some(_) => n_later += 1,
            None => (),
        }
    }
    failed.reverse();
    failed
}

/// Bytes and blocks of each line.
pub(super) struct Tallies<L> {
    of_lines: HashMap<Option<L>, (Bytes, usize)>,
}

impl<L: Copy + Ord + Hash> Tallies<L> {
    pub(super) fn new() -> Self {
        Self {
            of_lines: HashMap::new(),
        }
    }

    pub(super) fn add(&mut self, line: Option<L>, bytes: Bytes) {
        let (sum, n_blocks) = self.of_lines.entry(line).or_default();
        *sum += bytes;
        *n_blocks += 1;
    }

    /// The owners, largest first, and their sum.
    pub(super) fn largest_first(self, line_of: impl Fn(L) -> CodeLine) -> (Vec<LineOwner>, Bytes) {
        let total = self.of_lines.values().map(|(bytes, _)| *bytes).sum();
        let mut lines: Vec<_> = self.of_lines.into_iter().collect();
        lines.sort_by_key(|&(line, (bytes, _))| (Reverse(bytes), line));
        let owners = lines
            .into_iter()
            .map(|(line, (bytes, n_blocks))| LineOwner {
                line: line.map(&line_of),
                bytes,
                n_blocks,
            });
        (owners.collect(), total)
    }
}

pub(super) fn code_line(frame: SnapshotFrame<'_>) -> CodeLine {
    CodeLine {
        file: frame.file.to_owned(),
        line: frame.line,
        function: frame.name.to_owned(),
    }
}
