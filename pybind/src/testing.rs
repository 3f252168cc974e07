//! Failures that tests order, and figures that benchmarks read: `gpumem._gpumem._testing`.
//!
//! Every wheel carries this, so that what is published can be tested. The module exists only in a
//! process with `GPUMEM_TESTING=1` in its environment when the extension is imported.

use std::time::{Duration, Instant};

use gpumem_heap as heap;
use gpumem_heap::{NodeIdx, ObjectGraph, TensorCategory};
use gpumem_model::holders::{Holder, RootKind, Traits};
use gpumem_model::units::Bytes;
use gpumem_wording as wording;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::recording::loops::look_at_loops;
use crate::recording::session::{latest_line, long_from};
use crate::recording::store::store_nanos;
use gpumem_base::guard::panic_in_next_callback;
use gpumem_base::shells::shells;
use gpumem_machine::sampler::simulated_run;
use gpumem_objects::adapters::registered::{self, Asks};
#[cfg(target_os = "linux")]
use gpumem_objects::look::{fail_look, fork_and_read, slow_copies};
use gpumem_objects::look::{look_in_process, looks_under_way, use_up_looks};
use gpumem_objects::walk::{self, LocalBackend, Places, Search, WalkExtent, WalkLimits};

/// How long a walk that a test waits for may take.
const WALK_TIME: Duration = Duration::from_secs(5);

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let hooks = PyModule::new(module.py(), "_testing")?;
    #[cfg(target_os = "linux")]
    hooks.add_function(wrap_pyfunction!(fail_look, &hooks)?)?;
    #[cfg(target_os = "linux")]
    hooks.add_function(wrap_pyfunction!(fork_and_read, &hooks)?)?;
    hooks.add_function(wrap_pyfunction!(fix, &hooks)?)?;
    hooks.add_function(wrap_pyfunction!(latest_line, &hooks)?)?;
    hooks.add_function(wrap_pyfunction!(long_from, &hooks)?)?;
    hooks.add_function(wrap_pyfunction!(look_at_loops, &hooks)?)?;
    hooks.add_function(wrap_pyfunction!(look_in_process, &hooks)?)?;
    hooks.add_function(wrap_pyfunction!(looks_under_way, &hooks)?)?;
    hooks.add_function(wrap_pyfunction!(object_graph, &hooks)?)?;
    hooks.add_function(wrap_pyfunction!(panic_in_next_callback, &hooks)?)?;
    hooks.add_function(wrap_pyfunction!(simulated_run, &hooks)?)?;
    #[cfg(target_os = "linux")]
    hooks.add_function(wrap_pyfunction!(slow_copies, &hooks)?)?;
    hooks.add_function(wrap_pyfunction!(store_nanos, &hooks)?)?;
    hooks.add_function(wrap_pyfunction!(use_up_looks, &hooks)?)?;
    // `add` would name it in `__all__`, and the stub lists what is released.
    module.setattr("_testing", hooks)
}

/// What a fix says for a name that holds by such a path: the line, what to write, why.
#[pyfunction]
#[pyo3(signature = (path, source, *, kind="variable", type_name="list", has_graph=false, scalars=false))]
fn fix(
    path: &str,
    source: &str,
    kind: &str,
    type_name: &str,
    has_graph: bool,
    scalars: bool,
) -> Option<(Option<String>, String, String)> {
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
    let fix = heap::fix(&holder, &[source], false)?;
    let why = wording::fix_reason(&fix).ticked();
    Some((fix.before, fix.after, why))
}

type NodeRow = (String, Option<&'static str>, Option<(String, u64)>);

/// What leads to device memory, node by node and edge by edge: from every name, or from the
/// entries of `namespace`.
#[pyfunction(signature = (namespace=None))]
#[expect(clippy::type_complexity, reason = "three plain lists and two facts")]
fn object_graph(
    py: Python<'_>,
    namespace: Option<Bound<'_, PyDict>>,
) -> PyResult<(
    Vec<NodeRow>,
    Vec<(u32, u32, String)>,
    Vec<(String, &'static str, String, u32)>,
    usize,
    bool,
)> {
    let (places, extent) = if let Some(namespace) = namespace {
        (Places::of_namespace(namespace)?, WalkExtent::Names)
    } else {
        let places = Places::of_shells(py, &shells(py), None)?;
        (places, WalkExtent::Everything)
    };
    let search = Search {
        extent,
        limits: WalkLimits {
            until: Instant::now() + WALK_TIME,
            cpu_until: None,
            n_nodes: 50_000_000,
        },
        // What a look sees is tested here, and nobody's `locals()` is at stake.
        is_copy: true,
        reads_graph: true,
    };
    let registered = registered::registered(py, Asks::All);
    let walked = walk::find(py, &places, search, &registered)?;
    let registered = &registered;
    let found = walked.complete(py, &mut LocalBackend { registered });
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

fn nodes(graph: &ObjectGraph) -> Vec<NodeRow> {
    let plain = |number: usize| {
        let node = graph.node(NodeIdx(number as u32));
        let category = node.category.map(TensorCategory::name);
        let storage = node.storage.as_ref();
        let storage = storage.map(|it| (it.device.to_string(), it.n_bytes.get()));
        (node.type_name.to_string(), category, storage)
    };
    (0..graph.n_nodes()).map(plain).collect()
}
