//! What a simulated tensor holds: its storage, and the graph that Python cannot see.

use std::sync::Arc;

use gpumem_heap::{Step, TensorCategory};

use super::{Adapter, ObjectDetails, ObjectPart, QualifiedName, Sink, StorageId, Unread};
use crate::still::Object;
use gpumem_machine::sim::{Gradient, GraphNode, Leaf, SimStorage, Tensor};

pub(super) struct Sim;

impl Adapter for Sim {
    fn claims(&self, class: &QualifiedName) -> bool {
        class.module == "gpumem.sim" && class.name == "Tensor"
    }

    fn look(&self, object: &Object<'_>, sink: &mut Sink<'_, '_, '_>) -> Result<(), Unread> {
        if let Some(tensor) = object.own::<Tensor>() {
            look(tensor.get(), sink);
        }
        Ok(())
    }
}

fn look(tensor: &Tensor, sink: &mut Sink<'_, '_, '_>) {
    let own = sink.own();
    let is_leaf = matches!(tensor.gradient, Some(Gradient::Leaf(_)));
    let category = if is_leaf {
        TensorCategory::Parameter
    } else {
        TensorCategory::Tensor
    };
    sink.describe(own, ObjectDetails::with_category(category));
    storage(sink, own, &tensor.storage, Step::Within);
    if let Some(gradient) = &tensor.gradient {
        graph(sink, own, gradient);
    }
}

/// The graph from `start` on, each of its parts once.
fn graph(sink: &mut Sink<'_, '_, '_>, own: ObjectPart, start: &Gradient) {
    let mut open = vec![(own, start, Step::attribute("grad_fn"))];
    while let Some((from, gradient, step)) = open.pop() {
        match gradient {
            Gradient::Leaf(it) if from == own => leaf(sink, own, it),
            Gradient::Leaf(it) => {
                let address = Arc::as_ptr(it) as usize;
                let (part, is_new) = sink.part(from, address, step);
                if is_new {
                    sink.describe(
                        part,
                        ObjectDetails::named("AccumulateGrad", TensorCategory::Graph),
                    );
                    leaf(sink, part, it);
                }
            }
            Gradient::Node(node) => {
                let address = Arc::as_ptr(node) as usize;
                let (part, is_new) = sink.part(from, address, step);
                if is_new {
                    sink.describe(part, ObjectDetails::named(node.op(), TensorCategory::Graph));
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
fn leaf(sink: &mut Sink<'_, '_, '_>, part: ObjectPart, leaf: &Leaf) {
    storage(sink, part, leaf.storage(), Step::Within);
    if let Some(grad) = leaf.grad() {
        let step = Step::attribute("grad");
        let (gradient, _) = sink.part(part, Arc::as_ptr(&grad) as usize, step);
        sink.describe(
            gradient,
            ObjectDetails::named("Tensor", TensorCategory::Gradient),
        );
        storage(sink, gradient, &grad, Step::Within);
    }
}

fn saved(sink: &mut Sink<'_, '_, '_>, part: ObjectPart, node: &GraphNode) {
    for kept in &node.saved() {
        storage(sink, part, kept, Step::Saved(None));
    }
}

fn storage(sink: &mut Sink<'_, '_, '_>, from: ObjectPart, storage: &Arc<SimStorage>, step: Step) {
    let entry = super::StorageEntry {
        id: StorageId {
            now: storage.id(),
            over_time: storage.id(),
        },
        device: storage.device().label(),
        n_bytes: storage.n_bytes(),
        address: None,
    };
    sink.storage(from, entry, step);
}
