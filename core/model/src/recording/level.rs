//! What the sources report of one device at one instant.

use std::fmt;

use super::ChildGroup;
use crate::holders::Allocated;
use crate::named;
use crate::printable::make_printable;
use crate::units::Bytes;

named! {
    /// Where levels come from.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum Source {
        /// The CUDA driver.
        Cuda = "cuda",
        /// NVIDIA's management library.
        Nvml = "nvml",
        /// `PyTorch`'s caching allocator.
        Torch = "torch",
        /// `CuPy`'s memory pools.
        Cupy = "cupy",
        /// JAX's allocator.
        Jax = "jax",
        /// TensorFlow's allocator.
        Tensorflow = "tensorflow",
        /// The RAPIDS memory manager, if its statistics are on.
        Rmm = "rmm",
        /// Numba's allocations, including those that it has not freed yet.
        Numba = "numba",
        /// The pages that bitsandbytes keeps its paged optimizer states in.
        Bitsandbytes = "bitsandbytes",
        /// The operating system, for host memory.
        Host = "host",
        /// The simulated device.
        Sim = "sim",
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(
    clippy::box_collection,
    reason = "a string itself is three times as large"
)]
/// A source's message, behind one pointer.
///
/// A reading has more than a dozen levels, a session has many readings, and few of them have a message.
pub struct SourceMessage(Box<String>);

impl SourceMessage {
    /// The message.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<String> for SourceMessage {
    fn from(mut words: String) -> Self {
        make_printable(&mut words);
        Self(Box::new(words))
    }
}

impl From<&str> for SourceMessage {
    fn from(words: &str) -> Self {
        words.to_owned().into()
    }
}

impl fmt::Display for SourceMessage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Why a level is not known.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Unknown {
    /// No source reads this level on this device.
    #[default]
    NotRead,
    /// The source answers, but has no such figure (or reports a constant zero).
    NotReported,
    /// The driver or the container refuses the figure.
    NotPermitted,
    /// The source answers, but cannot give the figure here; the message says why.
    Withheld(SourceMessage),
    /// The source failed with this message.
    Failed(SourceMessage),
}

impl Unknown {
    /// The reason in words.
    pub fn message(&self) -> &str {
        match self {
            Self::NotRead => "nobody reads it",
            Self::NotReported => "it is not reported",
            Self::NotPermitted => "no permission to read it",
            Self::Withheld(why) | Self::Failed(why) => why.as_str(),
        }
    }
}

/// One figure of a reading: known, or unknown with the reason. Unknown is not zero.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Level {
    /// The figure in bytes.
    Known(Bytes),
    /// Why there is none.
    Unknown(Unknown),
}

impl Level {
    /// The figure, if it is known.
    pub const fn known(&self) -> Option<Bytes> {
        match self {
            Self::Known(bytes) => Some(*bytes),
            Self::Unknown(_) => None,
        }
    }
}

impl Default for Level {
    fn default() -> Self {
        Self::Unknown(Unknown::NotRead)
    }
}

impl From<Bytes> for Level {
    fn from(bytes: Bytes) -> Self {
        Self::Known(bytes)
    }
}

impl From<Option<Bytes>> for Level {
    /// `None` means that nobody read it.
    fn from(bytes: Option<Bytes>) -> Self {
        bytes.map_or_else(Self::default, Self::Known)
    }
}

/// What the driver (or the operating system) reports of one device at one instant, in bytes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DriverLevels {
    /// Used by all processes together.
    pub device_used: Level,
    /// Used by this process; on the host what it keeps.
    pub process_used: Level,
    /// The size of the device.
    pub capacity: Level,
    /// The limit of the container (its control group) for all of its processes.
    pub container_limit: Level,
    /// The limit of CUDA's multi-process service (MPS) for this process.
    pub service_limit: Level,
    /// The host's memory, if the device shares it because it has none of its own.
    pub host_limit: Level,
    /// Used by the descendants of this process.
    pub children_used: Level,
    /// Who they are, if they use any; read at the end of a run.
    pub children: Vec<ChildGroup>,
    /// Kept by the driver and the firmware; neither used nor part of the capacity.
    pub driver_reserved: Level,
    /// In blocks of the driver's own pool (`cudaMallocAsync`), in this process.
    pub pool_used: Level,
    /// What that pool has reserved on the device.
    pub pool_reserved: Level,
    /// Used by the allocations of CUDA graphs, in this process.
    pub graph_used: Level,
    /// What is reserved for them on the device.
    pub graph_reserved: Level,
}

impl DriverLevels {
    /// Each level with its name in JSON and on the wire, in a fixed order.
    pub fn named(&self) -> [(&'static str, &Level); 12] {
        [
            ("device_used", &self.device_used),
            ("process_used", &self.process_used),
            ("capacity", &self.capacity),
            ("container_limit", &self.container_limit),
            ("service_limit", &self.service_limit),
            ("host_limit", &self.host_limit),
            ("children_used", &self.children_used),
            ("driver_reserved", &self.driver_reserved),
            ("pool_used", &self.pool_used),
            ("pool_reserved", &self.pool_reserved),
            ("graph_used", &self.graph_used),
            ("graph_reserved", &self.graph_reserved),
        ]
    }
}

/// What a framework's caching allocator reports of one device at one instant.
///
/// [`AllocatorLevels::unread`] and [`AllocatorLevels::failed`] are the starting points; a source fills
/// in what it knows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AllocatorLevels {
    /// Whose allocator.
    pub source: Source,
    /// Bytes in blocks held by tensors.
    pub allocated: Level,
    /// Requested bytes, before rounding to blocks.
    pub requested: Level,
    /// Allocated plus blocks that await a stream.
    pub active: Level,
    /// Bytes in segments reserved from the driver.
    pub reserved: Level,
    /// Free bytes in partly used segments, which cannot go back to the driver.
    pub inactive_split: Level,
    /// The largest free block.
    pub largest_free: Level,
    /// The allocator's peak counter: the highest allocated since its last reset.
    pub peak_allocated: Level,
    /// Everything allocated since the process began, freed or not.
    pub total_allocated: Level,
    /// The most that it may hold: a fraction set by the user, or a preallocation.
    pub limit: Level,
    /// Live allocations: allocations minus frees.
    pub n_blocks: Option<u64>,
    /// Known resets of its peak counter.
    pub n_peak_resets: Option<u64>,
    /// Allocations that succeeded only after the cache was flushed, since the process began.
    pub n_retries: Option<u64>,
    /// Out-of-memory errors since the process began.
    pub n_ooms: Option<u64>,
}

impl AllocatorLevels {
    /// Levels of `source`, none of them read yet.
    pub fn unread(source: Source) -> Self {
        Self {
            source,
            allocated: Level::default(),
            requested: Level::default(),
            active: Level::default(),
            reserved: Level::default(),
            inactive_split: Level::default(),
            largest_free: Level::default(),
            peak_allocated: Level::default(),
            total_allocated: Level::default(),
            limit: Level::default(),
            n_blocks: None,
            n_peak_resets: None,
            n_retries: None,
            n_ooms: None,
        }
    }

    /// Levels of `source` that could not be read, with the source's message.
    pub fn failed(source: Source, words: &str) -> Self {
        let level = Level::Unknown(Unknown::Failed(words.into()));
        Self {
            allocated: level.clone(),
            active: level.clone(),
            reserved: level.clone(),
            inactive_split: level.clone(),
            largest_free: level.clone(),
            peak_allocated: level,
            ..Self::unread(source)
        }
    }

    /// Whether anything of it was read, or failed to be read. If not, the framework is not in use.
    pub fn has_started(&self) -> bool {
        let mut levels = self.named().into_iter();
        self.n_blocks.is_some() || levels.any(|(_, level)| *level != Level::default())
    }

    /// Each level with its name in JSON and on the wire, in a fixed order.
    pub fn named(&self) -> [(&'static str, &Level); 9] {
        [
            ("allocated", &self.allocated),
            ("requested", &self.requested),
            ("active", &self.active),
            ("reserved", &self.reserved),
            ("inactive_split", &self.inactive_split),
            ("largest_free", &self.largest_free),
            ("peak_allocated", &self.peak_allocated),
            ("total_allocated", &self.total_allocated),
            ("limit", &self.limit),
        ]
    }

    /// Whether the peak counter was reset after `before` was read: it fell, or the source noticed.
    pub fn peak_was_reset_since(&self, before: &Self) -> bool {
        let peaks = before
            .peak_allocated
            .known()
            .zip(self.peak_allocated.known());
        let resets = before.n_peak_resets.zip(self.n_peak_resets);
        peaks.is_some_and(|(then, now)| now < then) || resets.is_some_and(|(then, now)| then < now)
    }
}

/// The levels of one device at one instant: the driver's, and each allocator's.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reading {
    /// The driver's levels.
    pub driver: DriverLevels,
    /// Those of each allocator in use on the device.
    pub allocators: Vec<AllocatorLevels>,
}

impl Reading {
    /// A level summed over the allocators; unknown if one of them does not know it, or if there is none.
    ///
    /// A partial sum would fall when a source fails, as if memory had been freed. An allocator of which
    /// nothing was read has not started and counts as zero.
    pub fn total(&self, level: fn(&AllocatorLevels) -> &Level) -> Option<Bytes> {
        self.sum(|levels| level(levels).known())
    }

    /// What the allocators have handed out; where that is not known, what this process uses.
    pub fn in_use(&self) -> Option<Bytes> {
        let allocated = self.total(|levels| &levels.allocated);
        allocated.or_else(|| self.driver.process_used.known())
    }

    /// What the allocators hold from the driver: reserved, or allocated if an allocator does not report it.
    pub fn held(&self) -> Option<Bytes> {
        self.sum(|levels| levels.reserved.known().or(levels.allocated.known()))
    }

    /// Free bytes in partly used segments. Allocators that report no such level do not split blocks.
    pub fn inactive_split(&self) -> Option<Bytes> {
        let counts = |levels: &&AllocatorLevels| {
            let unknown = [Unknown::NotRead, Unknown::NotReported].map(Level::Unknown);
            !unknown.contains(&levels.inactive_split)
        };
        let counting = self.allocators.iter().filter(counts);
        sum(counting.map(|levels| levels.inactive_split.known()))
    }

    /// Live allocations of all allocators.
    pub fn n_blocks(&self) -> Option<u64> {
        let counts = self.started().map(|levels| levels.n_blocks);
        counts.reduce(|sum, n| sum?.checked_add(n?)).flatten()
    }

    /// Bytes that the allocators have handed out and not got back: as requested if all of them count
    /// that, else rounded to blocks.
    pub fn handed_out(&self) -> Option<Allocated> {
        let handed_out = |levels: &AllocatorLevels| {
            let allocated = levels.allocated.known()?;
            let requested = levels.requested.known();
            Some(Allocated {
                n_bytes: requested.unwrap_or(allocated),
                is_rounded: requested.is_none(),
            })
        };
        let each = self.started().map(handed_out);
        each.reduce(|all, one| Some(all?.and(one?))).flatten()
    }

    fn started(&self) -> impl Iterator<Item = &AllocatorLevels> {
        self.allocators.iter().filter(|levels| levels.has_started())
    }

    fn sum(&self, level: impl Fn(&AllocatorLevels) -> Option<Bytes>) -> Option<Bytes> {
        sum(self.started().map(level))
    }
}

/// Unknown if one of them is, or if there is none.
fn sum(levels: impl Iterator<Item = Option<Bytes>>) -> Option<Bytes> {
    levels.reduce(|sum, level| Some(sum? + level?)).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn torch(allocated: u64, reserved: u64) -> AllocatorLevels {
        AllocatorLevels {
            allocated: Bytes::mib(allocated).into(),
            reserved: Bytes::mib(reserved).into(),
            n_blocks: Some(3),
            ..AllocatorLevels::unread(Source::Torch)
        }
    }

    /// Counts what it has handed out, and no reserve.
    fn tensorflow(allocated: u64) -> AllocatorLevels {
        AllocatorLevels {
            allocated: Bytes::mib(allocated).into(),
            reserved: Level::Unknown(Unknown::NotReported),
            n_blocks: Some(4),
            ..AllocatorLevels::unread(Source::Tensorflow)
        }
    }

    fn failed() -> AllocatorLevels {
        AllocatorLevels::failed(Source::Cupy, "no answer")
    }

    /// Allocated, reserved, held and blocks.
    #[track_caller]
    fn check(allocators: &[AllocatorLevels], mib: [Option<u64>; 3], n_blocks: Option<u64>) {
        let reading = Reading {
            allocators: allocators.to_vec(),
            ..Reading::default()
        };
        let found = [
            reading.total(|levels| &levels.allocated),
            reading.total(|levels| &levels.reserved),
            reading.held(),
        ];
        assert_eq!(found, mib.map(|n| n.map(Bytes::mib)));
        let handed_out = reading.handed_out().map(|all| all.n_bytes);
        assert_eq!(handed_out, found[0]);
        assert_eq!(reading.n_blocks(), n_blocks);
    }

    #[test]
    fn a_total_is_unknown_if_a_part_of_it_is() {
        let all = [Some(300), Some(400), Some(400)];
        check(&[torch(300, 400)], all, Some(3));
        check(
            &[torch(300, 400), tensorflow(50)],
            [Some(350), None, Some(450)],
            Some(7),
        );
        check(&[torch(300, 400), failed()], [None; 3], None);
        check(&[], [None; 3], None);
    }

    #[test]
    fn an_allocator_that_has_not_started_holds_nothing() {
        let asleep = AllocatorLevels::unread(Source::Cupy);
        let all = [Some(300), Some(400), Some(400)];
        check(&[asleep.clone(), torch(300, 400)], all, Some(3));
        check(&[asleep], [None; 3], None);
    }

    #[test]
    fn an_allocator_without_splits_has_none_inactive() {
        let splitting = AllocatorLevels {
            inactive_split: Bytes::mib(70).into(),
            ..torch(300, 400)
        };
        let split = |other: AllocatorLevels| {
            let reading = Reading {
                allocators: vec![splitting.clone(), other],
                ..Reading::default()
            };
            reading.inactive_split()
        };
        assert_eq!(split(tensorflow(50)), Some(Bytes::mib(70)));
        assert_eq!(split(failed()), None);
    }
}
