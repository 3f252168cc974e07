//! One row for each finding, worst first.

use super::Table;
use crate::figures::{Figure, Value};
use gpumem_analyzer::{Analysis, Finding, State, Withdrawn};
use gpumem_model::recording::Recording;
use gpumem_model::units::Units;
use gpumem_wording as wording;
use gpumem_wording::Presentation;

/// A finding, and what is said of it.
struct FindingRow<'a> {
    recording: &'a Recording,
    finding: &'a Finding,
    shown: Presentation,
}

/// The findings as a table. What is nested, as the holders, is named by its first.
pub fn findings(recording: &Recording, analysis: &Analysis) -> Table {
    let rows = analysis.findings.iter().map(|finding| FindingRow {
        recording,
        finding,
        shown: wording::present(recording, finding, Units::Binary),
    });
    Table::new(&rows.collect::<Vec<_>>(), figures())
}

fn figures<'a>() -> [Figure<FindingRow<'a>>; 18] {
    use Value::{Change, Count, Name, Text};

    [
        Figure::new("id", Text(|it| Some(it.finding.id.clone()))),
        Figure::new("kind", Name(|it| Some(it.finding.kind.name()))),
        Figure::new("severity", Name(|it| Some(it.finding.severity.name()))),
        Figure::new("state", Name(|it| it.finding.state.map(State::name))),
        Figure::new(
            "withdrawn",
            Name(|it| it.finding.withdrawn.map(Withdrawn::name)),
        ),
        Figure::new(
            "cell",
            Text(|it| Some(it.finding.cell.as_ref()?.label.clone())),
        ),
        Figure::new(
            "cell_id",
            Text(|it| Some(it.finding.cell.as_ref()?.id.clone())),
        ),
        Figure::new(
            "path",
            Text(|it| (!it.finding.path.is_empty()).then(|| it.finding.path.join(" › "))),
        ),
        Figure::new(
            "device",
            Text(|it| {
                Some(
                    it.recording
                        .device(it.finding.known_device()?)
                        .label
                        .clone(),
                )
            }),
        ),
        Figure::new("metric", Name(|it| Some(it.finding.metric.name()))),
        Figure::new("n_runs", Count(|it| Some(it.finding.n_runs as u64))),
        Figure::new(
            "bytes_per_run",
            Change(|it| Some(it.finding.growth()?.bytes_per_run)),
        ),
        Figure::new("title", Text(|it| Some(it.shown.title.plain()))),
        Figure::new("detail", Text(|it| Some(it.shown.detail().plain()))),
        Figure::new(
            "holder",
            Text(|it| Some(it.finding.holders.first()?.name.clone())),
        ),
        Figure::new(
            "holder_path",
            Text(|it| Some(it.finding.holders.first()?.path.clone())),
        ),
        Figure::new(
            "fix_before",
            Text(|it| it.finding.fix.as_ref()?.before.clone()),
        ),
        Figure::new(
            "fix_after",
            Text(|it| Some(it.finding.fix.as_ref()?.after.clone())),
        ),
    ]
}
