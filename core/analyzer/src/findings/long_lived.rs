//! What a traced run holds at its peak for longer than it may need to.

use std::collections::HashSet;

use super::{Finding, FindingDetails, FindingKind};
use crate::cell::CellRef;
use crate::context::Context;
use crate::evidence::{Evidence, Statistic};
use crate::row::Metric;
use gpumem_model::recording::{Recording, Trace};
use gpumem_model::units::Bytes;

/// Less than this share of the device is no concern.
const LEAST_OF_DEVICE: f64 = 0.05;

/// Less than this share of what the run's peak stood above its start makes no difference.
const LEAST_OF_PEAK: f64 = 0.25;

/// Of the latest traced run of each cell's text, the line that stands out.
pub(super) fn findings(context: Context<'_>) -> Vec<Finding> {
    let recording = context.recording;
    let mut seen = HashSet::new();
    let mut latest: Vec<&Trace> = recording
        .traces()
        .rev()
        .filter(|trace| recording.run(trace.run).parent.is_none())
        .filter(|trace| {
            let key = (recording.run(trace.run).revision, trace.device);
            seen.insert(key)
        })
        .collect();
    latest.reverse();
    let of_each = |trace: &Trace| {
        let capacity = context.capacity(trace.device)?;
        let rose = trace.peak.low.saturating_sub(trace.peak.from_before);
        let least = (LEAST_OF_DEVICE * capacity.as_f64()).max(LEAST_OF_PEAK * rose.as_f64());
        let lines = trace.lines.iter();
        let lines = lines.filter_map(|line| Some((line.line?, line.tally.long_lived)));
        let (line, held) = lines.max_by_key(|(_, held)| *held)?;
        (held.as_f64() >= least).then(|| finding(recording, trace, (line, held), least))
    };
    latest.into_iter().filter_map(of_each).collect()
}

fn finding(
    recording: &Recording,
    trace: &Trace,
    (line, held): (u32, Bytes),
    least: f64,
) -> Finding {
    let run = recording.run(trace.run);
    let device = &recording.device(trace.device).key;
    let details = FindingDetails::LongLived {
        line,
        held,
        peak: trace.peak.low,
    };
    Finding {
        cell: Some(CellRef::for_run(recording, run)),
        runs: vec![trace.run],
        n_runs: 1,
        evidence: vec![Evidence::met(Statistic::LongLived, held.as_f64(), least)],
        ..Finding::about(
            FindingKind::LongLived,
            &format!("{:016x}/{device}", run.revision.0),
            trace.device,
            Metric::Allocated,
            details,
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{run, session};
    use crate::{Rules, analyze};
    use gpumem_model::recording::Frame;
    use gpumem_model::units::Bytes;

    #[track_caller]
    fn check(rose_mib: i64, long_lived_mib: u64, is_reported: bool) {
        let (mut recording, _) = session(&[("h = f(x)", &[run(0).peak(rose_mib).traced()])]);
        let mut trace = recording
            .traces()
            .next()
            .expect("one run is traced")
            .clone();
        trace.lines[0].tally.long_lived = Bytes::mib(long_lived_mib);
        recording
            .apply(Frame::Trace(Box::new(trace)))
            .expect("of the same run");
        let findings = analyze(&recording, &Rules::default()).findings;
        let reported = findings.iter().find(|it| it.kind == FindingKind::LongLived);
        assert_eq!(reported.is_some(), is_reported);
    }

    #[test]
    fn only_memory_large_for_device_and_run_is_reported() {
        check(2000, 1000, true);
        check(2000, 800, false);
        check(8000, 1000, false);
        check(8000, 2000, true);
    }
}
