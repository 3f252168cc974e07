//! An out-of-memory error, from its message and the allocator's observer.

use super::DeviceIdx;
use crate::holders::RootKind;
use crate::units::{Bytes, Nanos};

/// Who asked for the memory that was not there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Framework {
    /// `PyTorch`, on any accelerator or on the host.
    Torch,
    /// JAX, or whatever else runs on XLA.
    Jax,
    /// TensorFlow.
    Tensorflow,
    /// `CuPy`.
    Cupy,
    /// RAPIDS' memory manager: cuDF, cuML and what is built on them.
    Rmm,
    /// Numba.
    Numba,
    /// `NumPy`, which asks for host memory.
    Numpy,
    /// The simulated device.
    Sim,
    /// A library that passes on what the driver said.
    Driver,
}

impl Framework {
    /// Every framework that is told apart.
    pub const ALL: [Self; 9] = [
        Self::Torch,
        Self::Jax,
        Self::Tensorflow,
        Self::Cupy,
        Self::Rmm,
        Self::Numba,
        Self::Numpy,
        Self::Sim,
        Self::Driver,
    ];

    /// The name in JSON and on the wire.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Torch => "torch",
            Self::Jax => "jax",
            Self::Tensorflow => "tensorflow",
            Self::Cupy => "cupy",
            Self::Rmm => "rmm",
            Self::Numba => "numba",
            Self::Numpy => "numpy",
            Self::Sim => "sim",
            Self::Driver => "driver",
        }
    }

    /// The framework of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|it| it.name() == name)
    }
}

/// A process that holds memory of the device, too.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct OtherProcess {
    /// As the machine numbers it, which a container may not.
    pub pid: u64,
    /// What it holds.
    pub used: Option<Bytes>,
}

/// A name that held memory of the device when it ran out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OomHolder {
    /// As the user knows it; empty where names are not to be kept.
    pub name: String,
    /// What kind of name it is.
    pub kind: RootKind,
    /// What it held, without what a name before it holds already.
    pub used: Bytes,
}

/// What was said of memory when it ran out. What is unknown is `None`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OomFigures {
    /// The request that failed.
    pub wanted: Option<Bytes>,
    /// Free on the device, as the driver saw it.
    pub free: Option<Bytes>,
    /// The size of the device.
    pub total: Option<Bytes>,
    /// The most that the framework was allowed to take, where that is less.
    pub limit: Option<Bytes>,
    /// In blocks held by tensors.
    pub allocated: Option<Bytes>,
    /// In segments that the allocator holds from the driver.
    pub reserved: Option<Bytes>,
    /// Reserved but in no tensor: the cache.
    pub unallocated: Option<Bytes>,
    /// Of what is allocated, in private pools, such as those of CUDA graphs.
    pub private_pools: Option<Bytes>,
    /// The largest free block of the cache.
    pub largest_free: Option<Bytes>,
    /// Held by this process, what no allocator counts included.
    pub this_process: Option<Bytes>,
    /// Held by processes that are named by their number. This one can be among
    /// them, for a container hides its own number from it.
    pub others: Vec<OtherProcess>,
}

/// An out-of-memory error that a run met.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OutOfMemory {
    /// Since the recording's start.
    pub at: Nanos,
    /// On which device, where that is one of the recording's.
    pub device: Option<DeviceIdx>,
    /// The error names a device that is not the host, whether it is one of these or not.
    pub names_accelerator: bool,
    /// Who asked.
    pub framework: Option<Framework>,
    /// The run went on after it: it was caught, or met on another thread.
    pub survived: bool,
    /// What was said.
    pub figures: OomFigures,
    /// Who held memory of the device while the error still had its frames, the most first.
    pub holders: Vec<OomHolder>,
    /// The error's own words, as far as the user lets them be kept.
    pub message: Option<String>,
}
