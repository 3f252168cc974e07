//! What a card draws of its finding, below the sentences: a body for each kind that has one.

mod bars;
mod doubling;
mod fragmentation;
mod lines;
mod oom;
mod retention;
mod segments;

use gpumem_core::analyze::{Figures, Finding, FindingKind};
use gpumem_core::recording::Run;
use web_sys::Element;

use crate::dom::{Dom, Maker};
use crate::model::Model;

/// What there is to draw of a finding, from top to bottom.
pub(crate) fn of(make: &Maker, model: &Model, finding: &Finding) -> Dom<Vec<Element>> {
    let mut bodies = Vec::new();
    match &finding.figures {
        Some(Figures::OutOfMemory(shortage)) => {
            bodies.push(oom::body(make, shortage)?);
            bodies.extend(oom::map(make, model, finding, shortage)?);
        }
        Some(Figures::Retention { place, kept, since }) => {
            bodies.push(retention::body(
                make,
                model,
                finding,
                (*place, *kept, *since),
            )?);
        }
        Some(Figures::Doubling { old, new, rose }) => {
            bodies.push(doubling::body(make, (*old, *new, *rose))?);
        }
        _ if finding.kind == FindingKind::Fragmentation => {
            bodies.extend(fragmentation::body(make, model, finding)?);
        }
        _ => {}
    }
    bodies.extend(lines::body(make, model, finding)?);
    Ok(bodies)
}

/// Jupyter's number of a run after these words: ` after In [7]`; nothing where it has none.
fn numbered(words: &str, run: &Run) -> String {
    let number = run.execution_count;
    number.map_or_else(String::new, |count| format!("{words}In [{count}]"))
}
