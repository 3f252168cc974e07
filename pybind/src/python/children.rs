//! The living child processes, for Python: who they are, and their end.

use std::time::Duration;

use gpumem_model::units::Bytes;
use gpumem_report::{self as report, LivingProcess};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use super::list;
use crate::recording::session::{self, ObservedChild};
use gpumem_machine::processes::children::end;

/// Time for a process to end by itself before it is killed.
const PATIENCE: Duration = Duration::from_secs(3);

/// Those that lived at one moment.
#[pyclass(frozen, module = "gpumem._gpumem")]
pub(crate) struct ChildScan {
    seen: Vec<ObservedChild>,
    rows: Vec<LivingProcess>,
}

#[pymethods]
impl ChildScan {
    /// A dict for each, the one that holds most first.
    fn children<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        list(py, &self.rows, plain)
    }

    /// They all in a table.
    fn text(&self, width: usize) -> String {
        report::living_children(&self.rows, width)
    }

    /// Ends one of them: politely, and after some seconds for certain. False if it lives on, or is none of them.
    fn end(&self, py: Python<'_>, pid: u32) -> bool {
        let mut seen = self.seen.iter();
        let child = seen.find(|it| it.child.id.pid == pid);
        child.is_some_and(|it| py.detach(|| end(it.child.id, PATIENCE)))
    }
}

/// Finds the processes that this one, or a child of it, began and that live now.
#[pyfunction]
pub(crate) fn find_children(py: Python<'_>) -> PyResult<ChildScan> {
    let mut seen = session::seen_children(py)?;
    let labels = session::labels_by_key(py)?;
    let held = |child: &ObservedChild| -> Vec<(String, Bytes)> {
        let label = |key| labels.get(key).cloned();
        let used = child.used.iter();
        let on_accelerators = used.filter_map(|(key, used)| Some((label(key)?, *used)));
        let on_host = child.child.own.map(|own| ("host".to_owned(), own));
        on_accelerators.chain(on_host).collect()
    };
    let sum = |child: &ObservedChild| held(child).iter().map(|(_, held)| *held).sum::<Bytes>();
    seen.sort_by_key(|it| (std::cmp::Reverse(sum(it)), it.child.id.pid));
    let rows = seen.iter().map(|it| LivingProcess {
        pid: it.child.id.pid,
        name: it.name.clone(),
        held: held(it),
        age: it.child.age,
        execution_count: it.execution_count,
        handle: it.handle,
    });
    let rows = rows.collect();
    Ok(ChildScan { seen, rows })
}

fn plain<'py>(py: Python<'py>, row: &LivingProcess) -> PyResult<Bound<'py, PyDict>> {
    let held = PyDict::new(py);
    for (label, bytes) in &row.held {
        held.set_item(label, bytes.get())?;
    }
    Ok(dict!(py, {
        "pid": row.pid,
        "name": &row.name,
        "held_bytes": held,
        "age_nanos": row.age.get(),
        "execution_count": row.execution_count,
        "handle": row.handle.name(),
    }))
}
