//! The simulated device, and the storages that hold its blocks.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use gpumem_model::recording::{Framework, OomFigures};
use gpumem_model::segments::Segments;
use gpumem_model::trace::{History, StackIdx};
use gpumem_model::units::Bytes;
use gpumem_sim::{AllocatorStats, BlockId, CachingAllocator, SimOutOfMemory};
use pyo3::Python;

use super::log::SimLog;
use crate::out_of_memory::observer;
use gpumem_base::clock::Clock;
use gpumem_base::locks::lock;

/// The most devices at once.
pub(super) const MAX_DEVICES: usize = 64;

const DEFAULT_CAPACITY: Bytes = Bytes::gib(8);

/// The devices on which tensors are made now. Locked under the GIL only, so that nobody can hold
/// it when the user forks.
static CURRENT: Mutex<Vec<Arc<SimDevice>>> = Mutex::new(Vec::new());

/// The levels that a driver would report for each current device. The sampler's thread reads it without any
/// lock. No capacity: no device.
static SHOWN: [ShownNow; MAX_DEVICES] = [const { ShownNow::none() }; MAX_DEVICES];

/// How many storages there were so far.
static N_STORAGES: AtomicU64 = AtomicU64::new(0);

/// What [`ReservedLevels`] is read from.
struct ShownNow {
    reserved: AtomicU64,
    capacity: AtomicU64,
}

impl ShownNow {
    const fn none() -> Self {
        Self {
            reserved: AtomicU64::new(0),
            capacity: AtomicU64::new(0),
        }
    }
}

pub struct ReservedLevels {
    pub reserved: Bytes,
    /// The device's size.
    pub capacity: Bytes,
}

/// The driver figures of the current device of this number, if there is one.
pub fn shown(number: usize) -> Option<ReservedLevels> {
    let shown = SHOWN.get(number)?;
    let capacity = shown.capacity.load(Ordering::Acquire);
    (capacity > 0).then(|| ReservedLevels {
        reserved: Bytes::new(shown.reserved.load(Ordering::Acquire)),
        capacity: Bytes::new(capacity),
    })
}

/// What the allocator of the current device counts, if there is one.
pub fn stats(number: usize) -> Option<AllocatorStats> {
    existing(number).map(|device| device.stats())
}

/// Where memory lies on the current device, if there is one.
pub fn segments(number: usize) -> Option<Segments> {
    existing(number).map(|device| device.segments())
}

/// Sets the peaks of the current device, if there is one, to the present levels.
pub fn reset_peaks(number: usize) {
    if let Some(device) = existing(number) {
        device.reset_peaks();
    }
}

/// Makes the default device if there is none yet.
pub fn ensure() {
    current();
}

/// The devices on which tensors are made; the first call makes one.
pub(super) fn current() -> Vec<Arc<SimDevice>> {
    let existing = lock(&CURRENT).clone();
    if existing.is_empty() {
        install(DEFAULT_CAPACITY, 1)
    } else {
        existing
    }
}

fn existing(number: usize) -> Option<Arc<SimDevice>> {
    lock(&CURRENT).get(number).cloned()
}

/// Makes empty devices and uses them from here on. Tensors of those before keep theirs.
pub(super) fn install(capacity: Bytes, n_devices: usize) -> Vec<Arc<SimDevice>> {
    let device = |number| Arc::new(SimDevice::new(number, capacity));
    let devices: Vec<Arc<SimDevice>> = (0..n_devices).map(device).collect();
    let mut current = lock(&CURRENT);
    for (number, shown) in SHOWN.iter().enumerate() {
        let capacity = if number < n_devices {
            capacity.get()
        } else {
            0
        };
        shown.reserved.store(0, Ordering::Release);
        shown.capacity.store(capacity, Ordering::Release);
    }
    // Dropped without the lock: nothing but Python's references keeps the old ones.
    let old = std::mem::replace(&mut *current, devices.clone());
    drop(current);
    drop(old);
    devices
}

/// A simulated device: an allocator that many tensors share.
pub struct SimDevice {
    number: usize,
    label: String,
    /// What it is called if others replaced it and tensors are kept on it.
    label_replaced: String,
    allocator: Mutex<CachingAllocator>,
    /// While a run of it is traced.
    trace: Mutex<Option<Arc<SimLog>>>,
}

/// Traces the current devices, if there are any, each until [`SimDevice::end_trace`].
pub fn begin_traces(clock: Clock) -> Vec<Arc<SimDevice>> {
    let devices = lock(&CURRENT).clone();
    for device in &devices {
        let log = SimLog::begin(clock, &mut lock(&device.allocator));
        *lock(&device.trace) = Some(Arc::new(log));
    }
    devices
}

impl SimDevice {
    fn new(number: usize, capacity: Bytes) -> Self {
        Self {
            number,
            label: format!("sim:{number}"),
            label_replaced: format!("sim:{number} (replaced)"),
            allocator: Mutex::new(CachingAllocator::new(capacity)),
            trace: Mutex::default(),
        }
    }

    /// Its place among the devices it was made with.
    pub(super) fn number(&self) -> usize {
        self.number
    }

    /// As people write it: `sim:0`.
    pub fn label(&self) -> &str {
        if self.is_among(&lock(&CURRENT)) {
            &self.label
        } else {
            &self.label_replaced
        }
    }

    fn is_among(&self, current: &[Arc<Self>]) -> bool {
        let same_number = current.get(self.number);
        same_number.is_some_and(|it| std::ptr::eq(&raw const **it, self))
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
    fn tell(&self, error: &SimOutOfMemory) {
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
        Python::attach(|py| (observer().note)(py, Framework::Sim, device, figures, found));
    }

    /// What was done since the trace began; `None` where another thread is in the middle of it.
    pub fn end_trace(&self) -> Option<History> {
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
    fn allocate(&self, n_bytes: Bytes) -> Result<BlockId, SimOutOfMemory> {
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
        if self.is_among(&current) {
            let shown = &SHOWN[self.number].reserved;
            shown.store(reserved.get(), Ordering::Release);
        }
        outcome
    }
}

/// A block of a device, given back when the last tensor or graph lets go of it.
pub struct SimStorage {
    /// Never used again for another one.
    id: u64,
    device: Arc<SimDevice>,
    block: BlockId,
    n_bytes: Bytes,
}

impl SimStorage {
    pub(super) fn new(device: &Arc<SimDevice>, n_bytes: Bytes) -> Result<Self, SimOutOfMemory> {
        let block = device.allocate(n_bytes);
        Ok(Self {
            id: N_STORAGES.fetch_add(1, Ordering::Relaxed),
            block: block.inspect_err(|error| device.tell(error))?,
            device: Arc::clone(device),
            n_bytes,
        })
    }

    /// One more of the same size on the same device.
    pub(super) fn twin(&self) -> Result<Self, SimOutOfMemory> {
        Self::new(&self.device, self.n_bytes)
    }

    /// Its own number, given to no other storage.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// The requested size.
    pub fn n_bytes(&self) -> Bytes {
        self.n_bytes
    }

    /// The device that it is on.
    pub fn device(&self) -> &Arc<SimDevice> {
        &self.device
    }
}

impl Drop for SimStorage {
    fn drop(&mut self) {
        self.device.change(|allocator| allocator.free(self.block));
    }
}

/// An out-of-memory error in PyTorch's words, so that whoever reads those reads these.
pub(super) fn out_of_memory(device: &SimDevice, error: &SimOutOfMemory) -> String {
    let number = device.number;
    let in_use = error.capacity.saturating_sub(error.free);
    let cached = error.reserved.saturating_sub(error.allocated);
    format!(
        "Simulated CUDA out of memory. Tried to allocate {}. GPU {number} has a total capacity of {} of \
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
