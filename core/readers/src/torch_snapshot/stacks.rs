//! Live blocks at the snapshot, by stack.

use std::collections::HashMap;
use std::sync::Arc;

use serde::Serialize;

use crate::code_line::CodeLine;
use gpumem_model::segments::BlockState;
use gpumem_model::units::Bytes;

use super::lines::{FrameRank, line_of, rank};
use super::model::{DeviceSnapshot, SnapshotFrame, SnapshotStackIdx, TorchSnapshot};
use super::summary::code_line;

/// The live blocks of one stack at the snapshot.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct StackTotal {
    /// Its frames in user code, innermost first: if there are none, its [line](super::LineOwner::line); empty if no
    /// stack was recorded.
    pub frames: Vec<Arc<CodeLine>>,
    /// Their bytes.
    pub bytes: Bytes,
    /// Number of blocks.
    pub n_blocks: usize,
}

/// Each frame of some stacks once.
#[derive(Default)]
pub(super) struct Frames<'t> {
    all: Vec<Arc<CodeLine>>,
    places: HashMap<SnapshotFrame<'t>, u32>,
}

impl<'t> Frames<'t> {
    fn place(&mut self, frame: SnapshotFrame<'t>) -> u32 {
        *self.places.entry(frame).or_insert_with(|| {
            self.all.push(Arc::new(code_line(frame)));
            self.all.len() as u32 - 1
        })
    }

    fn at(&self, places: &[u32]) -> Vec<Arc<CodeLine>> {
        let lines = places.iter().filter_map(|&at| self.all.get(at as usize));
        lines.cloned().collect()
    }
}

/// The totals of a device, largest first.
pub(super) fn stack_totals<'t>(
    device: &DeviceSnapshot,
    snapshot: &TorchSnapshot<'t>,
    lines: &[Option<SnapshotFrame<'t>>],
    known: &mut Frames<'t>,
) -> Vec<StackTotal> {
    let mut of_stacks: HashMap<Option<SnapshotStackIdx>, (Bytes, usize)> = HashMap::new();
    let blocks = device.segments.iter().flat_map(|segment| &segment.blocks);
    for block in blocks.filter(|block| block.state == BlockState::Held) {
        let (bytes, n_blocks) = of_stacks.entry(block.stack).or_default();
        *bytes += block.size;
        *n_blocks += 1;
    }
    let mut of_stacks: Vec<_> = of_stacks.into_iter().collect();
    of_stacks.sort_unstable_by_key(|(stack, _)| *stack);
    // Stacks that differ only in installed packages are one.
    let mut totals: HashMap<Vec<u32>, (Bytes, usize)> = HashMap::new();
    for (stack, (bytes, n_blocks)) in of_stacks {
        let all = stack.and_then(|idx| snapshot.stacks.get(idx.0 as usize));
        let all = all.into_iter().flatten();
        let users = all.filter_map(|&at| snapshot.frames.get(at as usize));
        let users = users.filter(|frame| rank(frame) == FrameRank::User);
        let mut frames: Vec<u32> = users.map(|frame| known.place(*frame)).collect();
        if frames.is_empty() {
            frames.extend(line_of(lines, stack).map(|frame| known.place(frame)));
        }
        let total = totals.entry(frames).or_default();
        total.0 += bytes;
        total.1 += n_blocks;
    }
    let mut totals: Vec<_> = totals.into_iter().collect();
    totals.sort_by(|(a, (a_bytes, _)), (b, (b_bytes, _))| b_bytes.cmp(a_bytes).then(a.cmp(b)));
    let totals = totals.into_iter();
    totals
        .map(|(frames, (bytes, n_blocks))| StackTotal {
            frames: known.at(&frames),
            bytes,
            n_blocks,
        })
        .collect()
}
