//! What a traced run holds at its peak for longer than it may need to.

use super::finding::{Evidence, Finding, FindingKind};
use super::levels::{self, DeviceSummary, Lane};
use super::series;
use crate::recording::{LineTally, Recording, Trace};
use crate::sorted::Sorted;
use crate::source_text;

/// Less than this share of the device is no concern.
const LEAST_OF_DEVICE: f64 = 0.05;

/// Less than this share of what the run's peak stood above its start makes no difference.
const LEAST_OF_PEAK: f64 = 0.25;

/// Of the latest traced run of each cell's text, the line that stands out.
pub(super) fn findings(recording: &Recording, devices: &[DeviceSummary]) -> Vec<Finding> {
    let mut seen = Sorted::default();
    let mut latest: Vec<&Trace> = recording
        .traces()
        .rev()
        .filter(|trace| recording.run(trace.run).parent.is_none())
        .filter(|trace| {
            let key = (recording.run(trace.run).revision, trace.device);
            seen.insert(key, ()).is_none()
        })
        .collect();
    latest.reverse();
    let of_each = |trace: &Trace| {
        let capacity = levels::summary(devices, trace.device)?.capacity?;
        let rose = trace.peak.low.saturating_sub(trace.peak.from_before);
        let least = (LEAST_OF_DEVICE * capacity.as_f64()).max(LEAST_OF_PEAK * rose.as_f64());
        let lines = trace.lines.iter().filter(|line| line.line.is_some());
        let line = lines.max_by_key(|line| line.tally.long_lived)?;
        let held = line.tally.long_lived.as_f64();
        (held >= least).then(|| finding(recording, trace, line, least))
    };
    latest.into_iter().filter_map(of_each).collect()
}

fn finding(recording: &Recording, trace: &Trace, line: &LineTally, least: f64) -> Finding {
    let run = recording.run(trace.run);
    let cell = series::cell_ref(recording, run);
    let held = line.tally.long_lived;
    let number = line.line.unwrap_or_default();
    let text = recording.text(run);
    let source = text.and_then(|text| text.lines().nth((number as usize).checked_sub(1)?));
    let place = match source.and_then(source_text::headline) {
        Some(source) => format!("line {number} ({source})"),
        None => format!("line {number}"),
    };
    let subject = format!(
        "{:016x}/{}",
        run.revision.0,
        recording.device(trace.device).key
    );
    Finding {
        title: format!(
            "{}: {place} holds {held} through most of the run",
            cell.label
        ),
        detail: format!(
            "at its peak of {}, and gives it back before the end",
            trace.peak.low
        ),
        cell: Some(cell),
        runs: vec![trace.run],
        n_runs: 1,
        suggestions: vec![
            "`del` it as soon as nothing needs it any more, or work in smaller pieces".to_owned(),
            "what a backward pass needs has to live that long, unless it is computed again: \
             `torch.utils.checkpoint`"
                .to_owned(),
        ],
        evidence: vec![Evidence {
            name: "long_lived_bytes",
            words: "alive at the peak, for half of the run or longer, and freed in it".to_owned(),
            value: held.as_f64(),
            threshold: Some(least),
            holds: true,
        }],
        ..Finding::about(
            FindingKind::LongLived,
            &subject,
            trace.device,
            Lane::Allocated,
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analyze::{Rules, analyze};
    use crate::recording::Frame;
    use crate::testing::{run, session};
    use crate::units::Bytes;

    #[track_caller]
    fn check(rose_mib: i64, long_lived_mib: u64, is_told: bool) {
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
        let told = findings.iter().find(|it| it.kind == FindingKind::LongLived);
        assert_eq!(told.is_some(), is_told);
    }

    #[test]
    fn only_what_is_large_for_the_device_and_for_the_run_is_told() {
        check(2000, 1000, true);
        check(2000, 800, false);
        check(8000, 1000, false);
        check(8000, 2000, true);
    }
}
