//! What lives on of variables that the user lets go of, for Python.

use std::sync::Arc;

use gpumem_heap::{HeapSearchResult, Inventory};
use gpumem_model::units::Bytes;
use gpumem_report as report;
use pyo3::prelude::*;

use crate::recording::session;
use gpumem_base::shells::shells;
use gpumem_base::text::{Text, strings};
use gpumem_objects::look::{self, Question, Reach, Taken, Urgency};

/// The variables that are about to be let go of, and what they hold.
#[pyclass(frozen, module = "gpumem._gpumem")]
pub(crate) struct LettingGo {
    names: Vec<String>,
    before: Option<Arc<Inventory>>,
}

#[pymethods]
impl LettingGo {
    /// Looks at what variables hold, which are let go of next.
    #[new]
    fn new(py: Python<'_>, names: Vec<Text>) -> Self {
        let found = look_for(py, None, Vec::new());
        Self {
            names: strings(names),
            before: found.map(|found| Arc::new(found.inventory)),
        }
    }

    /// Now that they are gone: who keeps what they held, in words; empty if nobody does. `None` if they held
    /// nothing.
    fn outlived(&self, py: Python<'_>, width: usize) -> PyResult<Option<String>> {
        session::unseen_since(py)?;
        let Some(before) = &self.before else {
            return Ok(Some(String::new()));
        };
        if held_bytes(before, &self.names) == Bytes::ZERO {
            return Ok(None);
        }
        let found = look_for(py, Some(Arc::clone(before)), self.names.clone());
        let found = found.unwrap_or_default();
        let lines = report::outlived_lines(&found.holders, &self.names, true, width);
        Ok(Some(lines))
    }
}

/// A description of what still keeps the memory of a deleted variable; empty if nothing does. `None` if
/// no look has met the name.
#[pyfunction]
pub(crate) fn outlived(py: Python<'_>, name: Text, width: usize) -> PyResult<Option<String>> {
    let names = vec![String::from(name)];
    let Some(before) = session::latest_inventory(py)? else {
        return Ok(None);
    };
    if held_bytes(&before, &names) == Bytes::ZERO {
        return Ok(None);
    }
    let found = look_for(py, Some(before), names.clone());
    Ok(found.map(|found| report::outlived_lines(&found.holders, &names, false, width)))
}

/// Bytes that these variables held, or should no longer hold, at a look.
fn held_bytes(inventory: &Inventory, names: &[String]) -> Bytes {
    let shelves = inventory.devices.iter();
    let holdings = shelves.flat_map(|it| it.holdings.iter().chain(&it.promises));
    let of_names = holdings.filter(|it| names.iter().any(|name| **name == *it.name));
    of_names.map(|it| it.n_bytes).sum()
}

fn look_for(
    py: Python<'_>,
    before: Option<Arc<Inventory>>,
    gone: Vec<String>,
) -> Option<HeapSearchResult> {
    let question = Question {
        allocated: session::handed_out(py),
        before,
        gone,
        ..Question::new(py, Reach::NamesOrAll, Urgency::Query)
    };
    let patience = look::walk_time().max(look::patience());
    match look::take(py, &shells(py), &question, patience) {
        Taken::Answered(found) => Some(*found),
        Taken::Late(_) | Taken::NoAnswer(_) => None,
    }
}
