//! A model of a caching allocator, for the simulated device.

use thiserror::Error;

use crate::units::Bytes;

/// A block that is held.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BlockId(pub u64);

/// The device cannot serve a request, even after the cache was flushed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error(
    "out of memory: tried to allocate {wanted}; {free} of {capacity} free, {allocated} allocated, {reserved} reserved"
)]
pub struct OutOfMemory {
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

/// What the allocator counts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct AllocatorStats {
    /// In blocks that are held.
    pub allocated: Bytes,
    /// Highest allocated since the last reset.
    pub peak_allocated: Bytes,
    /// In segments.
    pub reserved: Bytes,
    /// Highest reserved since the last reset.
    pub peak_reserved: Bytes,
    /// In free blocks of segments that are partly used.
    pub inactive_split: Bytes,
    /// The largest free block.
    pub largest_free: Bytes,
    /// Allocations that succeeded only after the cache was flushed.
    pub n_retries: u64,
    /// Out-of-memory errors.
    pub n_ooms: u64,
    /// Segments held.
    pub n_segments: u64,
}

/// A caching allocator over a device of fixed size.
#[derive(Debug, Clone)]
pub struct CachingAllocator {
    capacity: Bytes,
}

impl CachingAllocator {
    /// An empty device of that size.
    pub fn new(capacity: Bytes) -> Self {
        Self { capacity }
    }

    /// The device's size.
    pub fn capacity(&self) -> Bytes {
        self.capacity
    }

    /// Takes a block of at least `size`; zero bytes take no block of their own but the smallest.
    pub fn allocate(&mut self, size: Bytes) -> Result<BlockId, OutOfMemory> {
        let _ = size;
        unimplemented!("allocator")
    }

    /// Gives a block back to the cache. An id that is not held is ignored.
    pub fn free(&mut self, block: BlockId) {
        let _ = block;
        unimplemented!("allocator")
    }

    /// Gives free segments back to the device; how much that was.
    pub fn empty_cache(&mut self) -> Bytes {
        unimplemented!("allocator")
    }

    /// Sets the peaks to the present levels.
    pub fn reset_peaks(&mut self) {
        unimplemented!("allocator")
    }

    /// What the allocator counts now.
    pub fn stats(&self) -> AllocatorStats {
        unimplemented!("allocator")
    }
}
