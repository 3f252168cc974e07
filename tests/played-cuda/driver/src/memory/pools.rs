//! Pools of stream-ordered allocations, which keep what is released up to a threshold.

use std::ffi::{c_int, c_void};

use played_machine::{put, read};

use super::areas::{Kind, Wanted};
use crate::code::Code;
use crate::graphs::NodeKind;
use crate::handles::Handle;
use crate::process::{Process, process};

/// In what a pool grows and shrinks.
const STEP: u64 = 32 << 20;

/// A pool.
#[derive(Debug, Default)]
pub(crate) struct Pool {
    ordinal: c_int,
    /// Unused bytes that it may keep.
    threshold: u64,
    used: u64,
    used_high: u64,
    reserved: u64,
    reserved_high: u64,
    /// How it may reuse memory: the attributes 1 to 3.
    reuse: [c_int; 4],
}

/// `CUmemPool_attribute`.
const RELEASE_THRESHOLD: c_int = 4;
const RESERVED: c_int = 5;
const RESERVED_HIGH: c_int = 6;
const USED: c_int = 7;
const USED_HIGH: c_int = 8;

impl Pool {
    /// The bytes that it needs from the device for `n_bytes` more.
    pub(super) fn n_missing(&self, n_bytes: u64) -> u64 {
        let n_missing = (self.used + n_bytes).saturating_sub(self.reserved);
        n_missing.next_multiple_of(STEP)
    }

    pub(super) fn grow(&mut self, n_reserved: u64, n_used: u64) {
        self.reserved += n_reserved;
        self.used += n_used;
        self.reserved_high = self.reserved_high.max(self.reserved);
        self.used_high = self.used_high.max(self.used);
    }

    /// Takes bytes back; what the device gets of them.
    pub(super) fn shrink(&mut self, n_used: u64) -> u64 {
        self.used -= n_used;
        self.trim(self.threshold)
    }

    fn trim(&mut self, n_kept: u64) -> u64 {
        let kept = self.used.max(n_kept).checked_next_multiple_of(STEP);
        let given = self.reserved.saturating_sub(kept.unwrap_or(u64::MAX));
        self.reserved -= given;
        given
    }
}

/// The handle of the pool that a device has of itself, below those that somebody made.
fn default_pool(ordinal: c_int) -> Handle {
    0x200 + ordinal as Handle
}

impl Process {
    fn default_pool(&mut self, ordinal: c_int) -> Result<Handle, Code> {
        self.device(ordinal)?;
        let handle = default_pool(ordinal);
        if self.pools.get(handle).is_err() {
            let pool = Pool {
                ordinal,
                ..Pool::default()
            };
            self.pools.put(handle, pool);
        }
        Ok(handle)
    }
}

calls! {
    cuDeviceGetDefaultMemPool(_call, pool: *mut Handle, ordinal: c_int) {
        Ok(put(pool, process()?.default_pool(ordinal)?)?)
    }

    cuDeviceGetMemPool(_call, pool: *mut Handle, ordinal: c_int) {
        Ok(put(pool, process()?.default_pool(ordinal)?)?)
    }

    cuDeviceSetMemPool(_call, _ordinal: c_int, pool: Handle) {
        process()?.pools.get(pool).map(|_| ())
    }

    cuMemPoolTrimTo(_call, pool: Handle, n_kept: usize) {
        let mut process = process()?;
        let pool = process.pools.get_mut(pool)?;
        let (given, ordinal) = (pool.trim(n_kept as u64), pool.ordinal);
        process.device(ordinal)?.give(given);
        Ok(())
    }

    cuMemPoolSetAccess(_call, pool: Handle, _access: usize, _n: usize) {
        process()?.pools.get(pool).map(|_| ())
    }

    cuMemPoolSetAttribute(_call, pool: Handle, which: c_int, figure: *const c_void) {
        let mut process = process()?;
        let pool = process.pools.get_mut(pool)?;
        match which {
            1..=3 => pool.reuse[which as usize] = read(figure.cast())?,
            RELEASE_THRESHOLD => pool.threshold = read(figure.cast())?,
            RESERVED_HIGH => pool.reserved_high = pool.reserved,
            USED_HIGH => pool.used_high = pool.used,
            _ => return Err(Code::INVALID_VALUE),
        }
        Ok(())
    }

    /// The file may say other figures: `gpu0.pool_used_mib`.
    cuMemPoolGetAttribute(call, pool: Handle, which: c_int, figure: *mut c_void) {
        let process = process()?;
        let pool = process.pools.get(pool)?;
        let device = process.device(pool.ordinal)?;
        let scripted = |key: &str| device.n_bytes(&call.state, key);
        let n_bytes = match which {
            1..=3 => return Ok(put(figure.cast(), pool.reuse[which as usize])?),
            RELEASE_THRESHOLD => pool.threshold,
            RESERVED => scripted("pool_reserved_mib").unwrap_or(pool.reserved),
            RESERVED_HIGH => pool.reserved_high,
            USED => scripted("pool_used_mib").unwrap_or(pool.used),
            USED_HIGH => pool.used_high,
            _ => return Err(Code::INVALID_VALUE),
        };
        Ok(put(figure.cast(), call.size(n_bytes))?)
    }

    cuMemAllocAsync(call, pointer: *mut usize, n_bytes: usize, stream: Handle) {
        let mut process = process()?;
        let ordinal = process.context(0)?.ordinal;
        let pool = Some(process.default_pool(ordinal)?);
        process.enqueue(stream, NodeKind::ALLOCATION)?;
        let wanted = Wanted { n_bytes, kind: Kind::Device, ordinal, pool };
        Ok(put(pointer, process.allocate(&call.state, &wanted)?)?)
    }

    cuMemAllocFromPoolAsync(call, pointer: *mut usize, n_bytes: usize, pool: Handle, stream: Handle) {
        let mut process = process()?;
        let ordinal = process.pools.get(pool)?.ordinal;
        process.enqueue(stream, NodeKind::ALLOCATION)?;
        let wanted = Wanted { n_bytes, kind: Kind::Device, ordinal, pool: Some(pool) };
        Ok(put(pointer, process.allocate(&call.state, &wanted)?)?)
    }

    cuMemFreeAsync(_call, pointer: usize, stream: Handle) {
        let mut process = process()?;
        process.enqueue(stream, NodeKind::RELEASE)?;
        process.release(pointer)
    }

    /// Used and reserved bytes of CUDA graphs now (0, 2) and at most (1, 3): only the file tells.
    cuDeviceGetGraphMemAttribute(call, ordinal: c_int, which: c_int, figure: *mut c_void) {
        let device = process()?.device(ordinal)?;
        let key = match which {
            0 | 1 => "graph_used_mib",
            2 | 3 => "graph_reserved_mib",
            _ => return Err(Code::INVALID_VALUE),
        };
        let n_bytes = device.n_bytes(&call.state, key).unwrap_or(0);
        Ok(put(figure.cast(), call.size(n_bytes))?)
    }

    cuDeviceSetGraphMemAttribute(_call, ordinal: c_int, _which: c_int, _figure: usize) {
        process()?.device(ordinal).map(|_| ())
    }

    cuDeviceGraphMemTrim(_call, ordinal: c_int) {
        process()?.device(ordinal).map(|_| ())
    }
}
