//! What a row calls its cell: the line that tells most of it.

use super::super::device_view::DeviceView;
use gpumem_analyzer::{Details, Finding, cell_label};
use gpumem_model::printable::printable;
use gpumem_model::recording::Run;
use gpumem_model::source_text;

/// The user's label; else the finding's line, the line that kept most, the last line that does something.
pub(super) fn of(session: &DeviceView<'_>, runs: &[&Run], finding: Option<&Finding>) -> String {
    let latest = runs.last().expect("a cell with a row has runs");
    let label = latest.label.clone();
    let name = label
        .or_else(|| finding.and_then(line_of))
        .or_else(|| kept_most(session, runs))
        .or_else(|| source_text::telling_line(session.recording.text(latest)?))
        .unwrap_or_else(|| cell_label(session.recording, latest));
    printable(&name)
}

/// The line that a finding is about.
fn line_of(finding: &Finding) -> Option<String> {
    let statement = match &finding.details {
        Details::Growth(details) => details.statement.clone(),
        _ => None,
    };
    let fix = finding.fix.as_ref().filter(|fix| !fix.elsewhere);
    let line = statement.or_else(|| fix?.before.clone())?;
    let first = line.lines().map(str::trim).find(|line| !line.is_empty());
    first.map(str::to_owned)
}

/// Of the latest run that was traced.
fn kept_most(session: &DeviceView<'_>, runs: &[&Run]) -> Option<String> {
    let traced = |run: &&Run| Some((session.recording.trace(run.idx, session.device)?, run.idx));
    let (trace, run) = runs.iter().rev().find_map(traced)?;
    let most = trace.lines.iter().max_by_key(|line| line.tally.retained)?;
    let line = most.line.filter(|_| most.tally.retained.get() > 0)?;
    let text = session.recording.text(session.recording.run(run))?;
    let line = source_text::line(text, line)?.trim();
    (!line.is_empty()).then(|| line.to_owned())
}
