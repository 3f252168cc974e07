//! What an object is, in words.

use super::node::{CACHE, Node, TensorCategory};
use super::retained_size::{N_COUNTED, RetainedSize, counted};

/// The common name of a CPython type whose own name says little.
pub(super) fn type_name(node: &Node) -> &str {
    match &*node.type_name {
        CACHE => "cache",
        "method" | "builtin_function_or_method" => "bound method",
        name => name,
    }
}

/// What a suspended function's object is called, one and several; `None` for other objects.
pub(super) fn suspended(node: &Node) -> Option<[&'static str; 2]> {
    match &*node.type_name {
        "generator" => Some(["generator", "generators"]),
        "async_generator" => Some(["async generator", "async generators"]),
        "coroutine" => Some(["coroutine", "coroutines"]),
        _ => None,
    }
}

/// `parameter float32[64, 4096]`, `Tensor float32[]`.
pub(super) fn tensor(node: &Node) -> String {
    let noun = match node.category {
        None
        | Some(
            TensorCategory::Tensor
            | TensorCategory::Array
            | TensorCategory::Graph
            | TensorCategory::Workspace,
        ) => node.type_name.to_string(),
        Some(category) => noun(category, 1).to_owned(),
    };
    match shape(node) {
        Some(shape) => format!("{noun} {shape}"),
        None => noun,
    }
}

/// `float32[64, 4096]`.
fn shape(node: &Node) -> Option<String> {
    let dtype = node.dtype.as_deref().unwrap_or_default();
    let shape: Option<Vec<String>> = node
        .shape
        .as_ref()
        .map(|shape| shape.iter().map(u64::to_string).collect());
    match shape {
        Some(shape) => Some(format!("{dtype}[{}]", shape.join(", "))),
        None if dtype.is_empty() => None,
        None => Some(dtype.to_owned()),
    }
}

/// `list of 96 tensors, each with its graph`; without a type only what it holds.
pub(super) fn container(type_name: Option<&str>, tally: &RetainedSize) -> String {
    match (type_name, held(tally)) {
        (Some(type_name), Some(held)) => format!("{type_name} of {held}"),
        (Some(type_name), None) => type_name.to_owned(),
        (None, Some(held)) => held,
        (None, None) => "storages".to_owned(),
    }
}

/// What is counted of what something holds.
pub(super) fn held(tally: &RetainedSize) -> Option<String> {
    match (tally.n_all(), tally.graph) {
        (0, 0) => None,
        (0, _) => Some("what a graph saved".to_owned()),
        _ => Some(counts(tally)),
    }
}

/// `148 parameters, 148 gradients`; `96 tensors, each with its graph`.
fn counts(tally: &RetainedSize) -> String {
    let mut parts: Vec<String> = TensorCategory::ALL[..N_COUNTED]
        .iter()
        .zip(tally.n_tensors)
        .filter(|(_, n)| *n > 0)
        .map(|(category, n)| format!("{n} {}", noun(*category, n)))
        .collect();
    let n_all = tally.n_all();
    parts.extend(match u64::from(tally.n_with_graph) {
        0 => None,
        1 if n_all == 1 => Some("with its graph".to_owned()),
        n if n == n_all => Some("each with its graph".to_owned()),
        1 => Some("one of them with its graph".to_owned()),
        n => Some(format!("{n} of them with their graphs")),
    });
    parts.join(", ")
}

fn noun(category: TensorCategory, n: u32) -> &'static str {
    match (category, n) {
        (TensorCategory::Parameter, 1) => "parameter",
        (TensorCategory::Parameter, _) => "parameters",
        (TensorCategory::Gradient, 1) => "gradient",
        (TensorCategory::Gradient, _) => "gradients",
        (TensorCategory::OptimizerState, 1) => "optimizer state",
        (TensorCategory::OptimizerState, _) => "optimizer states",
        (TensorCategory::KvCache, 1) => "KV-cache tensor",
        (TensorCategory::KvCache, _) => "KV-cache tensors",
        (TensorCategory::Workspace, 1) => "workspace",
        (TensorCategory::Workspace, _) => "workspaces",
        (TensorCategory::Array, 1) => "array",
        (TensorCategory::Array, _) => "arrays",
        (TensorCategory::Tensor | TensorCategory::Graph, 1) => "tensor",
        (TensorCategory::Tensor | TensorCategory::Graph, _) => "tensors",
    }
}

/// Of one node: a tensor with its shape, else what it holds.
pub(super) fn object(node: &Node, tally: &RetainedSize) -> String {
    if counted(node).is_none() {
        return container(Some(type_name(node)), tally);
    }
    let with_graph = if tally.graph > 0 {
        ", with its graph"
    } else {
        ""
    };
    format!("{}{with_graph}", tensor(node))
}
