//! The figures behind verdicts.

use gpumem_model::json_form::JsonNumber;
use gpumem_model::{named, object};

named! {
    /// What a figure measures. Sizes are in bytes, and their names end so.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum Statistic {
        /// Never given back over the series.
        Kept = "kept_bytes",
        /// Rises that were never given back.
        NRises = "n_rises",
        /// The floor rises: t of the increments between block minima.
        BlockT = "block_t",
        /// Share of the growth in the last quarter.
        LastQuarterShare = "last_quarter_share",
        /// The level rises: Mann-Kendall z, corrected for autocorrelation.
        TrendZ = "trend_z",
        /// Least share of the growth in a later quarter.
        LeastQuarterShare = "least_quarter_share",
        /// The rise stands out: Sen's slope over the series, in standard deviations.
        RelativeRise = "relative_rise",
        /// Its last third still rises at this share of the whole rate.
        LateShare = "late_share",
        /// Never given back in the second half.
        TailKept = "tail_kept_bytes",
        /// The second half stays above what was usual before it.
        TailLow = "tail_low_bytes",
        /// Its floor rises: t of the increments between block minima.
        TailBlockT = "tail_block_t",
        /// It rises evenly: Sen's slope in standard deviations, 3.46 for a straight line.
        TailRise = "tail_rise",
        /// So does the last third of the second half.
        TailLateShare = "tail_late_share",
        /// P-value of the trend, corrected for all series.
        PBound = "p_bound",
        /// Runs in which allocations minus frees grew.
        LiveAllocations = "live_allocations",
        /// How much more the name holds after these runs.
        Held = "held_bytes",
        /// Allocated in a traced run and alive at its end.
        Retained = "retained_bytes",
        /// Peak above the higher end, against the fence of the others.
        Excess = "excess_bytes",
        /// Allocations that succeeded only after the cache was flushed.
        NRetries = "n_retries",
        /// Rise of the peak over rise of reserved.
        UsedShare = "used_share",
        /// What earlier runs had left, and was there all the while.
        Old = "old_bytes",
        /// How far the re-run rose above its start, against the new copy.
        Rose = "rose_bytes",
        /// Alive at the peak, for half of the run or longer, and freed in it.
        LongLived = "long_lived_bytes",
        /// Free inside partly used segments, as a share of reserved.
        InactiveSplitRatio = "inactive_split_ratio",
        /// (reserved − allocated) / reserved.
        CacheRatio = "cache_ratio",
        /// The largest request that the cache can serve.
        LargestFree = "largest_free_bytes",
        /// In segments that are wholly free: what `empty_cache()` would give back.
        Reclaimable = "reclaimable_bytes",
        /// The request that failed.
        Wanted = "wanted_bytes",
        /// Free on the device and in the allocator's cache.
        Usable = "usable_bytes",
        /// Free on the device.
        Free = "free_bytes",
        /// The most that could be allocated.
        Total = "total_bytes",
        /// Held by tensors.
        Allocated = "allocated_bytes",
        /// Of these, in private pools.
        PrivatePools = "private_pools_bytes",
        /// Free in the cache, in pieces.
        Unallocated = "unallocated_bytes",
        /// Held by other processes.
        OtherProcesses = "other_processes_bytes",
    }
}

impl Statistic {
    /// It is a size in bytes.
    pub fn is_size(self) -> bool {
        self.name().ends_with("_bytes")
    }

    /// What it means in any finding.
    pub const fn meaning(self) -> &'static str {
        match self {
            Self::Kept => "never given back over the series",
            Self::NRises => "rises that were never given back",
            Self::BlockT => "the floor rises: t of the increments between block minima",
            Self::LastQuarterShare => "share of the growth in the last quarter",
            Self::TrendZ => "the level rises: Mann-Kendall z, corrected for autocorrelation",
            Self::LeastQuarterShare => "least share of the growth in a later quarter",
            Self::RelativeRise => {
                "the rise stands out: Sen's slope over the series, in standard deviations"
            }
            Self::LateShare => "its last third still rises at this share of the whole rate",
            Self::TailKept => "never given back in the second half",
            Self::TailLow => "the second half stays above what was usual before it",
            Self::TailBlockT => "its floor rises: t of the increments between block minima",
            Self::TailRise => {
                "it rises evenly: Sen's slope in standard deviations, 3.46 for a straight line"
            }
            Self::TailLateShare => "so does the last third of the second half",
            Self::PBound => "p-value of the trend, corrected for all series",
            Self::LiveAllocations => "runs in which allocations minus frees grew",
            Self::Held => "how much more the name holds after these runs",
            Self::Retained => "allocated in a traced run and alive at its end",
            Self::Excess => "peak above the higher end, against the fence of the others",
            Self::NRetries => "allocations that succeeded only after the cache was flushed",
            Self::UsedShare => "rise of the peak over rise of reserved",
            Self::Old => "what earlier runs had left, and was there all the while",
            Self::Rose => "how far the re-run rose above its start, against the new copy",
            Self::LongLived => "alive at the peak, for half of the run or longer, and freed in it",
            Self::InactiveSplitRatio => "free inside partly used segments, as a share of reserved",
            Self::CacheRatio => "(reserved − allocated) / reserved",
            Self::LargestFree => "the largest request that the cache can serve",
            Self::Reclaimable => {
                "in segments that are wholly free: what `empty_cache()` would give back"
            }
            Self::Wanted => "the request that failed",
            Self::Usable => "free on the device and in the allocator's cache",
            Self::Free => "free on the device",
            Self::Total => "the most that could be allocated",
            Self::Allocated => "held by tensors",
            Self::PrivatePools => "of these, in private pools",
            Self::Unallocated => "free in the cache, in pieces",
            Self::OtherProcesses => "held by other processes",
        }
    }
}

/// One figure behind a verdict. `wording::evidence` explains it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Evidence {
    /// What it measures.
    pub statistic: Statistic,
    /// Its value; a size in bytes.
    pub value: f64,
    /// The threshold that it was compared with, if there is one.
    pub threshold: Option<f64>,
    /// Whether it supports the finding.
    pub holds: bool,
}

impl Evidence {
    /// A figure that no threshold applies to.
    pub(super) fn figure(statistic: Statistic, value: f64) -> Self {
        Self {
            statistic,
            value,
            threshold: None,
            holds: true,
        }
    }

    /// A figure that supports the finding because it meets its threshold.
    pub(super) fn met(statistic: Statistic, value: f64, threshold: f64) -> Self {
        Self {
            statistic,
            value,
            threshold: Some(threshold),
            holds: true,
        }
    }

    /// A figure that supports the finding if it is above its threshold.
    pub(super) fn above(statistic: Statistic, value: f64, threshold: f64) -> Self {
        Self {
            holds: value > threshold,
            ..Self::met(statistic, value, threshold)
        }
    }
}

/// A figure with its meaning.
pub(super) struct Explained<'a>(pub(super) &'a Evidence);

object! { Explained<'_>, it => {
    name: it.0.statistic,
    words: it.0.statistic.meaning(),
    value: JsonNumber(it.0.value),
    threshold: it.0.threshold.map(JsonNumber),
    holds: it.0.holds,
}}
