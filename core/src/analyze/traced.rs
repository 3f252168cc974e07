//! What the allocator's history of a run says of growth.

use super::finding::Evidence;
use crate::recording::{DeviceIdx, Recording, RunIdx, Trace};
use crate::units::{ByteDelta, Bytes};

/// A run that kept at least this share of the usual growth bears it out.
const BEARS_OUT: f64 = 0.5;

/// A line that kept at least this share of what the run kept is the one to look at.
const ALMOST_ALL: f64 = 0.5;

/// The latest of these runs that was traced.
pub(super) fn latest<'a>(
    recording: &'a Recording,
    runs: &[RunIdx],
    device: DeviceIdx,
) -> Option<&'a Trace> {
    let mut runs = runs.iter().rev();
    runs.find_map(|run| recording.trace(*run, device))
}

/// What the run allocated and was still alive at its end, block by block: what a difference of
/// two levels cannot tell from what happened to be freed meanwhile.
pub(super) fn evidence(recording: &Recording, trace: &Trace, rate: ByteDelta) -> Evidence {
    let number = recording.run(trace.run).execution_count;
    let run = number.map_or_else(|| "one run".to_owned(), |n| format!("In [{n}]"));
    let retained = trace.total.retained.as_f64();
    let words = match line_words(trace) {
        Some(line) => format!("allocated in {run}, traced, and alive at its end: {line}"),
        None => format!("allocated in {run}, traced, and alive at its end"),
    };
    Evidence {
        name: "retained_bytes",
        words,
        value: retained,
        threshold: Some(BEARS_OUT * rate.as_f64()),
        holds: retained > 0.0 && retained >= BEARS_OUT * rate.as_f64(),
    }
}

/// `line 3 kept 420 MiB`, where one line kept most of it.
pub(super) fn line_words(trace: &Trace) -> Option<String> {
    let first = trace.lines.first()?;
    let kept = first.tally.retained;
    let is_most = kept > Bytes::ZERO && kept.as_f64() >= ALMOST_ALL * trace.total.retained.as_f64();
    first
        .line
        .filter(|_| is_most)
        .map(|line| format!("line {line} kept {kept}"))
}
