//! One row for each reading inside a run.

use std::borrow::Cow;

use super::{Integer, Table, Text, instant, level, signed};
use crate::recording::{DeviceIdx, Recording, RunIdx, Sample, Series};

/// Where a sample is from, and the sample.
struct Row<'a> {
    run: RunIdx,
    device: DeviceIdx,
    series: &'static str,
    label: Option<Cow<'a, str>>,
    sample: Sample,
}

/// The samples as a table: those of the sampler, of marks (with their label), of loops (with their
/// number) and of traces.
pub fn samples(recording: &Recording) -> Table {
    let rows = rows(recording);
    let mut table = Table::default();
    table.add(
        "run",
        &rows,
        Integer(|row: &Row<'_>| Some(row.run.0.into())),
    );
    let device = |row: &Row<'_>| Some(recording.device(row.device).label.clone());
    table.add("device", &rows, Text(device));
    table.add(
        "series",
        &rows,
        Text(|row: &Row<'_>| Some(row.series.to_owned())),
    );
    table.add(
        "label",
        &rows,
        Text(|row: &Row<'_>| row.label.as_deref().map(str::to_owned)),
    );
    let ordinal = |row: &Row<'_>| signed(row.sample.ordinal);
    table.add("ordinal", &rows, Integer(ordinal));
    let at = |row: &Row<'_>| instant(Some(row.sample.at));
    table.add("at_nanos", &rows, Integer(at));
    let allocated = |row: &Row<'_>| level(row.sample.allocated);
    table.add("allocated_bytes", &rows, Integer(allocated));
    let reserved = |row: &Row<'_>| level(row.sample.reserved);
    table.add("reserved_bytes", &rows, Integer(reserved));
    let process_used = |row: &Row<'_>| level(row.sample.process_used);
    table.add("process_used_bytes", &rows, Integer(process_used));
    let device_used = |row: &Row<'_>| level(row.sample.device_used);
    table.add("device_used_bytes", &rows, Integer(device_used));
    table
}

fn rows(recording: &Recording) -> Vec<Row<'_>> {
    let mut rows = Vec::new();
    for (run, device, series, points) in recording.all_samples() {
        let (series, label) = match series {
            Series::Sampled => ("sampled", None),
            Series::Marked(label) => ("marked", Some(Cow::from(label.as_str()))),
            Series::Loop(idx) => ("loop", Some(Cow::from(idx.0.to_string()))),
        };
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
            device: trace.device,
            series: "traced",
            label: None,
            sample: *sample,
        };
        rows.extend(trace.steps.iter().map(row));
    }
    rows.sort_by_key(|row| row.run);
    rows
}
