//! The segments of a caching allocator with the blocks in them: where reserved memory is held, and
//! where it is free.
//!
//! A process may have a hundred thousand blocks, so [`Segments::new`] keeps a bounded picture: the
//! largest segments and the largest holes stay exact, the rest is summed up.
//!
//! ```
//! use gpumem_model::segments::{Block, BlockState, Pool, Segment, Segments};
//! use gpumem_model::units::Bytes;
//!
//! let block = |state, mib| Block::new(state, Bytes::mib(mib));
//! let segment = Segment {
//!     pool: Pool::Large,
//!     stream: 0,
//!     blocks: vec![block(BlockState::Held, 12), block(BlockState::Free, 8)],
//! };
//! let found = Segments::new(vec![segment]);
//! assert_eq!(found.reserved(), Bytes::mib(20));
//! assert_eq!(found.split(), Bytes::mib(8));
//! ```

mod bounded;

pub use bounded::{MAX_BLOCKS, MAX_SEGMENTS};
use serde::Serialize;

use crate::named;
use crate::units::Bytes;

named! {
    /// Which requests a segment serves, as in `PyTorch`'s allocator.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum Pool {
        /// Those of more than 1 MiB.
        Large = "large",
        /// Those of at most 1 MiB.
        Small = "small",
        /// Those of one owner only: a captured graph, or a pool that the user made.
        Private = "private",
    }
}

impl Pool {
    /// The pool in words.
    pub const fn label(self) -> &'static str {
        match self {
            Self::Large => "requests over 1 MiB",
            Self::Small => "requests up to 1 MiB",
            Self::Private => "a private pool",
        }
    }
}

named! {
    /// The state of a block.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum BlockState {
        /// Held by a tensor.
        Held = "held",
        /// Freed by the program, but a stream may still use it.
        Awaiting = "awaiting",
        /// Free.
        Free = "free",
    }
}

/// A piece of a segment: one block, or several adjacent ones summed up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Block {
    /// Its state; of several, the state of the held ones.
    pub state: BlockState,
    /// From its first byte to its last.
    #[serde(rename = "n_bytes")]
    pub size: Bytes,
    /// How many blocks are summed up here, including the holes between them.
    pub n_blocks: u64,
    /// Part of `size`: free in holes that are too small to be kept.
    #[serde(rename = "holes_bytes")]
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

/// One allocation of the device, divided into blocks without gaps.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
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

/// The segments that are too small to be kept one by one, summed up: [`Segments::rest`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SmallSegments {
    /// How many there are.
    pub n_segments: u64,
    /// How long they are together.
    pub size: Bytes,
    /// Free bytes in segments that are partly in use.
    pub split: Bytes,
    /// Free bytes in segments where nothing is in use.
    pub unused: Bytes,
}

/// What an allocator has reserved on one device at an instant.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Segments {
    /// The largest segments.
    pub segments: Vec<Segment>,
    /// All others.
    pub rest: SmallSegments,
    /// How many blocks there were before any were summed up.
    pub n_blocks: u64,
    /// The largest free block that any request can have: none of a private pool.
    pub largest_free: Bytes,
}

impl Segments {
    /// Bytes in segments.
    pub fn reserved(&self) -> Bytes {
        let listed: Bytes = self.segments.iter().map(Segment::size).sum();
        listed + self.rest.size
    }

    /// Free bytes in partly used segments, which cannot go back to the driver.
    pub fn split(&self) -> Bytes {
        let split = self.segments.iter().filter(|segment| !segment.is_free());
        let listed: Bytes = split.map(Segment::free).sum();
        listed + self.rest.split
    }

    /// Free bytes in segments where nothing is in use.
    pub fn unused(&self) -> Bytes {
        let unused = self.segments.iter().filter(|segment| segment.is_free());
        let listed: Bytes = unused.map(Segment::size).sum();
        listed + self.rest.unused
    }

    /// Bytes that are handed out, or await a stream.
    pub fn in_use(&self) -> Bytes {
        let free = self.split() + self.unused();
        self.reserved().saturating_sub(free)
    }

    /// How many segments there are.
    pub fn n_segments(&self) -> u64 {
        self.segments.len() as u64 + self.rest.n_segments
    }
}
