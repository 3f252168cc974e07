//! An opened row: its cell's findings, the first of them in full, and its runs.

use gpumem_analyzer::Finding;
use gpumem_charts::CellRow;
use gpumem_model::recording::RunIdx;
use gpumem_wording::present;
use web_sys::Element;

use super::runs;
use crate::dom::Maker;
use crate::full;
use crate::model::ReportModel;

/// The latest runs that are listed; the table of runs has the others.
const MAX_RUNS: usize = 8;

/// The content below an open row, after the chart of its long run, if it has one.
pub(crate) fn content(
    make: &Maker,
    model: &ReportModel,
    row: &CellRow,
    is_long: bool,
) -> Vec<Element> {
    let mut content = Vec::new();
    let mut in_full = None;
    for finding in findings(model, row) {
        let shown = present(model.recording(), finding, model.units());
        let title = format!("{} {}", shown.sign, shown.title.plain());
        let link = make.link("card", &finding.id, &title);
        content.push(make.group("p", &[], &[&link]));
        if in_full.is_none() {
            let is_drawn = is_long && finding.in_loop().is_some();
            in_full = Some(full::body(make, model, finding, (&shown, is_drawn)));
        }
    }
    content.extend(in_full);
    if is_long {
        let close = make.link("row", &row.cell.0.to_string(), "Close ▴");
        content.push(make.group("p.close", &[], &[&close]));
        if row.runs.len() == 1 {
            return content;
        }
    }
    let latest: Vec<RunIdx> = row.runs.iter().rev().take(MAX_RUNS).copied().collect();
    content.push(runs::table(make, model, &latest));
    let n_more = row.runs.len().saturating_sub(MAX_RUNS);
    if n_more > 0 {
        let words = format!("{n_more} more in the table of runs");
        content.push(make.text("p.muted", &[], &words));
    }
    content
}

/// The finding that an open row shows in full.
pub(crate) fn finding<'a>(model: &'a ReportModel, row: &CellRow) -> Option<&'a Finding> {
    findings(model, row).next()
}

fn findings<'a>(model: &'a ReportModel, row: &CellRow) -> impl Iterator<Item = &'a Finding> {
    let (device, cell) = (model.state().device, row.cell);
    let is_about = move |finding: &&Finding| {
        let of = finding.cell.as_ref().map(|cell| cell.idx);
        finding.device == device && of == Some(cell)
    };
    model.analysis().findings.iter().filter(is_about)
}
