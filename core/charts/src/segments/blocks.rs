//! The blocks of a bar; those too small to be seen are joined.

use super::{Bar, BlockStyle, DrawnBlock, title};
use gpumem_model::segments::{Block, BlockState, Pool, Segment, SmallSegments};
use gpumem_model::units::{Bytes, Units};

/// Parts of at least this share of a shelf are visible; smaller neighbours are joined.
const N_SEEN: u64 = 320;

/// The blocks of a segment; marks the largest free block, once.
pub(super) fn blocks(
    segment: &Segment,
    scale: Bytes,
    (largest, is_marked): (Bytes, &mut bool),
    units: Units,
) -> Vec<DrawnBlock> {
    let least = Bytes::new(scale.get() / N_SEEN);
    let is_unused = segment.is_free();
    let whole = title(segment, units);
    let mut groups: Vec<BlockGroup> = Vec::new();
    for block in &segment.blocks {
        let is_largest = !*is_marked
            && block.is_free()
            && block.size == largest
            && segment.pool != Pool::Private;
        *is_marked |= is_largest;
        let group = BlockGroup::new(block, is_largest);
        match groups.last_mut() {
            Some(last) if last.takes(&group, least) => last.add(&group),
            _ => groups.push(group),
        }
    }
    let size = segment.size();
    let block = |group: &BlockGroup| DrawnBlock {
        share: share(group.size, size),
        look: group.look(is_unused),
        is_largest: group.is_largest,
        words: format!("{} · {whole}", group.describe(is_unused, units)),
    };
    groups.iter().map(block).collect()
}

/// Several segments as bars that tell no block from another; as many as shelves are needed.
pub(super) fn lump(
    segments: &[&Segment],
    rest: &SmallSegments,
    scale: Bytes,
    units: Units,
) -> Vec<Bar> {
    let n_segments = segments.len() as u64 + rest.n_segments;
    if n_segments == 0 {
        return Vec::new();
    }
    let (unused, used): (Vec<&Segment>, Vec<&Segment>) =
        segments.iter().partition(|segment| segment.is_free());
    let size = |of: &[&Segment]| of.iter().map(|segment| segment.size()).sum::<Bytes>();
    let unused = size(&unused) + rest.unused;
    let split = used.iter().map(|it| it.free()).sum::<Bytes>() + rest.split;
    let all = size(segments) + rest.size;
    let in_use = all.saturating_sub(unused + split);
    let most = segments.iter().map(|segment| segment.size()).max();
    let upto = most.map_or_else(String::new, |most| {
        format!(" of at most {}", units.size(most))
    });
    let together = units.size(all);
    let words = format!("{n_segments} small segments{upto}, {together} together");
    let parts = [
        (BlockStyle::Held, in_use, "in use"),
        (BlockStyle::Hole, split, "free between blocks in use"),
        (BlockStyle::Unused, unused, "in segments that are all free"),
    ];
    let there = parts.iter().filter(|(_, part, _)| *part > Bytes::ZERO);
    let blocks: Vec<DrawnBlock> = there
        .map(|(look, part, what)| DrawnBlock {
            share: share(*part, all),
            look: *look,
            is_largest: false,
            words: format!("{} {what} · {words}", units.size(*part)),
        })
        .collect();
    let n_bars = share(all, scale).ceil().max(1.0);
    let bar = Bar {
        share: share(all, scale) / n_bars,
        words,
        blocks,
    };
    vec![bar; n_bars as usize]
}

fn share(part: Bytes, whole: Bytes) -> f64 {
    part.as_f64() / whole.as_f64().max(1.0)
}

/// Blocks that are drawn as one.
struct BlockGroup {
    size: Bytes,
    free: Bytes,
    n_blocks: u64,
    is_awaiting: bool,
    is_largest: bool,
}

impl BlockGroup {
    fn new(block: &Block, is_largest: bool) -> Self {
        Self {
            size: block.size,
            free: block.free(),
            n_blocks: block.n_blocks,
            is_awaiting: block.state == BlockState::Awaiting,
            is_largest,
        }
    }

    /// Whether both are too small to be seen, and neither is marked.
    fn takes(&self, next: &Self, least: Bytes) -> bool {
        (self.size < least && next.size < least) && !self.is_largest && !next.is_largest
    }

    fn add(&mut self, next: &Self) {
        self.is_awaiting &= next.is_awaiting;
        self.size += next.size;
        self.free += next.free;
        self.n_blocks += next.n_blocks;
    }

    fn look(&self, is_unused: bool) -> BlockStyle {
        match self.free {
            _ if is_unused => BlockStyle::Unused,
            free if free == self.size => BlockStyle::Hole,
            Bytes::ZERO if self.is_awaiting => BlockStyle::Awaiting,
            Bytes::ZERO => BlockStyle::Held,
            _ => BlockStyle::Mixed,
        }
    }

    fn describe(&self, is_unused: bool, units: Units) -> String {
        let size = units.size(self.size);
        let largest = if self.is_largest {
            ", the largest free piece"
        } else {
            ""
        };
        let several = match self.n_blocks {
            1 => String::new(),
            n => format!(" in {n} blocks"),
        };
        match self.look(is_unused) {
            BlockStyle::Held => format!("{size} held{several}"),
            BlockStyle::Awaiting => format!("{size} let go of, awaiting a stream{several}"),
            BlockStyle::Mixed => {
                let held = units.size(self.size.saturating_sub(self.free));
                format!("{held} held and {} free{several}", units.size(self.free))
            }
            BlockStyle::Hole => format!("{size} free between blocks in use{largest}"),
            BlockStyle::Unused => format!("{size} free, as all of its segment{largest}"),
        }
    }
}
