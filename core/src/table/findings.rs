//! One row for each finding, worst first.

use super::{Integer, Table, Text, change};
use crate::analyze::{Analysis, Finding, State, Withdrawn};
use crate::recording::Recording;
use crate::units::Units;
use crate::wording;

/// The findings as a table. What is nested, as the holders, is named by its first.
pub fn findings(recording: &Recording, analysis: &Analysis) -> Table {
    let rows = &analysis.findings;
    let mut table = Table::default();
    verdicts(&mut table, rows);
    places(&mut table, recording, rows);
    words(&mut table, recording, rows);
    remedies(&mut table, rows);
    table
}

fn verdicts(table: &mut Table, rows: &[Finding]) {
    table.add("id", rows, Text(|it: &Finding| Some(it.id.clone())));
    let kind = |it: &Finding| Some(it.kind.name().to_owned());
    table.add("kind", rows, Text(kind));
    let severity = |it: &Finding| Some(it.severity.name().to_owned());
    table.add("severity", rows, Text(severity));
    let state = |it: &Finding| it.state.map(State::name).map(str::to_owned);
    table.add("state", rows, Text(state));
    let withdrawn = |it: &Finding| it.withdrawn.map(Withdrawn::name).map(str::to_owned);
    table.add("withdrawn", rows, Text(withdrawn));
}

fn places(table: &mut Table, recording: &Recording, rows: &[Finding]) {
    let cell = |it: &Finding| Some(it.cell.as_ref()?.label.clone());
    table.add("cell", rows, Text(cell));
    let id = |it: &Finding| Some(it.cell.as_ref()?.id.clone());
    table.add("cell_id", rows, Text(id));
    let path = |it: &Finding| (!it.path.is_empty()).then(|| it.path.join(" › "));
    table.add("path", rows, Text(path));
    let device = |it: &Finding| Some(recording.device(it.known_device()?).label.clone());
    table.add("device", rows, Text(device));
    let metric = |it: &Finding| Some(it.metric.name().to_owned());
    table.add("metric", rows, Text(metric));
    table.add(
        "n_runs",
        rows,
        Integer(|it: &Finding| i64::try_from(it.n_runs).ok()),
    );
    let rate = |it: &Finding| change(it.growth().map(|growth| growth.bytes_per_run));
    table.add("bytes_per_run", rows, Integer(rate));
}

fn words(table: &mut Table, recording: &Recording, rows: &[Finding]) {
    let words = |it: &Finding| wording::words(recording, it, Units::Binary);
    let title = |it: &Finding| Some(wording::plain(&words(it).title));
    table.add("title", rows, Text(title));
    let detail = |it: &Finding| Some(wording::plain(&words(it).detail));
    table.add("detail", rows, Text(detail));
}

fn remedies(table: &mut Table, rows: &[Finding]) {
    let holder = |it: &Finding| Some(it.holders.first()?.name.clone());
    table.add("holder", rows, Text(holder));
    let path = |it: &Finding| Some(it.holders.first()?.path.clone());
    table.add("holder_path", rows, Text(path));
    let before = |it: &Finding| it.fix.as_ref()?.before.clone();
    table.add("fix_before", rows, Text(before));
    let after = |it: &Finding| Some(it.fix.as_ref()?.after.clone());
    table.add("fix_after", rows, Text(after));
}
