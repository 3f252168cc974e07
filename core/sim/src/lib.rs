//! A model of `PyTorch`'s caching allocator, for the simulated device.
//!
//! Sizes are rounded to 512 B. Requests of at most 1 MiB come from a small pool of 2 MiB segments,
//! larger ones from a large pool of 20 MiB segments, or from 10 MiB on of their own size rounded to
//! 2 MiB. The best fitting free block is split if the rest is worth keeping, and merged with its free
//! neighbours when it is freed. When the device is full, the cache is flushed and the request tried once
//! more.
//!
//! The sizes and the split rule are those of `c10/cuda/CUDACachingAllocator`. Streams, the
//! garbage-collection threshold and expandable segments are not modelled.
//!
//! ```
//! use gpumem_sim::CachingAllocator;
//! use gpumem_model::units::Bytes;
//!
//! let mut device = CachingAllocator::new(Bytes::gib(1));
//! let block = device.allocate(Bytes::mib(420)).unwrap();
//! device.free(block);
//! assert_eq!(device.stats().allocated, Bytes::ZERO);
//! assert_eq!(device.stats().reserved, Bytes::mib(420));
//! assert_eq!(device.empty_cache(), Bytes::mib(420));
//! ```
#![forbid(unsafe_code)]

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::{iter, mem};

use thiserror::Error;

use gpumem_model::segments::{self, BlockState, Pool, Segments};
use gpumem_model::trace::Action;
use gpumem_model::units::Bytes;

/// Every block is a multiple of this; the small pool splits off any rest of this size.
const GRANULE: u64 = 512;
/// The largest request of the small pool; a rest in the large pool must exceed it.
const SMALL_REQUEST: u64 = 1 << 20;
const SMALL_SEGMENT: u64 = 2 << 20;
const LARGE_SEGMENT: u64 = 20 << 20;
/// From this size on a request gets a segment of its own size.
const OWN_SEGMENT_REQUEST: u64 = 10 << 20;
const OWN_SEGMENT_GRANULE: u64 = 2 << 20;

/// A held block, from [`CachingAllocator::allocate`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BlockId(pub u64);

#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error(
    "out of memory: tried to allocate {wanted}; {free} of {capacity} free, {allocated} allocated, {reserved} reserved"
)]
/// The device cannot serve a request, even after the cache was flushed. Sizes are bytes.
pub struct SimOutOfMemory {
    /// The request, rounded.
    pub wanted: Bytes,
    /// Free in the device.
    pub free: Bytes,
    /// The device's size.
    pub capacity: Bytes,
    /// In blocks that are held.
    pub allocated: Bytes,
    /// In segments.
    pub reserved: Bytes,
}

/// The allocator's counters, from [`CachingAllocator::stats`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct AllocatorStats {
    /// In blocks that are held.
    pub allocated: Bytes,
    /// Highest allocated since the last reset.
    pub peak_allocated: Bytes,
    /// Requested bytes of it, before rounding to blocks.
    pub requested: Bytes,
    /// Everything ever allocated, freed or not.
    pub total_allocated: Bytes,
    /// In segments.
    pub reserved: Bytes,
    /// Highest reserved since the last reset.
    pub peak_reserved: Bytes,
    /// Free bytes in partly used segments.
    pub inactive_split: Bytes,
    /// The largest free block.
    pub largest_free: Bytes,
    /// Requests for which the cache was flushed, whether they then succeeded or not.
    pub n_retries: u64,
    /// Out-of-memory errors.
    pub n_ooms: u64,
    /// Resets of the peaks.
    pub n_peak_resets: u64,
    /// Segments held.
    pub n_segments: u64,
    /// Blocks that are held: allocations minus frees.
    pub n_blocks: u64,
}

/// One action of the allocator; a history consists of these.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AllocatorChange {
    /// What was done.
    pub action: Action,
    /// The first byte of the block or segment; of a request that failed, what was free.
    pub address: u64,
    /// Of the block or segment; of a request that failed, what it wanted.
    pub size: Bytes,
}

/// A piece of a [`SimSegment`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SimBlock {
    /// Its first byte.
    pub address: u64,
    /// How long it is.
    pub size: Bytes,
    /// The id of a held block; `None` if it is free.
    pub held_as: Option<BlockId>,
}

/// One allocation of the device, divided into blocks without gaps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SimSegment {
    /// Its first byte.
    pub address: u64,
    /// How long it is.
    pub size: Bytes,
    /// Which requests it serves.
    pub pool: Pool,
    /// Its blocks by address.
    pub blocks: Vec<SimBlock>,
}

/// The segment that a piece belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Home {
    address: u64,
    size: u64,
    pool: Pool,
}

#[derive(Debug, Clone, Copy)]
struct SegmentPiece {
    size: u64,
    home: Home,
    held_as: Option<BlockId>,
}

/// Where a held block is, and how much of it was requested.
#[derive(Debug, Clone, Copy)]
struct LiveBlock {
    address: u64,
    requested: u64,
}

/// Free pieces by size, then address: the first that is large enough is the best fit.
type FreeList = BTreeSet<(u64, u64)>;

/// A caching allocator over a device of fixed size.
#[derive(Debug, Clone, Default)]
pub struct CachingAllocator {
    capacity: Bytes,
    pieces: BTreeMap<u64, SegmentPiece>,
    free_small: FreeList,
    free_large: FreeList,
    held: HashMap<BlockId, LiveBlock>,
    next_address: u64,
    next_id: u64,
    allocated: u64,
    peak_allocated: u64,
    requested: u64,
    total_allocated: u64,
    reserved: u64,
    peak_reserved: u64,
    inactive_split: u64,
    n_retries: u64,
    n_ooms: u64,
    n_peak_resets: u64,
    n_segments: u64,
    /// What was done since it was last taken; `None` while nobody wants to know.
    log: Option<Vec<AllocatorChange>>,
}

impl CachingAllocator {
    /// An empty device of that size.
    pub fn new(capacity: Bytes) -> Self {
        Self {
            capacity,
            next_address: OWN_SEGMENT_GRANULE,
            ..Self::default()
        }
    }

    /// Starts or stops recording changes for [`CachingAllocator::take_log`].
    pub fn keep_log(&mut self, keep: bool) {
        self.log = keep.then(Vec::new);
    }

    /// The changes since the last call, in order.
    pub fn take_log(&mut self) -> Vec<AllocatorChange> {
        self.log.as_mut().map(mem::take).unwrap_or_default()
    }

    /// The device's size.
    pub fn capacity(&self) -> Bytes {
        self.capacity
    }

    /// Allocates a block of at least `size`; zero bytes take the smallest block.
    ///
    /// # Errors
    ///
    /// [`SimOutOfMemory`] if the device is full even without its cache.
    pub fn allocate(&mut self, size: Bytes) -> Result<BlockId, SimOutOfMemory> {
        let wanted = round_up(size.get().max(1), GRANULE);
        let address = match self.find(wanted) {
            Some(address) => address,
            None => self.flush_and_find(wanted)?,
        };
        Ok(self.hold(address, wanted, size.get()))
    }

    /// Returns a block to the cache. An unknown id is ignored.
    pub fn free(&mut self, block: BlockId) {
        let Some(LiveBlock {
            mut address,
            requested,
        }) = self.held.remove(&block)
        else {
            return;
        };
        self.requested -= requested;
        let mut piece = self
            .pieces
            .remove(&address)
            .expect("a held block is a piece");
        self.allocated -= piece.size;
        self.note(Action::FreeRequested, address, piece.size);
        self.note(Action::FreeCompleted, address, piece.size);
        if let Some((next, size)) = self.free_neighbour(address + piece.size, piece.home) {
            self.take_free(next);
            piece.size += size;
        }
        if let Some((before, size)) = self.free_piece_before(address, piece.home) {
            self.take_free(before);
            address = before;
            piece.size += size;
        }
        self.put_free(address, piece.size, piece.home);
    }

    /// Returns free segments to the device, and tells how many bytes those were.
    pub fn empty_cache(&mut self) -> Bytes {
        let whole: Vec<(u64, u64)> = self
            .free_small
            .iter()
            .chain(&self.free_large)
            .filter(|(size, address)| self.pieces[address].home.size == *size)
            .map(|(size, address)| (*address, *size))
            .collect();
        let mut given_back = 0;
        for (address, size) in whole {
            self.take_free(address);
            self.note(Action::SegmentFree, address, size);
            self.n_segments -= 1;
            given_back += size;
        }
        self.reserved -= given_back;
        Bytes::new(given_back)
    }

    /// Sets the peaks to the current levels.
    pub fn reset_peaks(&mut self) {
        self.n_peak_resets += 1;
        self.peak_allocated = self.allocated;
        self.peak_reserved = self.reserved;
    }

    /// The counters now.
    pub fn stats(&self) -> AllocatorStats {
        let largest = |list: &FreeList| list.last().map_or(0, |(size, _)| *size);
        AllocatorStats {
            allocated: Bytes::new(self.allocated),
            peak_allocated: Bytes::new(self.peak_allocated),
            requested: Bytes::new(self.requested),
            total_allocated: Bytes::new(self.total_allocated),
            reserved: Bytes::new(self.reserved),
            peak_reserved: Bytes::new(self.peak_reserved),
            inactive_split: Bytes::new(self.inactive_split),
            largest_free: Bytes::new(largest(&self.free_small).max(largest(&self.free_large))),
            n_retries: self.n_retries,
            n_ooms: self.n_ooms,
            n_peak_resets: self.n_peak_resets,
            n_segments: self.n_segments,
            n_blocks: self.held.len() as u64,
        }
    }

    /// The segments by address, each with its blocks: what a map of the memory shows.
    pub fn segments(&self) -> impl Iterator<Item = SimSegment> + '_ {
        let mut pieces = self.pieces.iter().peekable();
        iter::from_fn(move || {
            let home = pieces.peek()?.1.home;
            let own = iter::from_fn(|| pieces.next_if(|(_, piece)| piece.home == home));
            Some(SimSegment {
                address: home.address,
                size: Bytes::new(home.size),
                pool: home.pool,
                blocks: own
                    .map(|(address, piece)| SimBlock {
                        address: *address,
                        size: Bytes::new(piece.size),
                        held_as: piece.held_as,
                    })
                    .collect(),
            })
        })
    }

    /// The segments without addresses, as they are recorded.
    pub fn map(&self) -> Segments {
        let block = |block: SimBlock| {
            let state = if block.held_as.is_some() {
                BlockState::Held
            } else {
                BlockState::Free
            };
            segments::Block::new(state, block.size)
        };
        let segment = |segment: SimSegment| segments::Segment {
            pool: segment.pool,
            stream: 0,
            blocks: segment.blocks.into_iter().map(block).collect(),
        };
        Segments::new(self.segments().map(segment).collect())
    }

    /// The best fitting free piece, from the cache or else from a new segment.
    fn find(&mut self, wanted: u64) -> Option<u64> {
        let cached = self.free_list(pool_for(wanted)).range((wanted, 0)..).next();
        match cached {
            Some((_, address)) => Some(*address),
            None => self.reserve_segment(wanted),
        }
    }

    fn flush_and_find(&mut self, wanted: u64) -> Result<u64, SimOutOfMemory> {
        self.empty_cache();
        self.n_retries += 1;
        self.find(wanted).ok_or_else(|| {
            self.n_ooms += 1;
            let free = self.capacity.saturating_sub(Bytes::new(self.reserved));
            self.note(Action::OutOfMemory, free.get(), wanted);
            SimOutOfMemory {
                wanted: Bytes::new(wanted),
                free,
                capacity: self.capacity,
                allocated: Bytes::new(self.allocated),
                reserved: Bytes::new(self.reserved),
            }
        })
    }

    fn reserve_segment(&mut self, wanted: u64) -> Option<u64> {
        let size = segment_size(wanted);
        if size > self.capacity.get() - self.reserved {
            return None;
        }
        let address = self.next_address;
        // Addresses are never used again, so a segment's neighbour is never taken for its own.
        self.next_address = address.checked_add(size)?;
        let pool = pool_for(wanted);
        self.put_free(
            address,
            size,
            Home {
                address,
                size,
                pool,
            },
        );
        self.reserved += size;
        self.peak_reserved = self.peak_reserved.max(self.reserved);
        self.n_segments += 1;
        self.note(Action::SegmentAlloc, address, size);
        Some(address)
    }

    fn hold(&mut self, address: u64, wanted: u64, requested: u64) -> BlockId {
        let found = self.take_free(address);
        let rest = found.size - wanted;
        let size = if splits_off(found.home.pool, rest) {
            self.put_free(address + wanted, rest, found.home);
            wanted
        } else {
            found.size
        };
        let id = BlockId(self.next_id);
        self.next_id += 1;
        self.held.insert(id, LiveBlock { address, requested });
        let piece = SegmentPiece {
            size,
            home: found.home,
            held_as: Some(id),
        };
        self.pieces.insert(address, piece);
        self.allocated += size;
        self.requested += requested;
        self.total_allocated += size;
        self.peak_allocated = self.peak_allocated.max(self.allocated);
        self.note(Action::Alloc, address, size);
        id
    }

    fn note(&mut self, action: Action, address: u64, size: u64) {
        if let Some(log) = &mut self.log {
            log.push(AllocatorChange {
                action,
                address,
                size: Bytes::new(size),
            });
        }
    }

    fn put_free(&mut self, address: u64, size: u64, home: Home) {
        let piece = SegmentPiece {
            size,
            home,
            held_as: None,
        };
        self.pieces.insert(address, piece);
        self.free_list(home.pool).insert((size, address));
        if size < home.size {
            self.inactive_split += size;
        }
    }

    fn take_free(&mut self, address: u64) -> SegmentPiece {
        let piece = self
            .pieces
            .remove(&address)
            .expect("a free block is a piece");
        self.free_list(piece.home.pool)
            .remove(&(piece.size, address));
        if piece.size < piece.home.size {
            self.inactive_split -= piece.size;
        }
        piece
    }

    fn free_list(&mut self, pool: Pool) -> &mut FreeList {
        match pool {
            Pool::Small => &mut self.free_small,
            _ => &mut self.free_large,
        }
    }

    fn free_neighbour(&self, address: u64, home: Home) -> Option<(u64, u64)> {
        let piece = self.pieces.get(&address)?;
        (piece.home == home && piece.held_as.is_none()).then_some((address, piece.size))
    }

    fn free_piece_before(&self, address: u64, home: Home) -> Option<(u64, u64)> {
        let (before, _) = self.pieces.range(..address).next_back()?;
        self.free_neighbour(*before, home)
    }
}

const fn pool_for(rounded: u64) -> Pool {
    if rounded <= SMALL_REQUEST {
        Pool::Small
    } else {
        Pool::Large
    }
}

/// Whether a rest of that size becomes its own block.
const fn splits_off(pool: Pool, rest: u64) -> bool {
    match pool {
        Pool::Small => rest >= GRANULE,
        _ => rest > SMALL_REQUEST,
    }
}

/// Saturates: what cannot be rounded cannot be served either.
const fn round_up(n: u64, granule: u64) -> u64 {
    n.div_ceil(granule).saturating_mul(granule)
}

const fn segment_size(wanted: u64) -> u64 {
    match wanted {
        0..=SMALL_REQUEST => SMALL_SEGMENT,
        _ if wanted < OWN_SEGMENT_REQUEST => LARGE_SEGMENT,
        _ => round_up(wanted, OWN_SEGMENT_GRANULE),
    }
}

#[cfg(test)]
mod tests;
