//! One row for each run and device.

use super::{Flag, Integer, Table, Text, change, instant, level, signed};
use crate::analyze::{Analysis, Peak, RunRow, cell_label};
use crate::recording::{Recording, Run};
use crate::units::Bytes;

/// The runs as a table.
pub fn runs(recording: &Recording, analysis: &Analysis) -> Table {
    let rows = &analysis.rows;
    let mut table = Table::default();
    places(&mut table, recording, rows);
    times(&mut table, recording, rows);
    judged(&mut table, rows);
    levels(&mut table, rows);
    table
}

fn places(table: &mut Table, recording: &Recording, rows: &[RunRow]) {
    let run = |row: &RunRow| recording.run(row.run);
    table.add("run", rows, Integer(|row: &RunRow| Some(row.run.0.into())));
    let device = |row: &RunRow| Some(recording.device(row.device).label.clone());
    table.add("device", rows, Text(device));
    let cell = |row: &RunRow| Some(cell_label(recording, run(row)));
    table.add("cell", rows, Text(cell));
    let id = |row: &RunRow| Some(recording.cell(run(row).cell).id.clone());
    table.add("cell_id", rows, Text(id));
    let parent = |row: &RunRow| Some(run(row).parent?.0.into());
    table.add("parent", rows, Integer(parent));
    table.add("label", rows, Text(|row: &RunRow| run(row).label.clone()));
    let number = |row: &RunRow| run(row).execution_count.map(i64::from);
    table.add("execution_count", rows, Integer(number));
    let status = |row: &RunRow| Some(run(row).status.name().to_owned());
    table.add("status", rows, Text(status));
}

fn times(table: &mut Table, recording: &Recording, rows: &[RunRow]) {
    let run = |row: &RunRow| recording.run(row.run);
    let duration = |run: &Run| Some(run.ended?.since(run.started));
    table.add(
        "started_nanos",
        rows,
        Integer(|row: &RunRow| instant(Some(run(row).started))),
    );
    let ended = |row: &RunRow| instant(run(row).ended);
    table.add("ended_nanos", rows, Integer(ended));
    let duration = |row: &RunRow| instant(duration(run(row)));
    table.add("duration_nanos", rows, Integer(duration));
}

fn judged(table: &mut Table, rows: &[RunRow]) {
    let metric = |row: &RunRow| Some(row.metric.name().to_owned());
    table.add("metric", rows, Text(metric));
    table.add(
        "before_bytes",
        rows,
        Integer(|row: &RunRow| level(row.before)),
    );
    table.add(
        "after_bytes",
        rows,
        Integer(|row: &RunRow| level(row.after)),
    );
    table.add("kept_bytes", rows, Integer(|row: &RunRow| change(row.kept)));
    let moved = |row: &RunRow| change(row.overlap?.moved);
    table.add("overlap_bytes", rows, Integer(moved));
    let peak = |row: &RunRow| level(row.peak.map(Peak::low));
    table.add("peak_bytes", rows, Integer(peak));
    table.add(
        "peak_high_bytes",
        rows,
        Integer(|row: &RunRow| level(high(row))),
    );
    let is_exact = |row: &RunRow| Some(row.peak.is_some_and(Peak::is_exact));
    table.add("peak_exact", rows, Flag(is_exact));
}

fn high(row: &RunRow) -> Option<Bytes> {
    match row.peak? {
        Peak::Exact(high) | Peak::Between { high, .. } => Some(high),
        Peak::AtLeast(_) => None,
    }
}

fn levels(table: &mut Table, rows: &[RunRow]) {
    type Ends = fn(&RunRow) -> (Option<Bytes>, Option<Bytes>);
    let ends: [([&str; 2], Ends); 4] = [
        (["allocated_before_bytes", "allocated_after_bytes"], |row| {
            row.allocated
        }),
        (["reserved_before_bytes", "reserved_after_bytes"], |row| {
            row.reserved
        }),
        (
            ["process_used_before_bytes", "process_used_after_bytes"],
            |row| row.process_used,
        ),
        (
            ["device_used_before_bytes", "device_used_after_bytes"],
            |row| row.device_used,
        ),
    ];
    for ([before, after], ends) in ends {
        table.add(before, rows, Integer(|row: &RunRow| level(ends(row).0)));
        table.add(after, rows, Integer(|row: &RunRow| level(ends(row).1)));
    }
    table.add(
        "capacity_bytes",
        rows,
        Integer(|row: &RunRow| level(row.capacity)),
    );
    let retries = |row: &RunRow| signed(row.n_retries?);
    table.add("n_retries", rows, Integer(retries));
    let before = |row: &RunRow| signed(row.n_blocks.0?);
    table.add("n_blocks_before", rows, Integer(before));
    let after = |row: &RunRow| signed(row.n_blocks.1?);
    table.add("n_blocks_after", rows, Integer(after));
}
