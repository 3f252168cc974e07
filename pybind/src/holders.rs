//! Who holds device memory, for Python.

use std::time::{Duration, Instant};

use gpumem_core::holders::{
    self, Branch, Category, DeviceHolders, Holder, NodeIdx, ObjectGraph, RootKind, Shared, Traits,
};
use gpumem_core::report;
use gpumem_core::units::Bytes;
use gpumem_core::wording;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use crate::adapters::own::{self, Asks};
use crate::api::GpuMemError;
use crate::look::{self, Question, Reach, Taken};
use crate::text::Text;
use crate::walk::{self, Extent, Here, Limits, Places, Search};
use crate::{extension, session, trouble};

/// How long a walk that somebody waits for may take.
const WALK_TIME: Duration = Duration::from_secs(5);

/// Who holds what, device by device, at one moment.
#[pyclass(frozen, module = "gpumem._gpumem")]
pub(crate) struct Holders {
    found: holders::Holders,
}

#[pymethods]
impl Holders {
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

/// Finds who holds device memory now; `depth` levels of what a name holds are told.
#[pyfunction]
pub(crate) fn find_holders(py: Python<'_>, depth: usize) -> PyResult<Holders> {
    find_now(py, depth).map(|found| Holders { found })
}

/// The same for who puts it into words.
pub(crate) fn find_now(py: Python<'_>, depth: usize) -> PyResult<holders::Holders> {
    let question = Question {
        reach: Reach::All,
        limits: holders::Limits {
            depth,
            ..holders::Limits::default()
        },
        allocated: session::handed_out(py),
        before: None,
        asks: Asks::All,
        walk_time: WALK_TIME,
        is_asked: true,
        reads_graph: true,
    };
    let reason = match look::take(py, &extension::shells(py), &question, WALK_TIME * 2) {
        Taken::Answered(found) => {
            for note in &found.notes {
                trouble::log_once(py, &format!("a look for holders is not whole: {note}"));
            }
            return Ok(found.holders);
        }
        Taken::Late(_) => "it took too long".to_owned(),
        Taken::Missed(reason) => reason,
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
    plain.set_item("path", &root.path)?;
    plain.set_item("what", &root.what)?;
    plain.set_item("children", plain_branches(py, &root.branches)?)?;
    Ok(plain)
}

fn plain_branches<'py>(py: Python<'py>, branches: &[Branch]) -> PyResult<Bound<'py, PyList>> {
    let plain = |branch: &Branch| {
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

fn plain_shared<'py>(py: Python<'py>, shared: &Shared) -> PyResult<Bound<'py, PyDict>> {
    let plain = PyDict::new(py);
    plain.set_item("names", &shared.names)?;
    plain.set_item("and_others", shared.and_others)?;
    plain.set_item("n_bytes", shared.n_bytes.get())?;
    plain.set_item("path", &shared.path)?;
    plain.set_item("what", &shared.what)?;
    Ok(plain)
}

/// What a fix says for a name that holds by such a path: the line, what to write, why. For tests.
#[pyfunction]
#[pyo3(signature = (path, source, *, kind="variable", type_name="list", has_graph=false, scalars=false))]
pub(crate) fn _fix(
    path: &str,
    source: &str,
    kind: &str,
    type_name: &str,
    has_graph: bool,
    scalars: bool,
) -> Option<(Option<String>, String, &'static str)> {
    let n_bytes = Bytes::mib(1);
    let name = path.split(['.', '[']).next()?;
    let holder = Holder {
        path: path.to_owned(),
        traits: Traits {
            type_name: type_name.to_owned(),
            scalars,
            graph: if has_graph { n_bytes } else { Bytes::ZERO },
            ..Traits::default()
        },
        ..Holder::new(RootKind::from_name(kind)?, name, n_bytes)
    };
    let fix = holders::fix(&holder, Some(source))?;
    Some((fix.before, fix.after, wording::fix_reason(fix.reason)))
}

type GraphNode = (String, Option<&'static str>, Option<(String, u64)>);

/// What leads to device memory, node by node and edge by edge: from every name, or from the
/// entries of `namespace`. For tests and the benchmark.
#[pyfunction]
#[pyo3(signature = (namespace=None))]
#[expect(clippy::type_complexity, reason = "three plain lists and two facts")]
pub(crate) fn _object_graph(
    py: Python<'_>,
    namespace: Option<Bound<'_, PyDict>>,
) -> PyResult<(
    Vec<GraphNode>,
    Vec<(u32, u32, String)>,
    Vec<(String, &'static str, String, u32)>,
    usize,
    bool,
)> {
    let (places, extent) = if let Some(namespace) = namespace {
        (Places::of_namespace(namespace)?, Extent::Names)
    } else {
        let places = Places::of_shells(py, &extension::shells(py))?;
        (places, Extent::Everything)
    };
    let search = Search {
        extent,
        limits: Limits {
            until: Instant::now() + WALK_TIME,
            n_nodes: 50_000_000,
        },
        // What a look sees is tested here, and nobody's `locals()` is at stake.
        is_copy: true,
        reads_graph: true,
    };
    let registered = own::registered(py, Asks::All);
    let walked = walk::find(py, &places, search, &registered)?;
    let registered = &registered;
    let found = walked.asked(py, &mut Here { registered });
    let graph = &found.graph;
    let edges = graph
        .edges()
        .map(|(from, to, step)| (from.0, to.0, step.to_string()));
    let roots = graph.roots().iter().map(|root| {
        let (name, path) = (root.name.to_string(), root.path.to_string());
        (name, root.kind.name(), path, root.target.0)
    });
    Ok((
        nodes(graph),
        edges.collect(),
        roots.collect(),
        found.n_objects,
        graph.is_cut(),
    ))
}

fn nodes(graph: &ObjectGraph) -> Vec<GraphNode> {
    let plain = |number: usize| {
        let node = graph.node(NodeIdx(number as u32));
        let category = node.category.map(Category::name);
        let storage = node.storage.as_ref();
        let storage = storage.map(|it| (it.device.to_string(), it.n_bytes.get()));
        (node.type_name.to_string(), category, storage)
    };
    (0..graph.n_nodes()).map(plain).collect()
}
