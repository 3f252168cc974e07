//! What a simulated tensor holds: its storage, and the graph that Python cannot see.

use std::sync::Arc;

use gpumem_heap::{Category, Step};

use super::Tensor;
use super::device::Storage;
use super::graph::{Gradient, Leaf, Node};
use crate::adapters::{Details, Part, Sink, StorageId};
use crate::still::Object;

/// Tells everything that `object` holds, if it is a simulated tensor.
pub(crate) fn look(object: &Object<'_>, sink: &mut Sink<'_, '_, '_>) {
    let Some(tensor) = object.own::<Tensor>() else {
        return;
    };
    let tensor = tensor.get();
    let own = sink.own();
    let is_leaf = matches!(tensor.gradient, Some(Gradient::Leaf(_)));
    let category = if is_leaf {
        Category::Parameter
    } else {
        Category::Tensor
    };
    sink.describe(own, Details::of(category));
    storage(sink, own, &tensor.storage, Step::Within);
    if let Some(gradient) = &tensor.gradient {
        graph(sink, own, gradient);
    }
}

/// The graph from `start` on, each of its parts once.
fn graph(sink: &mut Sink<'_, '_, '_>, own: Part, start: &Gradient) {
    let mut open = vec![(own, start, Step::attribute("grad_fn"))];
    while let Some((from, gradient, step)) = open.pop() {
        match gradient {
            Gradient::Leaf(it) if from == own => leaf(sink, own, it),
            Gradient::Leaf(it) => {
                let address = Arc::as_ptr(it) as usize;
                let (part, is_new) = sink.part(from, address, step);
                if is_new {
                    sink.describe(part, Details::named("AccumulateGrad", Category::Graph));
                    leaf(sink, part, it);
                }
            }
            Gradient::Node(node) => {
                let address = Arc::as_ptr(node) as usize;
                let (part, is_new) = sink.part(from, address, step);
                if is_new {
                    sink.describe(part, Details::named(node.op(), Category::Graph));
                    saved(sink, part, node);
                    for (idx, input) in node.inputs().iter().enumerate() {
                        let step = Step::attribute(&format!("next_functions[{idx}]"));
                        open.push((part, input, step));
                    }
                }
            }
        }
    }
}

/// A tensor that collects a gradient.
fn leaf(sink: &mut Sink<'_, '_, '_>, part: Part, leaf: &Leaf) {
    storage(sink, part, leaf.storage(), Step::Within);
    if let Some(grad) = leaf.grad() {
        let step = Step::attribute("grad");
        let (gradient, _) = sink.part(part, Arc::as_ptr(&grad) as usize, step);
        sink.describe(gradient, Details::named("Tensor", Category::Gradient));
        storage(sink, gradient, &grad, Step::Within);
    }
}

fn saved(sink: &mut Sink<'_, '_, '_>, part: Part, node: &Node) {
    for kept in &node.saved() {
        storage(sink, part, kept, Step::Saved(None));
    }
}

fn storage(sink: &mut Sink<'_, '_, '_>, from: Part, storage: &Arc<Storage>, step: Step) {
    let told = crate::adapters::Storage {
        id: StorageId {
            now: storage.id(),
            over_time: storage.id(),
        },
        device: storage.device().label(),
        n_bytes: storage.n_bytes(),
        address: None,
    };
    sink.storage(from, told, step);
}
