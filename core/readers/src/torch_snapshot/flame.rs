//! Bytes by stack, as a tree of frames.

use std::cmp::Reverse;
use std::collections::HashMap;

use gpumem_model::units::Bytes;

use super::explorer::ExplorerFrame;

/// From which end of the stacks a [`Flame`] grows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum FlameSide {
    /// From the outermost frame, such as the script's.
    #[default]
    Outside,
    /// From the innermost frame, which requests memory: its callers come below.
    Inside,
}

/// A tree of frames with the bytes of the stacks that go through each.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Flame {
    /// The first one is all stacks together; a node comes before its children.
    pub nodes: Vec<FlameNode>,
}

/// The meaning of a node of a [`Flame`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FlamePart {
    /// Everything.
    All,
    /// A frame, by its position in [`Explorer::frames`](super::Explorer::frames).
    Frame(u32),
    /// A holder of blocks, by its position in [`Explorer::holders`](super::Explorer::holders).
    Holder(u32),
    /// Blocks whose stack was not recorded.
    NoStack,
    /// Blocks that were allocated before the trace and freed within it: their stack is unknown.
    BeforeTrace,
}

impl FlamePart {
    /// The position of its frame, if it is one.
    pub fn frame(self) -> Option<usize> {
        match self {
            Self::Frame(frame) => Some(frame as usize),
            _ => None,
        }
    }
}

/// The names of a [`Flame`]'s parts.
#[derive(Debug, Clone, Copy)]
pub struct FlameNames<'a> {
    /// The frames.
    pub frames: &'a [ExplorerFrame],
    /// The holders.
    pub holders: &'a [String],
}

/// A node of a [`Flame`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FlameNode {
    /// Its meaning.
    pub part: FlamePart,
    /// Of all stacks through it.
    pub bytes: Bytes,
    /// Of all stacks through it.
    pub n_blocks: usize,
    /// The node above; the first node is its own.
    pub parent: usize,
    /// Positions of the nodes below, the largest first.
    pub children: Vec<usize>,
}

impl Flame {
    pub(super) fn new() -> Self {
        let all = FlameNode {
            part: FlamePart::All,
            bytes: Bytes::ZERO,
            n_blocks: 0,
            parent: 0,
            children: Vec::new(),
        };
        Self { nodes: vec![all] }
    }

    /// The nodes from the first down to this one, without it.
    pub fn above(&self, node: usize) -> Vec<usize> {
        let mut path = Vec::new();
        let mut at = node;
        while at != 0 {
            at = self.nodes[at].parent;
            path.push(at);
        }
        path.reverse();
        path
    }

    fn count(&mut self, node: usize, bytes: Bytes, n_blocks: usize) {
        let node = &mut self.nodes[node];
        node.bytes += bytes;
        node.n_blocks += n_blocks;
    }
}

/// Grows a [`Flame`] stack by stack.
pub(super) struct Grower {
    flame: Flame,
    places: HashMap<(usize, FlamePart), usize>,
}

impl Grower {
    pub(super) fn new() -> Self {
        Self {
            flame: Flame::new(),
            places: HashMap::new(),
        }
    }

    /// Adds blocks with one stack: its frames from the root of the tree on.
    pub(super) fn add(
        &mut self,
        parts: impl Iterator<Item = FlamePart>,
        bytes: Bytes,
        n_blocks: usize,
    ) {
        let mut at = 0;
        self.flame.count(at, bytes, n_blocks);
        for part in parts {
            let n_known = self.flame.nodes.len();
            let nodes = &mut self.flame.nodes;
            let next = *self.places.entry((at, part)).or_insert_with(|| {
                nodes.push(FlameNode {
                    part,
                    bytes: Bytes::ZERO,
                    n_blocks: 0,
                    parent: at,
                    children: Vec::new(),
                });
                nodes.len() - 1
            });
            if self.flame.nodes.len() > n_known {
                self.flame.nodes[at].children.push(next);
            }
            at = next;
            self.flame.count(at, bytes, n_blocks);
        }
    }

    /// Bytes of all stacks so far.
    pub(super) fn bytes(&self) -> Bytes {
        self.flame.nodes[0].bytes
    }

    pub(super) fn grown(self) -> Flame {
        let mut flame = self.flame;
        let sizes: Vec<Bytes> = flame.nodes.iter().map(|node| node.bytes).collect();
        for node in &mut flame.nodes {
            node.children.sort_by_key(|&child| Reverse(sizes[child]));
        }
        flame
    }
}
