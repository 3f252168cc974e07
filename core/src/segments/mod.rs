//! The segments of a caching allocator with the blocks in them: where what is reserved is
//! held, and where it is free.
//!
//! A process may have a hundred thousand blocks. What is kept of them is [`bounded`](Segments::new):
//! the largest segments and the largest holes stay as they are.

mod bounded;
#[cfg(test)]
mod tests;

use crate::units::Bytes;

/// Which requests a segment serves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Pool {
    /// Those of more than 1 MiB.
    Large,
    /// Those of at most 1 MiB.
    Small,
    /// Those of one owner alone: a captured graph, a pool of the user's.
    Private,
}

impl Pool {
    /// Every pool.
    pub const ALL: [Self; 3] = [Self::Large, Self::Small, Self::Private];

    /// As people read it.
    pub const fn words(self) -> &'static str {
        match self {
            Self::Large => "requests over 1 MiB",
            Self::Small => "requests up to 1 MiB",
            Self::Private => "a private pool",
        }
    }
}

/// What a block is to its allocator.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum BlockState {
    /// Held by a tensor.
    Held,
    /// Let go of, but a stream may still use it.
    Awaiting,
    /// Free.
    Free,
}

impl BlockState {
    /// Every state.
    pub const ALL: [Self; 3] = [Self::Held, Self::Awaiting, Self::Free];
}

/// A part of a segment: one block, or several beside each other that are merged into one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Block {
    /// What it is; of several, what the held ones are.
    pub state: BlockState,
    /// From its first byte to its last.
    pub size: Bytes,
    /// How many blocks are merged here; holes between them count.
    pub n_blocks: u64,
    /// Of `size`, what is free in holes that are too small to be listed.
    pub holes: Bytes,
}

impl Block {
    /// One block.
    pub const fn new(state: BlockState, size: Bytes) -> Self {
        Self {
            state,
            size,
            n_blocks: 1,
            holes: Bytes::ZERO,
        }
    }

    /// A block that can be handed out.
    pub fn is_free(&self) -> bool {
        self.state == BlockState::Free
    }

    /// What of it is free.
    pub fn free(&self) -> Bytes {
        if self.is_free() {
            self.size
        } else {
            self.holes
        }
    }
}

/// One allocation of the device, cut into blocks without gaps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Segment {
    /// Which requests it serves.
    pub pool: Pool,
    /// The stream whose requests it serves, numbered from 0 in the order found.
    pub stream: u32,
    /// Its blocks by address.
    pub blocks: Vec<Block>,
}

impl Segment {
    /// How long it is.
    pub fn size(&self) -> Bytes {
        self.blocks.iter().map(|block| block.size).sum()
    }

    /// What of it is free.
    pub fn free(&self) -> Bytes {
        self.blocks.iter().map(Block::free).sum()
    }

    /// Nothing in it is in use: it can be given back.
    pub fn is_free(&self) -> bool {
        self.blocks.iter().all(Block::is_free)
    }
}

/// Segments that are too small to be listed, summed up.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Rest {
    /// How many.
    pub n_segments: u64,
    /// How long they are together.
    pub size: Bytes,
    /// What is free beside blocks in use.
    pub split: Bytes,
    /// What is free in segments in which nothing is in use.
    pub unused: Bytes,
}

/// What an allocator holds of one device at an instant.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Segments {
    /// The largest segments.
    pub segments: Vec<Segment>,
    /// All others.
    pub rest: Rest,
    /// How many blocks there were before any were merged.
    pub n_blocks: u64,
    /// The largest free block that everybody's requests can have: none of a private pool.
    pub largest_free: Bytes,
}

impl Segments {
    /// Bytes in segments.
    pub fn reserved(&self) -> Bytes {
        let listed: Bytes = self.segments.iter().map(Segment::size).sum();
        listed + self.rest.size
    }

    /// Free beside blocks in use: it cannot be given back.
    pub fn split(&self) -> Bytes {
        let split = self.segments.iter().filter(|segment| !segment.is_free());
        let listed: Bytes = split.map(Segment::free).sum();
        listed + self.rest.split
    }

    /// Free in segments in which nothing is in use.
    pub fn unused(&self) -> Bytes {
        let unused = self.segments.iter().filter(|segment| segment.is_free());
        let listed: Bytes = unused.map(Segment::size).sum();
        listed + self.rest.unused
    }

    /// Handed out, or awaiting a stream.
    pub fn in_use(&self) -> Bytes {
        let free = self.split() + self.unused();
        self.reserved().saturating_sub(free)
    }

    /// How many segments there are.
    pub fn n_segments(&self) -> u64 {
        self.segments.len() as u64 + self.rest.n_segments
    }
}
