//! Logs of memory levels: what monitors of devices wrote line by line.
//!
//! A log has levels, but no runs: it tells that memory rose, not which code keeps it.
//!
//! ```
//! use gpumem_readers::level_log::LogShape;
//! use gpumem_readers::nvidia_smi;
//! use gpumem_model::units::Bytes;
//!
//! let log = nvidia_smi::read(b"index, memory.used [MiB]\n0, 10 MiB\n0, 900 MiB\n0, 12 MiB\n")?;
//! let used = &log.devices[0].levels[0].series;
//! assert_eq!((used.first, used.peak, used.last), (Bytes::mib(10), Bytes::mib(900), Bytes::mib(12)));
//! assert_eq!(used.shape(log.devices[0].capacity), LogShape::FellBack);
//! # Ok::<(), nvidia_smi::NvidiaSmiError>(())
//! ```

mod builder;
mod series;
mod wall_time;

pub(crate) use builder::{HOST, Ids, LevelLogBuilder, LogReading};
pub use series::{LogPoint, LogSeries, LogShape};
pub use wall_time::{WallTime, WallTimeKind};

use gpumem_model::named;
use gpumem_model::units::{Bytes, Nanos};

/// A log of levels.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LevelLog {
    /// The program that wrote it: `nvidia-smi log`.
    pub title: &'static str,
    /// The earliest time in it.
    pub started: Option<WallTime>,
    /// From the earliest to the latest time in it.
    pub duration: Option<Nanos>,
    /// Number of lines or events with a level.
    pub n_readings: usize,
    /// In the order of their numbers if they have any, else of their first lines.
    pub devices: Vec<DeviceLog>,
    /// Notes for the report: lines that were left out, assumptions.
    pub notes: Vec<String>,
}

/// One device of a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeviceLog {
    /// `GPU 0`, or another id that differs between devices.
    pub label: String,
    /// The vendor's name, if logged.
    pub name: Option<String>,
    /// Its total memory, if logged.
    pub capacity: Option<Bytes>,
    /// Its levels; none if only those of processes were logged.
    pub levels: Vec<LevelSeries>,
    /// Texts in place of a level, such as `[N/A]`, with their counts.
    pub missing: Vec<(String, usize)>,
    /// Its processes, highest peak first.
    pub processes: Vec<ProcessLog>,
}

/// One process on one device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProcessLog {
    /// Its number.
    pub pid: u64,
    /// Its command or file, if logged.
    pub name: Option<String>,
    /// Its levels; none if the log has no figure for it.
    pub levels: Vec<LevelSeries>,
    /// Texts in place of a level, such as `[N/A]`, with their counts.
    pub missing: Vec<(String, usize)>,
}

named! {
    /// Which level.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum LevelKind {
        /// The driver's figure: for all processes, or for one.
        Used = "used",
        /// In segments that the caching allocator holds.
        Reserved = "reserved",
        /// In blocks that tensors hold.
        Allocated = "allocated",
        /// Device memory that a program allocated with CUDA.
        Device = "device memory",
        /// Managed memory, which moves between device and host.
        Managed = "managed memory",
        /// Host memory that CUDA pinned, or that a program registered with CUDA.
        Pinned = "pinned host memory",
    }
}

/// A level over the time of a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LevelSeries {
    /// Which level.
    pub kind: LevelKind,
    /// Its readings.
    pub series: LogSeries,
}

impl DeviceLog {
    /// The memory that a level is a part of: pinned memory is the host's.
    pub fn capacity_of(&self, kind: LevelKind) -> Option<Bytes> {
        self.capacity.filter(|_| kind != LevelKind::Pinned)
    }

    /// The level that counts: the first of [`LevelKind`] that is known.
    pub fn main_level(&self) -> Option<&LevelSeries> {
        self.levels.iter().min_by_key(|level| level.kind)
    }
}

impl ProcessLog {
    /// The level that counts: the first of [`LevelKind`] that is known.
    pub fn main_level(&self) -> Option<&LevelSeries> {
        self.levels.iter().min_by_key(|level| level.kind)
    }
}
