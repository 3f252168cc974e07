//! The autograd graph, which Python's garbage collector does not see.
//!
//! `_saved_*` and `saved_tensors` unpack: they run the hooks of a checkpoint or of the user. Their
//! raw forms show what is kept, packed as it is, and run nothing.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use gpumem_heap::{Step, TensorCategory};

use super::super::{ObjectDetails, ObjectPart, Sink};
use crate::still::{Class, Getter, Object};

/// The classes of graph nodes that were met.
#[derive(Default)]
pub(super) struct Nodes {
    by_class: RefCell<HashMap<usize, Option<Rc<NodeClass>>>>,
}

/// How the nodes of one class are read.
struct NodeClass {
    next_functions: Getter,
    /// The name after `_raw_saved_`, and its reader.
    saved: Vec<(String, Getter)>,
    /// The leaf, of the node that accumulates its gradient.
    variable: Option<Getter>,
    /// The wrapped node, of a wrapper.
    wrapped: Option<Getter>,
}

const RAW: &str = "_raw_saved_";

/// Whether it is the class of a graph node. Those of built-in operations have no module.
pub(super) fn is_node(module: &str, name: &str) -> bool {
    const OTHERS: [&str; 9] = [
        "AccumulateGrad",
        "CopySlices",
        "CopyBackwards",
        "CppFunction",
        "DelayedError",
        "Error",
        "GraphRoot",
        "NotImplemented",
        "UndefinedGrad",
    ];
    match module {
        "builtins" => name.contains("Backward") || OTHERS.contains(&name),
        "torch.autograd.function" => name == "BackwardCFunction",
        _ => module.starts_with("torch._C._functions"),
    }
}

impl Nodes {
    /// Whether `object` is a node of the graph; if so, everything it keeps was reported.
    pub(super) fn look(&self, object: &Object<'_>, sink: &mut Sink<'_, '_, '_>) -> bool {
        let Some(class) = self.class_of(object) else {
            return false;
        };
        let own = sink.own();
        sink.describe(own, ObjectDetails::with_category(TensorCategory::Graph));
        let variable = class.variable.as_ref();
        if let Some(variable) = variable.and_then(|variable| variable.get(object)) {
            sink.object(own, &variable, Step::attribute("variable"));
        }
        for (name, getter) in &class.saved {
            // What a backward pass has freed is None inside.
            if let Some(value) = getter.get(object) {
                saved(name, &value, own, sink);
            }
        }
        let next = class.next_functions.get(object);
        let next = next.as_ref().and_then(Object::tuple).into_iter().flatten();
        for (idx, entry) in next.enumerate() {
            let node = entry.tuple().and_then(|mut entry| entry.next());
            if let Some(node) = node.filter(|node| !node.is_none()) {
                let step = format!("next_functions[{idx}][0]");
                sink.object(own, &node, Step::attribute(&step));
            }
        }
        // What it hides behind another node: since torch 2.15, what `CopySlices` wraps.
        let wrapped = class.wrapped.as_ref();
        if let Some(wrapped) = wrapped.and_then(|wrapped| wrapped.get(object))
            && !wrapped.is_none()
        {
            sink.object(own, &wrapped, Step::attribute("_wrapped_node"));
        }
        true
    }

    fn class_of(&self, object: &Object<'_>) -> Option<Rc<NodeClass>> {
        let class = object.class();
        let mut known = self.by_class.borrow_mut();
        let entry = known.entry(class.address());
        entry
            .or_insert_with(|| NodeClass::from_class(&class).map(Rc::new))
            .clone()
    }
}

impl NodeClass {
    /// `None` if `class` is not a graph node.
    fn from_class(class: &Class<'_>) -> Option<Self> {
        let next_functions = class.getter("next_functions")?;
        let names = class.lineage().flat_map(|base| {
            let own = base.own_attributes().into_iter();
            own.flat_map(|own| own.named().map(|(name, _)| name))
        });
        let saved = names.filter_map(|name| {
            let kept = name.strip_prefix(RAW)?.to_owned();
            Some((kept, class.getter(&name)?))
        });
        Some(Self {
            saved: saved.collect(),
            next_functions,
            variable: class.getter("variable"),
            wrapped: class.getter("_wrapped_node"),
        })
    }
}

/// Whether this is the class that wraps a saved tensor. The walk meets one on its own
/// where a checkpoint keeps it.
pub(super) fn is_saved(module: &str, name: &str) -> bool {
    module == "torch._C._autograd" && name == "SavedTensor"
}

/// Reports a saved tensor that was not reached through its node.
pub(super) fn look_at_saved(saved: &Object<'_>, sink: &mut Sink<'_, '_, '_>) {
    let own = sink.own();
    packed("data", saved, own, sink);
}

/// One that was saved, or a tuple of them.
fn saved(name: &str, value: &Object<'_>, own: ObjectPart, sink: &mut Sink<'_, '_, '_>) {
    let Some(values) = value.tuple() else {
        packed(name, value, own, sink);
        return;
    };
    for (idx, value) in values.enumerate() {
        packed(&format!("{name}[{idx}]"), &value, own, sink);
    }
}

/// What stands in place of a saved tensor: itself, or what a hook made of it, and that hook.
fn packed(name: &str, saved: &Object<'_>, own: ObjectPart, sink: &mut Sink<'_, '_, '_>) {
    // Properties of torch's own extension type. In torch 2.8 it has none yet: a graph's tensors stay unknown.
    let of = |attribute| saved.call(attribute).filter(|value| !value.is_none());
    let hook = of("unpack_hook");
    if let Some(data) = of("data") {
        let name = name.into();
        let step = if hook.is_some() {
            Step::Packed(name)
        } else {
            Step::Saved(Some(name))
        };
        sink.object(own, &data, step);
    }
    if let Some(hook) = hook {
        let name = format!("{name}.unpack_hook");
        sink.object(own, &hook, Step::Saved(Some(name.into())));
    }
}
