//! What allocators tell at the moment when memory runs out: caught errors leave no
//! other trace, and neither do those of other threads.

use std::collections::BTreeSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::{self, ThreadId};
use std::time::Instant;

use gpumem_model::recording::{Framework, OomFigures};
use gpumem_model::segments::Segments;
use gpumem_model::units::Bytes;
use gpumem_readers::oom::OomMessage;
use pyo3::prelude::*;
use pyo3::types::{PyCFunction, PyDict, PyTuple};

use super::{OomReport, holders};
use crate::recording::named_snapshot::on_oom;
use crate::recording::session;
use gpumem_base::guard;
use gpumem_base::locks::lock;
use gpumem_base::modules::imported;
use gpumem_machine::out_of_memory::{self, Observer};
use gpumem_machine::sources;

/// How many were seen since the process began.
static N_SEEN: AtomicU64 = AtomicU64::new(0);

/// The last one of each cell under way, and of all else. Locked for a moment, with nothing called meanwhile.
static LAST: Mutex<Vec<ReportedOom>> = Mutex::new(Vec::new());

/// The most that are kept: few cells run at the same time.
const MAX_KEPT: usize = 16;

#[derive(Clone)]
struct ReportedOom {
    /// Its place in the course of all.
    n: u64,
    /// The thread, if a cell ran in it; other threads may work for any cell.
    cell: Option<ThreadId>,
    report: OomReport,
}

/// A point in the course of out-of-memory errors.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OomMark {
    n: u64,
    /// Of the cell in this thread alone; `None` for all.
    cell: Option<ThreadId>,
}

/// Attaches this module to allocators, which report when memory runs out.
pub(crate) fn begin() {
    out_of_memory::observe_with(Observer {
        note,
        attach_to_torch,
    });
}

/// Now.
pub(crate) fn mark() -> OomMark {
    OomMark {
        n: N_SEEN.load(Ordering::Acquire),
        cell: None,
    }
}

/// Now, for a run in this thread.
pub(crate) fn mark_of_run() -> OomMark {
    OomMark {
        cell: Some(thread::current().id()),
        ..mark()
    }
}

/// The last one since `mark`.
pub(crate) fn since(mark: OomMark) -> Option<OomReport> {
    if N_SEEN.load(Ordering::Acquire) <= mark.n {
        return None;
    }
    let seen = lock(&LAST);
    let is_its_own =
        |it: &&ReportedOom| mark.cell.is_none() || it.cell.is_none() || it.cell == mark.cell;
    let new = seen.iter().filter(|it| it.n > mark.n).filter(is_its_own);
    new.max_by_key(|it| it.n).map(|it| it.report.clone())
}

/// Memory ran out just now. No lock may be held that an adapter needs.
fn note(
    py: Python<'_>,
    framework: Framework,
    device: String,
    figures: OomFigures,
    segments: Option<Result<Segments, String>>,
) {
    let holders = if session::is_owner() {
        holders::at_this_moment(py)
    } else {
        Vec::new()
    };
    let report = OomReport {
        message: OomMessage {
            framework: Some(framework),
            device: Some(device),
            figures,
        },
        text: None,
        survived: true,
        at: Some(Instant::now()),
        holders,
        segments,
    };
    let cell = session::has_cell_here(py).then(|| thread::current().id());
    let mut seen = lock(&LAST);
    seen.retain(|it| it.cell != cell);
    if seen.len() == MAX_KEPT {
        seen.remove(0);
    }
    let n = N_SEEN.load(Ordering::Acquire) + 1;
    seen.push(ReportedOom { n, cell, report });
    N_SEEN.store(n, Ordering::Release);
}

/// See [`Observer::attach_to_torch`]. Torch cannot detach an observer, so the callback only records
/// and raises nothing.
fn attach_to_torch(torch: &Bound<'_, PyAny>, kind: &str) {
    static ATTACHED: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());
    let mut attached = lock(&ATTACHED);
    if attached.insert(kind.to_owned()) {
        drop(attached);
        // Some versions and devices have no observer; the counters still show the failure.
        drop(attach(torch, kind));
    }
}

fn attach(torch: &Bound<'_, PyAny>, kind: &str) -> PyResult<()> {
    let functions = torch.getattr("_C")?;
    let attach = functions.getattr(format!("_{kind}_attach_out_of_memory_observer"))?;
    let queries = TorchQueries {
        stats: functions.getattr(format!("_{kind}_memoryStats"))?.unbind(),
        // Since torch 2.5.
        fraction: functions
            .getattr_opt(format!("_{kind}_getMemoryFraction"))?
            .map(Bound::unbind),
    };
    let kind = kind.to_owned();
    let observer = move |arguments: &Bound<'_, PyTuple>, _: Option<&Bound<'_, PyDict>>| {
        let noted = guard::caught(arguments.py(), || of_torch(&kind, arguments, &queries));
        // Drop failures: torch would raise them in the user's cell.
        drop(noted);
    };
    let observer = PyCFunction::new_closure(torch.py(), None, None, observer)?;
    attach.call1((observer,))?;
    Ok(())
}

/// Functions of torch that are called when its memory runs out.
struct TorchQueries {
    stats: Py<PyAny>,
    fraction: Option<Py<PyAny>>,
}

impl TorchQueries {
    /// Whether the user allowed torch only a fraction of a device.
    fn is_limited(&self, py: Python<'_>, device: u32) -> bool {
        let ask = self.fraction.as_ref().map(|ask| ask.bind(py));
        let fraction = ask.and_then(|ask| ask.call1((device,)).ok()?.extract::<f64>().ok());
        fraction.is_some_and(|fraction| fraction < 1.0)
    }
}

/// `(device, alloc_size, device_total, device_free)`; the allocator holds no lock. With a fraction
/// set, the total is what it allows, while free is all that the device has.
fn of_torch(kind: &str, arguments: &Bound<'_, PyTuple>, queries: &TorchQueries) -> PyResult<()> {
    let (device, wanted, total, free): (u32, u64, u64, u64) = arguments.extract()?;
    let figure = |name: &str| -> Option<Bytes> {
        let stats = queries.stats.bind(arguments.py()).call1((device,)).ok()?;
        let figure = stats.get_item(name).ok()?.get_item("all").ok()?;
        let n: u64 = figure.get_item("current").ok()?.extract().ok()?;
        Some(Bytes::new(n))
    };
    let (allocated, reserved) = (figure("allocated_bytes"), figure("reserved_bytes"));
    let py = arguments.py();
    let n_blocks = figure("allocation").map_or(0, Bytes::get);
    let found = if kind == "cuda" {
        holders::in_time(|| segments_of_torch(py, device, n_blocks)).flatten()
    } else {
        None
    };
    let is_limited = queries.is_limited(py, device);
    let total = Some(Bytes::new(total));
    let figures = OomFigures {
        wanted: Some(Bytes::new(wanted)),
        free: Some(Bytes::new(free)),
        total: total.filter(|_| !is_limited),
        limit: total.filter(|_| is_limited),
        allocated,
        reserved,
        unallocated: reserved
            .zip(allocated)
            .map(|(all, used)| all.saturating_sub(used)),
        largest_free: found
            .as_ref()
            .and_then(|found| Some(found.as_ref().ok()?.largest_free)),
        ..OomFigures::default()
    };
    let device = format!("{kind}:{device}");
    note(py, Framework::Torch, device, figures, found);
    if kind == "cuda" {
        on_oom::at_this_moment(py);
    }
    Ok(())
}

/// `None` if this torch or its plugged-in allocator does not report it.
fn segments_of_torch(
    py: Python<'_>,
    device: u32,
    n_blocks: u64,
) -> Option<Result<Segments, String>> {
    if n_blocks > session::MAX_BLOCKS {
        return Some(Err(session::too_many(n_blocks)));
    }
    let torch = imported(py, "torch").ok()??;
    sources::torch::segments(&torch, device as usize).ok()
}
