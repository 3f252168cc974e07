//! The simulated device, and the storages that hold its blocks.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use gpumem_core::allocator::{AllocatorStats, BlockId, CachingAllocator, OutOfMemory};
use gpumem_core::recording::{Framework, OomFigures};
use gpumem_core::segments::Segments;
use gpumem_core::trace::{History, StackIdx};
use gpumem_core::units::Bytes;
use pyo3::Python;

use crate::clock::Clock;
use crate::oom::observer;
use crate::trace::SimLog;

/// What the device is called.
const LABEL: &str = "sim:0";

/// The same of one that another has replaced, on which tensors are kept.
const LABEL_REPLACED: &str = "sim:0 (replaced)";

const DEFAULT_CAPACITY: Bytes = Bytes::gib(8);

/// The device on which tensors are made now. Locked under the GIL only, so that nobody can hold it
/// when the user forks.
static CURRENT: Mutex<Option<Arc<Device>>> = Mutex::new(None);

/// What a driver would tell of the current device. The sampler's thread reads it without any lock.
static SHOWN: (AtomicU64, AtomicU64) = (AtomicU64::new(0), AtomicU64::new(0));

/// How many storages there were so far.
static N_STORAGES: AtomicU64 = AtomicU64::new(0);

/// A device's driver figures.
pub(crate) struct Shown {
    /// In segments.
    pub(crate) reserved: Bytes,
    /// The device's size.
    pub(crate) capacity: Bytes,
}

/// The driver figures of the current device, if there is one.
pub(crate) fn shown() -> Option<Shown> {
    let (reserved, capacity) = &SHOWN;
    let capacity = capacity.load(Ordering::Acquire);
    (capacity > 0).then(|| Shown {
        reserved: Bytes::new(reserved.load(Ordering::Acquire)),
        capacity: Bytes::new(capacity),
    })
}

/// What the current device's allocator counts, if there is one.
pub(crate) fn stats() -> Option<AllocatorStats> {
    let current = lock(&CURRENT).clone();
    current.map(|device| device.stats())
}

/// Where memory lies on the current device, if there is one.
pub(crate) fn segments() -> Option<Segments> {
    let current = lock(&CURRENT).clone();
    current.map(|device| device.segments())
}

/// Sets the peaks of the current device, if there is one, to the present levels.
pub(crate) fn reset_peaks() {
    let current = lock(&CURRENT).clone();
    if let Some(device) = current {
        device.reset_peaks();
    }
}

/// Makes the default device where there is none yet.
pub(crate) fn ensure() {
    current();
}

/// The device on which tensors are made; the first call makes it.
pub(super) fn current() -> Arc<Device> {
    let existing = lock(&CURRENT).clone();
    existing.unwrap_or_else(|| install(DEFAULT_CAPACITY))
}

/// Makes an empty device and uses it from here on. Tensors of the one before keep theirs.
pub(super) fn install(capacity: Bytes) -> Arc<Device> {
    let device = Arc::new(Device {
        allocator: Mutex::new(CachingAllocator::new(capacity)),
        trace: Mutex::default(),
    });
    let (shown_reserved, shown_capacity) = &SHOWN;
    let mut current = lock(&CURRENT);
    shown_reserved.store(0, Ordering::Release);
    shown_capacity.store(capacity.get(), Ordering::Release);
    *current = Some(Arc::clone(&device));
    device
}

/// A simulated device: an allocator that many tensors share.
pub(crate) struct Device {
    allocator: Mutex<CachingAllocator>,
    /// While a run of it is traced.
    trace: Mutex<Option<Arc<SimLog>>>,
}

/// Traces the current device, if there is one, until [`Device::end_trace`].
pub(crate) fn begin_trace(clock: Clock) -> Option<Arc<Device>> {
    let device = lock(&CURRENT).clone()?;
    let log = SimLog::begin(clock, &mut lock(&device.allocator));
    *lock(&device.trace) = Some(Arc::new(log));
    Some(device)
}

impl Device {
    /// As people write it.
    pub(super) fn label(&self) -> &'static str {
        let current = lock(&CURRENT);
        let is_current = |it: &Arc<Self>| std::ptr::eq(&raw const **it, self);
        if current.as_ref().is_some_and(is_current) {
            LABEL
        } else {
            LABEL_REPLACED
        }
    }

    pub(super) fn capacity(&self) -> Bytes {
        lock(&self.allocator).capacity()
    }

    pub(super) fn stats(&self) -> AllocatorStats {
        lock(&self.allocator).stats()
    }

    fn segments(&self) -> Segments {
        lock(&self.allocator).map()
    }

    pub(super) fn reset_peaks(&self) {
        lock(&self.allocator).reset_peaks();
    }

    pub(super) fn empty_cache(&self) -> Bytes {
        self.change(CachingAllocator::empty_cache)
    }

    /// Tells of a request that could not be served.
    fn tell(&self, error: &OutOfMemory) {
        let figures = OomFigures {
            wanted: Some(error.wanted),
            free: Some(error.free),
            total: Some(error.capacity),
            allocated: Some(error.allocated),
            reserved: Some(error.reserved),
            unallocated: Some(error.reserved.saturating_sub(error.allocated)),
            largest_free: Some(self.stats().largest_free),
            ..OomFigures::default()
        };
        let device = self.label().to_owned();
        // It was a call from Python that wanted memory.
        let found = Some(Ok(self.segments()));
        Python::attach(|py| observer::note(py, Framework::Sim, device, figures, found));
    }

    /// What was done since the trace began; `None` where another thread is in the middle of it.
    pub(crate) fn end_trace(&self) -> Option<History> {
        let log = lock(&self.trace).take();
        let mut allocator = lock(&self.allocator);
        log.and_then(Arc::into_inner)
            .map(|log| log.end(&mut allocator))
    }

    /// Changes the allocator and shows what its driver would.
    fn change<T>(&self, change: impl FnOnce(&mut CachingAllocator) -> T) -> T {
        let log = lock(&self.trace).clone();
        self.change_traced(change, log.as_deref(), None)
    }

    /// Takes a block; a trace learns for whom.
    fn allocate(&self, n_bytes: Bytes) -> Result<BlockId, OutOfMemory> {
        let log = lock(&self.trace).clone();
        // Walked before the allocator is locked: Python may free another block meanwhile.
        let stack = log.as_deref().and_then(SimLog::stack);
        let allocate = |allocator: &mut CachingAllocator| allocator.allocate(n_bytes);
        self.change_traced(allocate, log.as_deref(), stack)
    }

    fn change_traced<T>(
        &self,
        change: impl FnOnce(&mut CachingAllocator) -> T,
        log: Option<&SimLog>,
        stack: Option<StackIdx>,
    ) -> T {
        let mut allocator = lock(&self.allocator);
        let outcome = change(&mut allocator);
        if let Some(log) = log {
            log.note(allocator.take_log(), stack);
        }
        let reserved = allocator.stats().reserved;
        let current = lock(&CURRENT);
        let is_current = current
            .as_ref()
            .is_some_and(|it| std::ptr::eq(&raw const **it, self));
        if is_current {
            SHOWN.0.store(reserved.get(), Ordering::Release);
        }
        outcome
    }
}

/// A block of a device, given back when the last tensor or graph lets go of it.
pub(super) struct Storage {
    /// Never used again for another one.
    id: u64,
    device: Arc<Device>,
    block: BlockId,
    n_bytes: Bytes,
}

impl Storage {
    pub(super) fn new(device: &Arc<Device>, n_bytes: Bytes) -> Result<Self, OutOfMemory> {
        let block = device.allocate(n_bytes);
        Ok(Self {
            id: N_STORAGES.fetch_add(1, Ordering::Relaxed),
            block: block.inspect_err(|error| device.tell(error))?,
            device: Arc::clone(device),
            n_bytes,
        })
    }

    /// One more of the same size on the same device.
    pub(super) fn twin(&self) -> Result<Self, OutOfMemory> {
        Self::new(&self.device, self.n_bytes)
    }

    pub(super) fn id(&self) -> u64 {
        self.id
    }

    /// As they were asked for.
    pub(super) fn n_bytes(&self) -> Bytes {
        self.n_bytes
    }

    pub(super) fn device(&self) -> &Arc<Device> {
        &self.device
    }
}

impl Drop for Storage {
    fn drop(&mut self) {
        self.device.change(|allocator| allocator.free(self.block));
    }
}

/// An out-of-memory error in PyTorch's words, so that whoever reads those reads these.
pub(super) fn out_of_memory(error: &OutOfMemory) -> String {
    let in_use = error.capacity.saturating_sub(error.free);
    let cached = error.reserved.saturating_sub(error.allocated);
    format!(
        "Simulated CUDA out of memory. Tried to allocate {}. GPU 0 has a total capacity of {} of \
         which {} is free. Including non-PyTorch memory, this process has {} memory in use. Of \
         the allocated memory {} is allocated by PyTorch, and {} is reserved by PyTorch but \
         unallocated.",
        in_torch_units(error.wanted),
        in_torch_units(error.capacity),
        in_torch_units(error.free),
        in_torch_units(in_use),
        in_torch_units(error.allocated),
        in_torch_units(cached),
    )
}

/// Two decimals whatever the size: `20.00 MiB`.
fn in_torch_units(n: Bytes) -> String {
    let (size, unit) = match n.get() {
        0..=0x400 => return format!("{} bytes", n.get()),
        0x401..=0x10_0000 => (n.as_f64() / 1024.0, "KiB"),
        0x10_0001..=0x4000_0000 => (n.as_f64() / 1024.0 / 1024.0, "MiB"),
        _ => (n.as_f64() / 1024.0 / 1024.0 / 1024.0, "GiB"),
    };
    format!("{size:.2} {unit}")
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
