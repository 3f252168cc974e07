//! The figures behind verdicts.

use gpumem_model::json_form::JsonNumber;
use gpumem_model::object;

/// One figure behind a verdict. `wording::evidence`) explains it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Evidence {
    /// The name of the statistic: `block_t`. Sizes end in `_bytes`.
    pub name: &'static str,
    /// Its value; a size in bytes.
    pub value: f64,
    /// The threshold that it was compared with, if there is one.
    pub threshold: Option<f64>,
    /// Whether it supports the finding.
    pub holds: bool,
}

impl Evidence {
    /// A figure that no threshold applies to.
    pub(super) fn figure(name: &'static str, value: f64) -> Self {
        Self {
            name,
            value,
            threshold: None,
            holds: true,
        }
    }

    /// A figure that supports the finding because it meets its threshold.
    pub(super) fn met(name: &'static str, value: f64, threshold: f64) -> Self {
        Self {
            name,
            value,
            threshold: Some(threshold),
            holds: true,
        }
    }

    /// A figure that supports the finding if it is above its threshold.
    pub(super) fn above(name: &'static str, value: f64, threshold: f64) -> Self {
        Self {
            holds: value > threshold,
            ..Self::met(name, value, threshold)
        }
    }

    /// What a figure of that name means in any finding.
    pub fn meaning(&self) -> &'static str {
        match self.name {
            "kept_bytes" => "never given back over the series",
            "n_rises" => "rises that were never given back",
            "block_t" => "the floor rises: t of the increments between block minima",
            "last_quarter_share" => "share of the growth in the last quarter",
            "trend_z" => "the level rises: Mann-Kendall z, corrected for autocorrelation",
            "least_quarter_share" => "least share of the growth in a later quarter",
            "relative_rise" => {
                "the rise stands out: Sen's slope over the series, in standard deviations"
            }
            "tail_kept_bytes" => "never given back in the second half",
            "tail_late_share" => "so does the last third of the second half",
            "late_share" => "its last third still rises at this share of the whole rate",
            "tail_low_bytes" => "the second half stays above what was usual before it",
            "tail_block_t" => "its floor rises: t of the increments between block minima",
            "tail_rise" => {
                "it rises evenly: Sen's slope in standard deviations, 3.46 for a straight line"
            }
            "p_bound" => "p-value of the trend, corrected for all series",
            "live_allocations" => "runs in which allocations minus frees grew",
            "excess_bytes" => "peak above the higher end, against the fence of the others",
            "n_retries" => "allocations that succeeded only after the cache was flushed",
            "used_share" => "rise of the peak over rise of reserved",
            "old_bytes" => "what earlier runs had left, and was there all the while",
            "rose_bytes" => "how far the re-run rose above its start, against the new copy",
            "long_lived_bytes" => {
                "alive at the peak, for half of the run or longer, and freed in it"
            }
            "inactive_split_ratio" => "free inside partly used segments, as a share of reserved",
            "cache_ratio" => "(reserved − allocated) / reserved",
            "largest_free_bytes" => "the largest request that the cache can serve",
            "reclaimable_bytes" => {
                "in segments that are wholly free: what `empty_cache()` would give back"
            }
            "wanted_bytes" => "the request that failed",
            "usable_bytes" => "free on the device and in the allocator's cache",
            "free_bytes" => "free on the device",
            "total_bytes" => "the most that could be allocated",
            "allocated_bytes" => "held by tensors",
            "private_pools_bytes" => "of these, in private pools",
            "unallocated_bytes" => "free in the cache, in pieces",
            "other_processes_bytes" => "held by other processes",
            name => name,
        }
    }
}

/// A figure with its meaning.
pub(super) struct Explained<'a>(pub(super) &'a Evidence);

object! { Explained<'_>, it => {
    name: it.0.name,
    words: it.0.meaning(),
    value: JsonNumber(it.0.value),
    threshold: it.0.threshold.map(JsonNumber),
    holds: it.0.holds,
}}
