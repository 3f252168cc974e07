//! Explanations of the figures behind a verdict.

use super::Teller;
use crate::analyze::{Details, Evidence, Finding, FindingKind};
use crate::recording::Recording;
use crate::units::Units;

/// What one figure of a finding means, in plain words.
pub fn evidence(
    recording: &Recording,
    finding: &Finding,
    figure: &Evidence,
    units: Units,
) -> String {
    let teller = Teller {
        recording,
        finding,
        units,
    };
    match figure.name {
        "held_bytes" => held(&teller),
        "retained_bytes" => retained(&teller),
        "kept_bytes" if finding.kind == FindingKind::Retention => {
            "kept there, and none of your names reaches it".to_owned()
        }
        "largest_free_bytes" if finding.kind == FindingKind::OutOfMemory => {
            "the largest piece of the cache".to_owned()
        }
        name => self::figure(name).to_owned(),
    }
}

/// What a figure of that name means in any finding.
pub(crate) fn figure(name: &'static str) -> &'static str {
    match name {
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
        "long_lived_bytes" => "alive at the peak, for half of the run or longer, and freed in it",
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

fn held(teller: &Teller<'_>) -> String {
    let first = teller.finding.holders.first();
    let name = first.map_or("the name", |holder| &holder.name);
    format!("how much more {name} holds after these runs")
}

fn retained(teller: &Teller<'_>) -> String {
    let Details::Growth(details) = &teller.finding.details else {
        return String::new();
    };
    let Some(traced) = details.traced else {
        return String::new();
    };
    let number = teller.recording.run(traced.run).execution_count;
    let run = number.map_or_else(|| "one run".to_owned(), |n| format!("In [{n}]"));
    let line = traced.line.map_or_else(String::new, |(line, kept)| {
        format!(": line {line} kept {}", teller.units.size(kept))
    });
    format!("allocated in {run}, traced, and alive at its end{line}")
}
