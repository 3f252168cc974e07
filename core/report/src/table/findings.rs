//! One row for each finding, worst first.

use super::Table;
use crate::figures::{RunFigure, figures};
use gpumem_analyzer::{Analysis, Finding, GrowthVerdict, Withdrawn};
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
    Table::new(&rows.collect::<Vec<_>>(), finding_figures())
}

fn finding_figures<'a>() -> [RunFigure<FindingRow<'a>>; 18] {
    figures![
        id: Text(|it| Some(it.finding.id.clone())),
        kind: Name(|it| Some(it.finding.kind.name())),
        severity: Name(|it| Some(it.finding.severity.name())),
        state: Name(|it| it.finding.state.map(GrowthVerdict::name)),
        withdrawn: Name(|it| it.finding.withdrawn.map(Withdrawn::name)),
        cell: Text(|it| Some(it.finding.cell.as_ref()?.label.clone())),
        cell_id: Text(|it| Some(it.finding.cell.as_ref()?.id.clone())),
        path: Text(|it| (!it.finding.path.is_empty()).then(|| it.finding.path.join(" › "))),
        device: Text(|it| Some(it.recording.device(it.finding.known_device()?).label.clone())),
        metric: Name(|it| Some(it.finding.metric.name())),
        n_runs: Count(|it| Some(it.finding.n_runs as u64)),
        bytes_per_run: Change(|it| Some(it.finding.growth()?.bytes_per_run)),
        title: Text(|it| Some(it.shown.title.plain())),
        detail: Text(|it| Some(it.shown.detail().plain())),
        holder: Text(|it| Some(it.finding.holders.first()?.name.clone())),
        holder_path: Text(|it| Some(it.finding.holders.first()?.path.clone())),
        fix_before: Text(|it| it.finding.fix.as_ref()?.before.clone()),
        fix_after: Text(|it| Some(it.finding.fix.as_ref()?.after.clone())),
    ]
}
