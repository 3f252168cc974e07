//! The report as a table, for those who do not see the charts.

use gpumem_core::analyze::{Finding, cell_label};
use gpumem_core::recording::CellIdx;
use gpumem_core::wording;
use web_sys::Element;

use crate::dom::{Dom, Maker};
use crate::model::Model;
use crate::readout::{self, Readout};

/// The rows of the table: a line for each cell.
pub(crate) fn rows(make: &Maker, model: &Model) -> Dom<Vec<Element>> {
    let caption = make.text("caption", &[], "Cells and what was found in them")?;
    let names = make.empty("tr", &[])?;
    for name in ["cell", "runs", "last run", "findings"] {
        names.append_child(&make.text("th", &[("scope", "col")], name)?.into())?;
    }
    let head = make.group("thead", &[], &[&names])?;
    let body = make.empty("tbody", &[])?;
    for cell in model.recording().cells() {
        body.append_child(&row(make, model, cell.idx)?.into())?;
    }
    Ok(vec![caption, head, body])
}

fn row(make: &Maker, model: &Model, cell: CellIdx) -> Dom<Element> {
    let recording = model.recording();
    let runs = || recording.runs().iter().filter(|run| run.cell == cell);
    let device = model.state().device;
    let last = runs().next_back().map(|run| {
        // The head of the row has the name.
        let read = Readout {
            name: String::new(),
            ..readout::of_run(recording, model.analysis(), device, run.idx, model.units())
        };
        (cell_label(recording, run), read.sentence())
    });
    let (name, last) = last.unwrap_or_default();
    let is_of_cell =
        |finding: &&Finding| finding.cell.as_ref().is_some_and(|found| found.idx == cell);
    let findings = model.analysis().findings.iter();
    let found: Vec<&str> = findings.filter(is_of_cell).map(wording::heading).collect();
    make.group(
        "tr",
        &[],
        &[
            &make.text("th", &[("scope", "row"), ("dir", "auto")], &name)?,
            &make.text("td", &[], &runs().count().to_string())?,
            &make.text("td", &[], &last)?,
            &make.text("td", &[], &found.join(", "))?,
        ],
    )
}
