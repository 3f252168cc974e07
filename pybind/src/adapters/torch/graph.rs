//! The autograd graph, which Python's garbage collector does not see.
//!
//! `_saved_*` and `saved_tensors` unpack: they run the hooks of a checkpoint or of the user. Their
//! raw forms show what is kept, packed as it is, and run nothing.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use pyo3::prelude::*;
use pyo3::types::{PyString, PyTuple, PyType};

use super::super::peek::{self, Getter};
use gpumem_core::holders::{Category, Step};

use super::super::{Details, Part, Sink};

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
    /// Of the node that adds up a leaf's gradient: the leaf.
    variable: Option<Getter>,
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
    /// Whether `object` is a node of the graph; then everything it keeps was told.
    pub(super) fn look<'py>(
        &self,
        object: &Bound<'py, PyAny>,
        sink: &mut Sink<'_, '_, 'py>,
    ) -> PyResult<bool> {
        let Some(class) = self.class_of(object) else {
            return Ok(false);
        };
        let own = sink.own();
        sink.describe(own, Details::of(Category::Graph));
        if let Some(variable) = &class.variable {
            let variable = variable.get(object)?;
            sink.object(own, variable, Step::attribute("variable"));
        }
        for (name, getter) in &class.saved {
            // What a backward pass has freed is None inside.
            if let Ok(value) = getter.get(object) {
                saved(name, &value, own, sink);
            }
        }
        let next = class.next_functions.get(object)?;
        for (idx, entry) in next.cast::<PyTuple>()?.iter().enumerate() {
            let node = entry.cast::<PyTuple>()?.get_item(0)?;
            if !node.is_none() {
                let step = format!("next_functions[{idx}][0]");
                sink.object(own, node, Step::attribute(&step));
            }
        }
        Ok(true)
    }

    fn class_of(&self, object: &Bound<'_, PyAny>) -> Option<Rc<NodeClass>> {
        let class = object.get_type();
        let mut known = self.by_class.borrow_mut();
        let entry = known.entry(class.as_ptr() as usize);
        entry
            .or_insert_with(|| NodeClass::of(&class).ok().map(Rc::new))
            .clone()
    }
}

impl NodeClass {
    /// Fails for a class that is none of a node.
    fn of(class: &Bound<'_, PyType>) -> PyResult<Self> {
        let mut saved = Vec::new();
        for base in peek::bases(class)? {
            for name in peek::own_attributes(&base)?.keys()?.iter() {
                let Ok(name) = name.cast_exact::<PyString>() else {
                    continue;
                };
                let name = name.to_string_lossy();
                if let Some(kept) = name.strip_prefix(RAW)
                    && let Ok(getter) = Getter::find(class, &name)
                {
                    saved.push((kept.to_owned(), getter));
                }
            }
        }
        Ok(Self {
            next_functions: Getter::find(class, "next_functions")?,
            saved,
            variable: Getter::find(class, "variable").ok(),
        })
    }
}

/// One that was saved, or a tuple of them.
fn saved<'py>(name: &str, value: &Bound<'py, PyAny>, own: Part, sink: &mut Sink<'_, '_, 'py>) {
    let Ok(values) = value.cast::<PyTuple>() else {
        packed(name, value, own, sink);
        return;
    };
    for (idx, value) in values.iter().enumerate() {
        packed(&format!("{name}[{idx}]"), &value, own, sink);
    }
}

/// What stands in place of a saved tensor: itself, or what a hook made of it, and that hook.
fn packed<'py>(name: &str, saved: &Bound<'py, PyAny>, own: Part, sink: &mut Sink<'_, '_, 'py>) {
    for (attribute, name) in [
        ("data", name.to_owned()),
        ("unpack_hook", format!("{name}.unpack_hook")),
    ] {
        // Attributes of torch's own extension type. Before torch 2.8 there was no hook to be seen.
        if let Ok(value) = saved.getattr(attribute)
            && !value.is_none()
        {
            sink.object(own, value, Step::Saved(Some(name.into())));
        }
    }
}
