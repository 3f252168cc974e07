//! A row that was opened: what was found in its cell, its runs, and who holds what it kept.

use gpumem_core::analyze::Finding;
use gpumem_core::chart::CellRow;
use gpumem_core::collect::CollectVec;
use gpumem_core::recording::RunIdx;
use gpumem_core::wording;
use web_sys::Element;

use super::runs;
use crate::dom::{Dom, Maker};
use crate::holder_list;
use crate::model::Model;

/// The latest runs that are listed; the table of runs has the others.
const MAX_RUNS: usize = 8;

/// What stands below an open row.
pub(crate) fn of(make: &Maker, model: &Model, row: &CellRow) -> Dom<Vec<Element>> {
    let device = model.state().device;
    let is_about = |finding: &&Finding| {
        let cell = finding.cell.as_ref().map(|cell| cell.idx);
        finding.device == device && cell == Some(row.cell)
    };
    let findings = model.analysis().findings.iter().filter(is_about);
    let mut content = Vec::new();
    for finding in findings.clone() {
        let words = wording::words(model.recording(), finding, model.units());
        let words = format!(
            "{} {}",
            wording::icon(finding),
            words.title.replace('`', "")
        );
        let link = make.link("card", &finding.id, &words)?;
        content.push(make.group("p", &[], &[&link])?);
    }
    let latest: Vec<RunIdx> = row.runs.iter().rev().take(MAX_RUNS).copied().collect_vec();
    content.push(runs::table(make, model, &latest)?);
    let n_more = row.runs.len().saturating_sub(MAX_RUNS);
    if n_more > 0 {
        let words = format!("{n_more} more in the table of runs");
        content.push(make.text("p.muted", &[], &words)?);
    }
    let mut held = findings.filter(|finding| !finding.holders.is_empty());
    if let Some(finding) = held.next() {
        content.push(holder_list::holders(make, finding, model.units())?);
    }
    Ok(content)
}
