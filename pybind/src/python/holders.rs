//! Who holds device memory, for Python.

use std::time::Duration;

use gpumem_heap as heap;
use gpumem_model::holders::{DeviceHolders, Holder, HolderBranch, SharedMemory};
use gpumem_report as report;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use crate::base::errors::GpuMemError;
use crate::base::guard;
use crate::base::shells::shells;
use crate::base::text::Text;
use crate::heap::adapters::own::Asks;
use crate::heap::look::{self, Question, Reach, Taken, Urgency};
use crate::recording::session;

use super::allocation_lines;

/// How long a walk that somebody waits for may take.
const WALK_TIME: Duration = Duration::from_secs(5);

/// Of as many storages torch is asked where they were allocated.
const MAX_STORAGES: usize = 1 << 12;

/// Who holds what, device by device, at one moment.
#[pyclass(frozen, module = "gpumem._gpumem")]
pub(crate) struct HolderSearch {
    found: heap::Holders,
}

#[pymethods]
impl HolderSearch {
    /// A dict for each device, the fullest first.
    fn devices<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let devices = self.found.devices.iter();
        let devices: PyResult<Vec<_>> = devices.map(|device| plain_device(py, device)).collect();
        PyList::new(py, devices?)
    }

    /// It all in words: of one name and one device, where they are given.
    fn text(&self, name: Option<Text>, device: Option<Text>, width: usize) -> String {
        let (name, device) = (name.map(String::from), device.map(String::from));
        report::holders(&self.found, name.as_deref(), device.as_deref(), width)
    }
}

/// Finds who holds device memory now, with `depth` levels below each name.
#[pyfunction]
pub(crate) fn find_holders(py: Python<'_>, depth: usize) -> PyResult<HolderSearch> {
    find_now(py, depth).map(|found| HolderSearch { found })
}

/// The same for who puts it into words.
pub(crate) fn find_now(py: Python<'_>, depth: usize) -> PyResult<heap::Holders> {
    let are_allocations_known = allocation_lines::are_known(py);
    let question = Question {
        limits: heap::Limits {
            depth,
            n_storages: if are_allocations_known {
                MAX_STORAGES
            } else {
                0
            },
            ..heap::Limits::default()
        },
        allocated: session::handed_out(py),
        asks: Asks::All,
        walk_time: WALK_TIME.max(look::walk_time()),
        ..Question::new(py, Reach::All, Urgency::Asked)
    };
    // Whoever asked waits longer than a cell's end does, however long that is.
    let patience = (WALK_TIME * 2).max(look::patience());
    let reason = match look::take(py, &shells(py), &question, patience) {
        Taken::Answered(mut found) => {
            session::note_since(py, &mut found.holders)?;
            if are_allocations_known {
                drop(guard::caught(py, || allocation_lines::note(py, &mut found)));
            }
            for note in &found.notes {
                guard::log_once(py, &format!("a look for holders is not whole: {note}"));
            }
            return Ok(found.holders);
        }
        Taken::Late(_) => "it took too long".to_owned(),
        Taken::NoAnswer(reason) => reason.to_string(),
    };
    Err(GpuMemError::new_err(format!(
        "who holds memory is not known: {reason}"
    )))
}

fn plain_device<'py>(py: Python<'py>, device: &DeviceHolders) -> PyResult<Bound<'py, PyDict>> {
    let roots: PyResult<Vec<_>> = device.roots.iter().map(|it| plain_root(py, it)).collect();
    let shared: PyResult<Vec<_>> = device
        .shared
        .iter()
        .map(|it| plain_shared(py, it))
        .collect();
    let parts = device.parts.iter().map(|(part, n)| (part.name(), n.get()));
    let plain = PyDict::new(py);
    plain.set_item("device", &device.device)?;
    plain.set_item("n_bytes", device.n_bytes.get())?;
    plain.set_item("roots", roots?)?;
    plain.set_item("shared", shared?)?;
    plain.set_item("parts", parts.collect::<Vec<_>>())?;
    plain.set_item("is_cut", device.is_cut)?;
    Ok(plain)
}

fn plain_root<'py>(py: Python<'py>, root: &Holder) -> PyResult<Bound<'py, PyDict>> {
    let plain = PyDict::new(py);
    plain.set_item("name", &root.name)?;
    plain.set_item("kind", root.kind.name())?;
    plain.set_item("n_bytes", root.retained.get())?;
    plain.set_item("since_execution_count", root.origin.since)?;
    plain.set_item("allocated_in", &root.origin.line)?;
    plain.set_item("path", &root.path)?;
    plain.set_item("what", &root.what)?;
    plain.set_item("children", plain_branches(py, &root.branches)?)?;
    Ok(plain)
}

fn plain_branches<'py>(py: Python<'py>, branches: &[HolderBranch]) -> PyResult<Bound<'py, PyList>> {
    let plain = |branch: &HolderBranch| {
        let plain = PyDict::new(py);
        plain.set_item("step", &branch.step)?;
        plain.set_item("what", &branch.what)?;
        plain.set_item("n", branch.n)?;
        plain.set_item("n_bytes", branch.n_bytes.get())?;
        plain.set_item("children", plain_branches(py, &branch.branches)?)?;
        Ok(plain)
    };
    let plain: PyResult<Vec<_>> = branches.iter().map(plain).collect();
    PyList::new(py, plain?)
}

fn plain_shared<'py>(py: Python<'py>, shared: &SharedMemory) -> PyResult<Bound<'py, PyDict>> {
    let plain = PyDict::new(py);
    plain.set_item("names", &shared.names)?;
    plain.set_item("and_others", shared.and_others)?;
    plain.set_item("n_bytes", shared.n_bytes.get())?;
    plain.set_item("path", &shared.path)?;
    plain.set_item("what", &shared.what)?;
    Ok(plain)
}
