//! The name of a row: the most telling line of its cell.

use super::super::device_view::DeviceView;
use gpumem_analyzer::{Finding, FindingDetails, cell_label};
use gpumem_model::printable::printable;
use gpumem_model::recording::Run;

/// The user's label; else the finding's line, or the cell's usual name.
pub(super) fn row_name(
    session: &DeviceView<'_>,
    runs: &[&Run],
    finding: Option<&Finding>,
) -> String {
    let latest = runs.last().expect("a cell with a row has runs");
    let label = latest.label.clone();
    let name = label
        .or_else(|| finding.and_then(line_of))
        .unwrap_or_else(|| cell_label(session.recording, latest));
    printable(&name)
}

/// The line that a finding is about.
fn line_of(finding: &Finding) -> Option<String> {
    let statement = match &finding.details {
        FindingDetails::Growth(details) => details.statement.clone(),
        _ => None,
    };
    let fix = finding.fix.as_ref().filter(|fix| !fix.elsewhere);
    let line = statement.or_else(|| fix?.before.clone())?;
    let first = line.lines().map(str::trim).find(|line| !line.is_empty());
    first.map(str::to_owned)
}
