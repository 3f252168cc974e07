//! What the allocator's history of a run says of growth.

use super::growth_details::TracedRun;
use crate::evidence::{Evidence, Statistic};
use gpumem_model::recording::{DeviceIdx, Recording, RunIdx, Trace};
use gpumem_model::units::{ByteDelta, Bytes};

/// What lies this near to the usual growth is the same, rounding aside.
const NEAR: f64 = 0.1;

/// The latest of these runs that was traced.
pub(super) fn latest<'a>(
    recording: &'a Recording,
    runs: &[RunIdx],
    device: DeviceIdx,
) -> Option<&'a Trace> {
    let mut runs = runs.iter().rev();
    runs.find_map(|run| recording.trace(*run, device))
}

/// What the run allocated and was still alive at its end, block by block. Growth cannot be more
/// than that; it can be less, where a run's result takes the place of the one before.
pub(super) fn evidence(trace: &Trace, rate: ByteDelta) -> Evidence {
    let (retained, least) = (trace.total.retained.as_f64(), (1.0 - NEAR) * rate.as_f64());
    Evidence {
        holds: retained > 0.0 && retained >= least,
        ..Evidence::met(Statistic::Retained, retained, least)
    }
}

/// The run, with the line that kept as much as every run keeps, or the line that kept most, where
/// all lines together kept as much.
pub(super) fn run(trace: &Trace, rate: ByteDelta) -> TracedRun {
    TracedRun {
        run: trace.run,
        line: line(trace, rate),
    }
}

fn line(trace: &Trace, rate: ByteDelta) -> Option<(u32, Bytes)> {
    let is_rate = |kept: Bytes| {
        kept > Bytes::ZERO && (kept.as_f64() - rate.as_f64()).abs() <= NEAR * rate.as_f64()
    };
    let mut lines = trace.lines.iter();
    let alone = lines.find(|line| is_rate(line.tally.retained));
    let heaviest = trace
        .lines
        .first()
        .filter(|_| is_rate(trace.total.retained));
    let found = alone.or(heaviest)?;
    Some((found.line?, found.tally.retained))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{run as play, session};
    use gpumem_model::recording::{AllocationTally, LineTally};

    #[track_caller]
    fn check(kept_mib: &[u64], rate_mib: i64, expected: Option<(u32, u64)>, holds: bool) {
        let (recording, _) = session(&[("f()", &[play(1).traced()])]);
        let mut trace = recording
            .traces()
            .next()
            .expect("one run is traced")
            .clone();
        let tally = |mib: u64| AllocationTally {
            retained: Bytes::mib(mib),
            ..AllocationTally::default()
        };
        trace.total = tally(kept_mib.iter().sum());
        let lines = (1..).zip(kept_mib).map(|(line, mib)| LineTally {
            line: Some(line),
            tally: tally(*mib),
        });
        trace.lines = lines.collect();
        trace
            .lines
            .sort_by_key(|line| std::cmp::Reverse(line.tally.retained));
        let rate = ByteDelta::new(rate_mib << 20);
        let expected = expected.map(|(line, kept)| (line, Bytes::mib(kept)));
        assert_eq!(line(&trace, rate), expected);
        assert_eq!(evidence(&trace, rate).holds, holds);
    }

    #[test]
    fn the_line_is_named_that_keeps_what_every_run_keeps() {
        check(&[8, 4], 4, Some((2, 4)), true);
        check(&[5, 4], 9, Some((1, 5)), true);
        check(&[8, 8], 4, None, true);
        check(&[1, 1], 4, None, false);
        check(&[], 4, None, false);
    }
}
