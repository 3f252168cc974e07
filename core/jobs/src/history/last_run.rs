//! The last run of a session.

use serde::{Serialize, Serializer};

use gpumem_analyzer::{Analysis, RunRow, analyze, cell_label};
use gpumem_model::recording::{Recording, Status};
use gpumem_model::units::{Bytes, Nanos};

/// The last run of a session that is nested in no other.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct LastRun {
    /// Jupyter's number: `In [12]`.
    pub execution_count: Option<u32>,
    /// The user's label, or the first meaningful line of its source.
    pub label: String,
    /// Whether it had not ended.
    pub is_open: bool,
    /// Whether it ran out of memory and did not continue.
    pub ran_out: bool,
    /// The last instant that is known of the session, since the recording's start.
    #[serde(skip)]
    pub at: Nanos,
    /// The device of which the largest part was used last.
    #[serde(flatten, serialize_with = "or_unknown")]
    pub fullest: Option<Fullest>,
}

/// A device's last use: [`LastRun::fullest`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fullest {
    /// The device's label.
    pub device: String,
    /// Used memory.
    pub used: Bytes,
    /// The smallest limit that applies.
    pub capacity: Bytes,
}

#[expect(clippy::ref_option, reason = "serde passes a reference to the field")]
fn or_unknown<S: Serializer>(fullest: &Option<Fullest>, to: S) -> Result<S::Ok, S::Error> {
    #[derive(Serialize)]
    struct LastLevels<'a> {
        device: Option<&'a str>,
        used_bytes: Option<Bytes>,
        capacity_bytes: Option<Bytes>,
    }

    let fullest = fullest.as_ref();
    LastLevels {
        device: fullest.map(|it| &*it.device),
        used_bytes: fullest.map(|it| it.used),
        capacity_bytes: fullest.map(|it| it.capacity),
    }
    .serialize(to)
}

impl LastRun {
    /// Of a recording; `None` if it has no run.
    pub fn new(recording: &Recording) -> Option<Self> {
        let runs = recording.runs();
        runs.last()?;
        // Any rules do: no verdict is read.
        let analysis = analyze(recording, &recording.header().rules);
        Self::judged(recording, &analysis)
    }

    /// Of a recording that has been analyzed.
    pub fn judged(recording: &Recording, analysis: &Analysis) -> Option<Self> {
        let runs = recording.runs();
        let run = runs.iter().rev().find(|run| run.parent.is_none())?;
        let died_of_it = run
            .oom
            .as_ref()
            .is_some_and(|oom| run.ended.is_none() || !oom.survived);
        let rows = analysis.rows.iter().rev();
        let of_run = rows.take_while(|row| row.run >= run.idx);
        let fullest = of_run
            .filter(|row| row.run == run.idx)
            .filter_map(|row| fullest(recording, row))
            .max_by(|a, b| share(a).total_cmp(&share(b)));
        Some(Self {
            execution_count: run.execution_count,
            label: cell_label(recording, run),
            is_open: run.ended.is_none(),
            ran_out: run.status == Status::OutOfMemory || died_of_it,
            at: latest(recording),
            fullest,
        })
    }
}

/// The last instant at which anything was recorded.
fn latest(recording: &Recording) -> Nanos {
    let finish = recording.finish().map(|finish| finish.at);
    let runs = recording.runs().iter().rev().take(N_LAST);
    let runs = runs.flat_map(|run| {
        let series = recording.series_of(run.idx);
        let points = series.filter_map(|(_, _, points)| points.at().last().copied());
        let latest = points.max();
        [Some(run.started), run.ended, latest].into_iter().flatten()
    });
    finish.into_iter().chain(runs).max().unwrap_or_default()
}

/// Blocks that outlive their cell are not many.
const N_LAST: usize = 64;

/// Used memory of a device at the end of a run, or last in a run that did not end.
fn fullest(recording: &Recording, row: &RunRow) -> Option<Fullest> {
    let capacity = row.capacity.filter(|it| *it > Bytes::ZERO)?;
    let levels = [
        row.device_used,
        row.process_used,
        row.reserved,
        row.allocated,
    ];
    let ended = levels.into_iter().find_map(|(_, after)| after);
    let began = levels.into_iter().find_map(|(before, _)| before);
    let inside = recording
        .samples_of(row.run, row.device)
        .filter_map(|(_, points)| points.last())
        .max_by_key(|point| point.at)
        .and_then(|point| point.device_used.or(point.process_used));
    let open = inside.or(row.so_far).or(began);
    let oom = recording.run(row.run).oom.as_ref();
    // An allocation that failed says how full the device was.
    let at_oom = oom
        .filter(|oom| oom.device == Some(row.device))
        .and_then(|oom| Some(oom.figures.total?.saturating_sub(oom.figures.free?)));
    let used = at_oom.or(ended).or(open)?;
    Some(Fullest {
        device: recording.device(row.device).label.clone(),
        used,
        capacity,
    })
}

fn share(fullest: &Fullest) -> f64 {
    fullest.used.as_f64() / fullest.capacity.as_f64()
}

#[cfg(test)]
mod tests {
    use super::*;
    use gpumem_analyzer::Metric;
    use gpumem_analyzer::testing::{run, session};
    use gpumem_model::recording::{DeviceIdx, Frame, Sample, Samples, Series};

    #[test]
    fn the_last_run_says_how_full_its_device_was() {
        let (recording, _) = session(&[("f()", &vec![run(40); 3])]);
        let last = LastRun::new(&recording).expect("it has runs");
        assert_eq!(last.label, "f()");
        assert!(!last.is_open && !last.ran_out);
        assert!(last.fullest.is_some());
        let run = &recording.runs()[2];
        assert_eq!(Some(last.at), run.ended);
    }

    #[test]
    fn of_a_run_that_did_not_end_the_driver_was_read_last() {
        let open = run(40).status(Status::Running);
        let (mut recording, _) = session(&[("f()", &[run(40), open])]);
        let run = recording.runs()[1].clone();
        let before = recording.runs()[1].levels[0].before.driver.clone();
        let device_used = before.device_used.known().expect("it was read");
        let process_used = before.process_used.known().expect("it was read");
        let risen = Bytes::mib(700);
        let point = Sample {
            at: run.started + Nanos::millis(5),
            device_used: Some(device_used + risen),
            process_used: Some(process_used + risen),
            ..Sample::default()
        };
        let samples = Samples {
            run: run.idx,
            device: DeviceIdx(0),
            series: Series::Sampled,
            points: vec![point].into(),
        };
        recording
            .apply(Frame::Samples(samples))
            .expect("its run is known");
        let last = LastRun::new(&recording).expect("it has runs");
        let fullest = last.fullest.expect("a device was read");
        assert_eq!(fullest.used, device_used + risen);
        let analysis = analyze(&recording, &recording.header().rules);
        let row = &analysis.rows[1];
        assert_eq!(row.metric, Metric::Allocated);
        assert_eq!(row.so_far, row.before.map(|before| before + risen));
    }

    #[test]
    fn a_session_without_runs_has_no_last_one() {
        assert_eq!(LastRun::new(&Recording::default()), None);
    }
}
