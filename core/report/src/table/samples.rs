//! One row for each reading inside a run.

use std::borrow::Cow;

use super::Table;
use crate::figures::{Figure, Value};
use gpumem_model::recording::{Recording, RunIdx, Sample, Series};

/// Where a sample is from, and the sample.
struct Row<'a> {
    run: RunIdx,
    device: &'a str,
    series: &'static str,
    label: Option<Cow<'a, str>>,
    sample: Sample,
}

/// The samples as a table: those of the sampler, of marks (with their label), of loops (with their
/// number) and of traces.
pub fn samples(recording: &Recording) -> Table {
    use Value::{Bytes, Count, Name, Nanos, Text};

    let figures = [
        Figure::new("run", Count(|row: &Row<'_>| Some(row.run.0.into()))),
        Figure::new("device", Text(|row| Some(row.device.to_owned()))),
        Figure::new("series", Name(|row| Some(row.series))),
        Figure::new("label", Text(|row| row.label.as_deref().map(str::to_owned))),
        Figure::new("ordinal", Count(|row| Some(row.sample.ordinal))),
        Figure::new("at_nanos", Nanos(|row| Some(row.sample.at))),
        Figure::new("allocated_bytes", Bytes(|row| row.sample.allocated)),
        Figure::new("reserved_bytes", Bytes(|row| row.sample.reserved)),
        Figure::new("process_used_bytes", Bytes(|row| row.sample.process_used)),
        Figure::new("device_used_bytes", Bytes(|row| row.sample.device_used)),
    ];
    Table::new(&rows(recording), figures)
}

fn rows(recording: &Recording) -> Vec<Row<'_>> {
    let mut rows = Vec::new();
    for (run, device, series, points) in recording.all_samples() {
        let (series, label) = match series {
            Series::Sampled => ("sampled", None),
            Series::Marked(label) => ("marked", Some(Cow::from(label.as_str()))),
            Series::Loop(idx) => ("loop", Some(Cow::from(idx.0.to_string()))),
        };
        let device = &*recording.device(device).label;
        let row = |sample| Row {
            run,
            device,
            series,
            label: label.clone(),
            sample,
        };
        rows.extend(points.iter().map(row));
    }
    for trace in recording.traces() {
        let row = |sample: &Sample| Row {
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
