//! One row for each reading inside a run.

use std::borrow::Cow;

use super::Table;
use crate::figures::figures;
use gpumem_model::recording::{Recording, RunIdx, Sample, Series};

struct SampleRow<'a> {
    run: RunIdx,
    device: &'a str,
    series: &'static str,
    label: Option<Cow<'a, str>>,
    sample: Sample,
}

/// The samples as a table: those of the sampler, of marks (with their label), of loops (with their
/// number) and of traces.
pub fn samples(recording: &Recording) -> Table {
    let figures = figures![
        run: Count(|row: &SampleRow<'_>| Some(row.run.0.into())),
        device: Text(|row| Some(row.device.to_owned())),
        series: Name(|row| Some(row.series)),
        label: Text(|row| row.label.as_deref().map(str::to_owned)),
        ordinal: Count(|row| Some(row.sample.ordinal)),
        at_nanos: Nanos(|row| Some(row.sample.at)),
        allocated_bytes: Bytes(|row| row.sample.allocated),
        reserved_bytes: Bytes(|row| row.sample.reserved),
        process_used_bytes: Bytes(|row| row.sample.process_used),
        device_used_bytes: Bytes(|row| row.sample.device_used),
    ];
    Table::new(&rows(recording), figures)
}

fn rows(recording: &Recording) -> Vec<SampleRow<'_>> {
    let mut rows = Vec::new();
    for (run, device, series, points) in recording.all_samples() {
        let (series, label) = match series {
            Series::Sampled => ("sampled", None),
            Series::Marked(label) => ("marked", Some(Cow::from(label.as_str()))),
            Series::Loop(idx) => ("loop", Some(Cow::from(idx.0.to_string()))),
        };
        let device = &*recording.device(device).label;
        let row = |sample| SampleRow {
            run,
            device,
            series,
            label: label.clone(),
            sample,
        };
        rows.extend(points.iter().map(row));
    }
    for trace in recording.traces() {
        let row = |sample: &Sample| SampleRow {
            run: trace.run,
            device: &recording.device(trace.device).label,
            series: "traced",
            label: None,
            sample: *sample,
        };
        rows.extend(trace.steps.iter().map(row));
    }
    rows.sort_by_key(|row| row.run);
    rows
}
