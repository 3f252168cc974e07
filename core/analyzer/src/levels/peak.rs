//! The highest level of a run: what was seen, what the allocator counted, what its history shows.

use gpumem_model::recording::{AllocatorLevels, Level, Recording, Run, RunLevels, Series, Trace};
use gpumem_model::units::{Bytes, Nanos};

use crate::row::{Metric, Peak, of_points};

pub(super) fn peak(
    recording: &Recording,
    run: &Run,
    levels: &RunLevels,
    metric: Metric,
    ends: [Option<Bytes>; 2],
) -> Option<Peak> {
    // What is sampled in a run is sampled in the blocks of it, too.
    let ended = run.ended.unwrap_or(Nanos::new(u64::MAX));
    let around = run.parent.map(|_| recording.outermost(run.idx));
    let sampled_around = around
        .map(|around| recording.samples(around, levels.device, &Series::Sampled))
        .and_then(|points| of_points(points, metric).highest(points.between(run.started, ended)));
    let of_samples = recording
        .samples_of(run.idx, levels.device)
        .filter_map(|(_, points)| of_points(points, metric).highest(0..points.len()));
    let known = ends.into_iter().flatten();
    let seen = known.chain(of_samples).chain(sampled_around).max()?;
    if metric != Metric::Allocated {
        return Some(Peak::AtLeast(seen));
    }
    let peak = allocator_peak(levels, seen);
    let is_alone = matches!(&levels.after, Some(after) if after.allocators.len() == 1);
    let trace = recording.trace(run.idx, levels.device);
    Some(match trace.filter(|_| is_alone) {
        Some(trace) => traced_peak(peak, trace),
        None => peak,
    })
}

/// What the allocator's history adds to the bounds that its counters gave. One without its
/// beginning bounds nothing from above.
fn traced_peak(peak: Peak, trace: &Trace) -> Peak {
    let (low, high) = match peak {
        Peak::Exact(_) => return peak,
        Peak::Between { low, high } => (low, Some(high)),
        Peak::AtLeast(low) => (low, None),
    };
    let of_trace = Some(trace.peak.high).filter(|_| !trace.is_cut);
    let low = low.max(trace.peak.low);
    match high.into_iter().chain(of_trace).min() {
        None => Peak::AtLeast(low),
        Some(high) if high <= low => Peak::Exact(low),
        Some(high) => Peak::Between { low, high },
    }
}

/// What the allocators' own counters add to the highest level seen.
pub(super) fn allocator_peak(levels: &RunLevels, seen: Bytes) -> Peak {
    let after = levels.after.iter().flat_map(|reading| &reading.allocators);
    let bounds: Vec<Bounds> = after
        .map(|after| {
            let mut before = levels.before.allocators.iter();
            let before = before.find(|before| before.source == after.source);
            Bounds::between(before, after, levels.peak_reset)
        })
        .collect();
    // Allocators need not have been at their peaks together.
    let low = bounds.iter().filter_map(|bounds| bounds.low).max();
    let low = seen.max(low.unwrap_or_default());
    let high = bounds
        .iter()
        .map(|bounds| bounds.high)
        .reduce(|sum, high| Some(sum? + high?));
    match high.flatten() {
        None => Peak::AtLeast(low),
        Some(high) if high <= low => Peak::Exact(low),
        Some(high) => Peak::Between { low, high },
    }
}

/// Between which levels one allocator's highest level of a run lies, by its counters.
struct Bounds {
    low: Option<Bytes>,
    high: Option<Bytes>,
}

impl Bounds {
    /// An allocator that was not there `before` had allocated nothing.
    fn between(before: Option<&AllocatorLevels>, after: &AllocatorLevels, is_reset: bool) -> Self {
        let known = |level: fn(&AllocatorLevels) -> &Level| {
            let before = before.map_or(Some(Bytes::ZERO), |before| level(before).known());
            (before, level(after).known())
        };
        let of_peak = match known(|levels| &levels.peak_allocated) {
            // It counts from the reset on; what was before, nobody knows.
            (_, peak) if is_reset => Self {
                low: peak,
                high: None,
            },
            (Some(old), Some(peak)) if peak > old => Self {
                low: Some(peak),
                high: Some(peak),
            },
            (Some(old), Some(_)) => Self {
                low: None,
                high: Some(old),
            },
            _ => Self {
                low: None,
                high: None,
            },
        };
        // Not more than was there, and all that was allocated since, with nothing freed.
        let (start, _) = known(|levels| &levels.allocated);
        let ceiling = match known(|levels| &levels.total_allocated) {
            (Some(then), Some(now)) if now >= then => {
                start.map(|start| start + now.saturating_sub(then))
            }
            _ => None,
        };
        Self {
            low: of_peak.low,
            high: of_peak.high.into_iter().chain(ceiling).min(),
        }
    }
}
