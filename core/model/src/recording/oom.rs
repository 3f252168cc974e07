//! An out-of-memory error, from its message and the allocator's observer.

use serde::Serialize;

use super::DeviceIdx;
use crate::holders::RootKind;
use crate::named;
use crate::units::{Bytes, Nanos};

named! {
    /// The framework that requested the memory. `gpumem_readers::oom` recognises it in a message.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum Framework {
        /// `PyTorch`, on any accelerator or on the host.
        Torch = "torch",
        /// JAX, or whatever else runs on XLA.
        Jax = "jax",
        /// TensorFlow.
        Tensorflow = "tensorflow",
        /// `CuPy`.
        Cupy = "cupy",
        /// RAPIDS' memory manager: cuDF, cuML and what is built on them.
        Rmm = "rmm",
        /// Numba.
        Numba = "numba",
        /// `NumPy`, which asks for host memory.
        Numpy = "numpy",
        /// The simulated device.
        Sim = "sim",
        /// A library that passes on the driver's error.
        Driver = "driver",
    }
}

/// Another process that holds memory of the device. See [`OomFigures::others`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct OtherProcess {
    /// Its id on the machine, which may differ inside a container.
    pub pid: u64,
    /// Bytes that it holds, if known.
    #[serde(rename = "used_bytes")]
    pub used: Option<Bytes>,
}

/// A name that held memory of the device when it ran out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct OomHolder {
    /// The name that the user knows; empty if the settings do not let names be kept.
    pub name: String,
    /// What kind of name it is.
    pub kind: RootKind,
    /// What it held, excluding what a name before it in the list holds.
    #[serde(rename = "used_bytes")]
    pub used: Bytes,
    /// How many storages that was; 0 if nobody counted.
    #[serde(skip)]
    pub n_storages: u64,
}

/// The figures of an out-of-memory error, in bytes; `None` for those that its message does not give.
/// `read::oom::parse` reads them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct OomFigures {
    /// The request that failed.
    #[serde(rename = "wanted_bytes")]
    pub wanted: Option<Bytes>,
    /// Free on the device, as the driver saw it.
    #[serde(rename = "free_bytes")]
    pub free: Option<Bytes>,
    /// The size of the device.
    #[serde(rename = "total_bytes")]
    pub total: Option<Bytes>,
    /// The most that the framework was allowed to take, if that is less.
    #[serde(rename = "limit_bytes")]
    pub limit: Option<Bytes>,
    /// In blocks held by tensors.
    #[serde(rename = "allocated_bytes")]
    pub allocated: Option<Bytes>,
    /// In segments reserved from the driver.
    #[serde(rename = "reserved_bytes")]
    pub reserved: Option<Bytes>,
    /// Reserved but in no tensor: the cache.
    #[serde(rename = "unallocated_bytes")]
    pub unallocated: Option<Bytes>,
    /// Part of allocated: in private pools, such as those of CUDA graphs.
    #[serde(rename = "private_pools_bytes")]
    pub private_pools: Option<Bytes>,
    /// The largest free block of the cache.
    #[serde(rename = "largest_free_bytes")]
    pub largest_free: Option<Bytes>,
    /// Held by this process, including what no allocator counts.
    #[serde(rename = "this_process_bytes")]
    pub this_process: Option<Bytes>,
    /// Processes listed by id. This one can be among them, because a container hides its id from it.
    pub others: Vec<OtherProcess>,
}

/// An out-of-memory error that a run met; [`Run::oom`](super::Run::oom) has the last one.
/// `OomBreakdown` explains it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct OutOfMemory {
    /// Since the recording's start.
    #[serde(rename = "at_nanos")]
    pub at: Nanos,
    /// On which device, if it is one of the recording's.
    #[serde(skip)]
    pub device: Option<DeviceIdx>,
    /// The error names a device other than the host, whether it is recorded or not.
    #[serde(skip)]
    pub names_accelerator: bool,
    /// The framework that requested the memory.
    pub framework: Option<Framework>,
    /// The run continued after it: the error was caught, or met on another thread.
    pub survived: bool,
    /// Its figures.
    #[serde(flatten)]
    pub figures: OomFigures,
    /// The names that held memory of the device while the error still had its frames, largest first.
    pub holders: Vec<OomHolder>,
    /// The error's message; `None` if the settings do not let it be kept.
    pub message: Option<String>,
}
