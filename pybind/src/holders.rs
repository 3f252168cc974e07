//! Who holds device memory, for Python.

use std::time::Duration;

use gpumem_core::holders::{Category, NodeIdx, ObjectGraph};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::extension;
use crate::walk::{self, Extent, Limits};

/// A walk that somebody waits for.
const ASKED: Limits = Limits {
    time: Duration::from_secs(5),
    n_nodes: 50_000_000,
};

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
    let found = match namespace {
        Some(namespace) => walk::find_from(py, &namespace, ASKED)?,
        None => walk::find(py, &extension::shells(py), Extent::Everything, ASKED)?,
    };
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
