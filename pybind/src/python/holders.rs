//! Who holds device memory, for Python.

use std::time::Duration;

use gpumem_heap as heap;
use gpumem_model::holders::{DeviceHolders, Holder, HolderBranch, SharedMemory};
use gpumem_model::units::Bytes;
use gpumem_report as report;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use crate::recording::session;
use gpumem_base::errors::GpuMemError;
use gpumem_base::guard;
use gpumem_base::shells::shells;
use gpumem_base::text::{Text, strings};
use gpumem_objects::adapters::registered::Asks;
use gpumem_objects::look::{self, Question, Reach, Taken, Urgency};

use super::{allocation_lines, list};

/// The time limit of a walk that the user waits for.
const WALK_TIME: Duration = Duration::from_secs(5);

/// The most storages whose allocation stacks are read from torch.
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
        list(py, &self.found.devices, plain_device)
    }

    /// It all in words: of one name and one device, where they are given.
    fn text(&self, name: Option<Text>, device: Option<Text>, width: usize) -> String {
        let (name, device) = (name.map(String::from), device.map(String::from));
        report::holders(&self.found, name.as_deref(), device.as_deref(), width)
    }

    /// The statement to change in one of these texts of modules, and what to write in its place, so that a
    /// name lets go of graphs.
    fn fix(&self, device: &str, name: Text, sources: Vec<Text>) -> Option<(String, String)> {
        let mut devices = self.found.devices.iter();
        let found = devices.find(|it| it.device == device)?;
        let name = String::from(name);
        let mut roots = found.roots.iter();
        let root = roots.find(|root| root.name == name && root.traits.graph > Bytes::ZERO)?;
        let sources = strings(sources);
        let sources: Vec<&str> = sources.iter().map(String::as_str).collect();
        let fix = heap::fix(&root.within_module(), &sources, device != "host")?;
        fix.before.map(|before| (before, fix.after))
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
        limits: heap::HolderLimits {
            depth,
            n_storages: if are_allocations_known {
                MAX_STORAGES
            } else {
                0
            },
            ..heap::HolderLimits::default()
        },
        allocated: session::handed_out(py),
        asks: Asks::All,
        walk_time: WALK_TIME.max(look::walk_time()),
        ..Question::new(py, Reach::All, Urgency::Query)
    };
    // A caller of this waits longer than the end of a cell may.
    let patience = (WALK_TIME * 2).max(look::patience());
    let reason = match look::take(py, &shells(py), &question, patience) {
        Taken::Answered(mut found) => {
            session::note_since(py, &mut found.holders)?;
            if are_allocations_known {
                drop(guard::caught(py, || allocation_lines::note(py, &mut found)));
            }
            for note in &found.notes {
                guard::log_failure(py, "a look for holders is not whole", &note);
            }
            return Ok(found.holders);
        }
        Taken::Late(_) => "it took too long".to_owned(),
        Taken::NoAnswer(reason) => reason.to_string(),
    };
    Err(GpuMemError::new_err(format!(
        "could not search for holders: {reason}"
    )))
}

fn plain_device<'py>(py: Python<'py>, device: &DeviceHolders) -> PyResult<Bound<'py, PyDict>> {
    let parts = device.parts.iter().map(|(part, n)| (part.name(), n.get()));
    Ok(dict!(py, {
        "device": &device.device,
        "n_bytes": device.n_bytes.get(),
        "roots": list(py, &device.roots, plain_root)?,
        "shared": list(py, &device.shared, plain_shared)?,
        "parts": parts.collect::<Vec<_>>(),
        "is_cut": device.is_cut,
    }))
}

fn plain_root<'py>(py: Python<'py>, root: &Holder) -> PyResult<Bound<'py, PyDict>> {
    Ok(dict!(py, {
        "name": &root.name,
        "kind": root.kind.name(),
        "n_bytes": root.retained.get(),
        "since_execution_count": root.origin.since,
        "allocated_in": &root.origin.line,
        "path": &root.path,
        "what": &root.what,
        "children": list(py, &root.branches, plain_branch)?,
    }))
}

fn plain_branch<'py>(py: Python<'py>, branch: &HolderBranch) -> PyResult<Bound<'py, PyDict>> {
    Ok(dict!(py, {
        "step": &branch.step,
        "what": &branch.what,
        "n": branch.n,
        "n_bytes": branch.n_bytes.get(),
        "children": list(py, &branch.branches, plain_branch)?,
    }))
}

fn plain_shared<'py>(py: Python<'py>, shared: &SharedMemory) -> PyResult<Bound<'py, PyDict>> {
    Ok(dict!(py, {
        "names": &shared.names,
        "and_others": shared.and_others,
        "n_bytes": shared.n_bytes.get(),
        "path": &shared.path,
        "what": &shared.what,
    }))
}
