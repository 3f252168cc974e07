//! What a card draws of its finding, below the sentences: a body for each kind that has one.

mod doubling;
mod fragmentation;
mod lines;
mod oom;
mod outlived;
mod retention;

use gpumem_analyzer::{Details, Finding};
use gpumem_model::recording::Run;
use web_sys::Element;

use crate::dom::Maker;
use crate::model::Model;

pub(crate) use oom::cures;

/// What there is to draw of a finding, from top to bottom.
pub(crate) fn of(make: &Maker, model: &Model, finding: &Finding) -> Vec<Element> {
    let mut bodies = Vec::new();
    let units = model.units();
    match &finding.details {
        Details::OutOfMemory(breakdown) => {
            bodies.extend(oom::map(make, model, finding, breakdown));
        }
        Details::Retention(retained) => {
            bodies.push(retention::body(make, model, finding, retained));
        }
        Details::Outlived(details) => {
            bodies.extend(outlived::path(make, finding, details, units));
            bodies.extend(outlived::lanes(make, model.recording(), details, units));
            bodies.extend(outlived::given_back(make, details, units));
        }
        Details::Doubling(details) => bodies.push(doubling::body(make, *details, units)),
        Details::Fragmentation(_) | Details::ReservedGrowth { .. } => {
            bodies.extend(fragmentation::body(make, model, finding));
        }
        _ => {}
    }
    bodies.extend(lines::body(make, model, finding));
    bodies
}

/// Jupyter's number of a run after these words: ` after In [7]`; nothing where it has none.
fn numbered(words: &str, run: &Run) -> String {
    let number = run.execution_count;
    number.map_or_else(String::new, |count| format!("{words}In [{count}]"))
}
