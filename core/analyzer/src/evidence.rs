//! The figures behind verdicts.

use gpumem_model::json_form::JsonNumber;
use gpumem_model::{named, object};

/// Declares each statistic by its name and what it means in any finding.
macro_rules! statistics {
    ($($Variant:ident = $name:literal: $meaning:literal,)+) => {
        named! {
            /// What a figure measures. Sizes are in bytes, and their names end so.
            #[derive(Debug, Clone, Copy, PartialEq, Eq)]
            pub enum Statistic {
                $(#[doc = $meaning] $Variant = $name,)+
            }
        }

        impl Statistic {
            /// What it means in any finding.
            pub const fn meaning(self) -> &'static str {
                match self {
                    $(Self::$Variant => $meaning,)+
                }
            }
        }
    };
}

statistics! {
    Kept = "kept_bytes": "never given back over the series",
    Outlived = "outlived_bytes": "held by a variable that is gone, and still alive",
    Children = "children_bytes": "held by child processes",
    NRises = "n_rises": "rises that were never given back",
    BlockT = "block_t": "the floor rises: t of the increments between block minima",
    LastQuarterShare = "last_quarter_share": "share of the growth in the last quarter",
    TrendZ = "trend_z": "the level rises: Mann-Kendall z, corrected for autocorrelation",
    LeastQuarterShare = "least_quarter_share": "least share of the growth in a later quarter",
    RelativeRise = "relative_rise":
        "the rise stands out: Sen's slope over the series, in standard deviations",
    LateShare = "late_share": "its last third still rises at this share of the whole rate",
    TailKept = "tail_kept_bytes": "never given back in the second half",
    TailLow = "tail_low_bytes": "the second half stays above what was usual before it",
    TailBlockT = "tail_block_t": "its floor rises: t of the increments between block minima",
    TailRise = "tail_rise":
        "it rises evenly: Sen's slope in standard deviations, 3.46 for a straight line",
    TailLateShare = "tail_late_share": "so does the last third of the second half",
    PBound = "p_bound": "p-value of the trend, corrected for all series",
    LiveAllocations = "live_allocations": "runs in which allocations minus frees grew",
    Held = "held_bytes": "how much more the name holds after these runs",
    Retained = "retained_bytes": "allocated in a traced run and alive at its end",
    Excess = "excess_bytes": "peak above the higher end, against the fence of the others",
    NRetries = "n_retries": "allocations that succeeded only after the cache was flushed",
    UsedShare = "used_share": "rise of the peak over rise of reserved",
    Old = "old_bytes": "what earlier runs had left, and was there all the while",
    Rose = "rose_bytes": "how far the re-run rose above its start, against the new copy",
    LongLived = "long_lived_bytes":
        "alive at the peak, for half of the run or longer, and freed in it",
    InactiveSplitRatio = "inactive_split_ratio":
        "free inside partly used segments, as a share of reserved",
    CacheRatio = "cache_ratio": "(reserved − allocated) / reserved",
    LargestFree = "largest_free_bytes": "the largest request that the cache can serve",
    Reclaimable = "reclaimable_bytes":
        "in segments that are wholly free: what `empty_cache()` would give back",
    Wanted = "wanted_bytes": "the request that failed",
    Usable = "usable_bytes": "free on the device and in the allocator's cache",
    Free = "free_bytes": "free on the device",
    Total = "total_bytes": "the most that could be allocated",
    Allocated = "allocated_bytes": "held by tensors",
    PrivatePools = "private_pools_bytes": "of these, in private pools",
    Unallocated = "unallocated_bytes": "free in the cache, in pieces",
    OtherProcesses = "other_processes_bytes": "held by other processes",
}

impl Statistic {
    /// It is a size in bytes.
    pub fn is_size(self) -> bool {
        self.name().ends_with("_bytes")
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
