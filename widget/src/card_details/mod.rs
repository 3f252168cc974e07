//! What a card draws of its finding, below the sentences: a body for each kind that has one.

mod doubling;
mod fragmentation;
mod lines;
mod oom;
mod outlived;
mod retention;

use gpumem_analyzer::{Finding, FindingDetails};
use gpumem_model::recording::Run;
use web_sys::Element;

use crate::dom::Maker;
use crate::model::ReportModel;

pub(crate) use oom::cures;

/// The elements below a finding's sentences, from top to bottom.
pub(crate) fn bodies(make: &Maker, model: &ReportModel, finding: &Finding) -> Vec<Element> {
    let mut bodies = Vec::new();
    let units = model.units();
    match &finding.details {
        FindingDetails::OutOfMemory(breakdown) => {
            bodies.extend(oom::map(make, model, finding, breakdown));
        }
        FindingDetails::Retention(retained) => {
            bodies.push(retention::body(make, model, finding, retained));
        }
        FindingDetails::Outlived(details) => {
            bodies.extend(outlived::path(make, finding, details, units));
            bodies.extend(outlived::lanes(make, model.recording(), details, units));
            bodies.extend(outlived::given_back(make, details, units));
        }
        FindingDetails::Doubling(details) => bodies.push(doubling::body(make, *details, units)),
        FindingDetails::Fragmentation(_) | FindingDetails::ReservedGrowth { .. } => {
            bodies.extend(fragmentation::body(make, model, finding));
        }
        _ => {}
    }
    bodies.extend(lines::body(make, model, finding));
    bodies
}

/// A run's execution count after `prefix`, as ` after In [7]`; empty if it has none.
fn numbered(prefix: &str, run: &Run) -> String {
    let number = run.execution_count;
    number.map_or_else(String::new, |count| format!("{prefix}In [{count}]"))
}
