//! PyTorch's own memory snapshot, with what holds each block.
//!
//! The snapshot is torch's; the names are those of one look at the heap. What holds a block stands in
//! place of its stack if none was recorded, else in `user_metadata`.

mod label;
pub(crate) mod on_oom;
mod torch;

use std::path::PathBuf;
use std::time::Duration;

use gpumem_heap::{BlockNames, HolderLimits};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use gpumem_base::errors::GpuMemError;
use gpumem_base::files::write_file;
use gpumem_base::shells::shells;
use gpumem_objects::adapters::registered::Asks;
use gpumem_objects::look::{self, Question, Reach, Taken, Urgency};
use label::SnapshotLabels;
use torch::TorchCudaAllocator;

/// How long the search for holders may take.
const WALK_TIME: Duration = Duration::from_secs(5);

/// The most storages that get a name, the user's own and the largest first.
const MAX_STORAGES: usize = 100_000;

pub(crate) struct SnapshotSummary {
    n_blocks: usize,
    n_named: usize,
    note: Option<String>,
}

/// Writes torch's memory snapshot, each block with what holds it: how many blocks there are, how many
/// of them a path leads to, and what the user should know.
#[pyfunction(name = "_save_snapshot")]
pub(crate) fn save_snapshot(
    py: Python<'_>,
    path: PathBuf,
) -> PyResult<(usize, usize, Option<String>)> {
    let saved = save(py, path, Asks::All)?;
    Ok((saved.n_blocks, saved.n_named, saved.note))
}

fn save(py: Python<'_>, path: PathBuf, asks: Asks) -> PyResult<SnapshotSummary> {
    let allocator = TorchCudaAllocator::of_imported(py)?.map_err(GpuMemError::new_err)?;
    let before = allocator.n_actions();
    let snapshot = allocator.snapshot()?;
    let names = names(py, asks);
    let has_moved = before.is_none() || before != allocator.n_actions();
    let now = if has_moved {
        Some(allocator.snapshot()?)
    } else {
        None
    };
    let mut notes = Vec::new();
    let names = names.unwrap_or_else(|reason| {
        notes.push(format!(
            "could not search for what holds the blocks: {reason}"
        ));
        BlockNames::unknown()
    });
    let mut labels = SnapshotLabels::new(py, &names, now.as_ref())?;
    labels.put_into(&snapshot)?;
    if labels.n_moved > 0 {
        notes.push(format!(
            "{} changed while their holders were searched, and have no name",
            count(labels.n_moved)
        ));
    }
    let pickled = py.import("pickle")?.call_method1("dumps", (snapshot,))?;
    write_file(py, path, pickled.cast::<PyBytes>()?.as_bytes())?;
    Ok(SnapshotSummary {
        n_blocks: labels.n_blocks,
        n_named: labels.n_named,
        note: (!notes.is_empty()).then(|| notes.join("; ")),
    })
}

fn count(n_blocks: usize) -> String {
    match n_blocks {
        1 => "1 block".to_owned(),
        n => format!("{n} blocks"),
    }
}

/// A snapshot as torch gives it.
type SnapshotDict<'py> = Bound<'py, PyDict>;

/// Names for the blocks, from one look at the heap; a sentence if there are none.
fn names(py: Python<'_>, asks: Asks) -> Result<BlockNames, String> {
    let limits = HolderLimits {
        n_storages: MAX_STORAGES,
        ..HolderLimits::default()
    };
    let question = Question {
        limits,
        asks,
        walk_time: WALK_TIME,
        ..Question::new(py, Reach::All, Urgency::Query)
    };
    let patience = (WALK_TIME * 2).max(look::patience());
    match look::take(py, &shells(py), &question, patience) {
        Taken::Answered(found) => Ok(found.block_names(&limits)),
        Taken::Late(_) => Err("the search took too long".to_owned()),
        Taken::NoAnswer(reason) => Err(reason.to_string()),
    }
}
