//! PyTorch: tensors with their storages and gradients, the autograd graph, modules, optimizers, and
//! what libraries build of them.

mod access;
mod graph;
mod libraries;
mod modules;
pub(crate) mod pools;

pub use access::{Access, Quiet, is_imported};

use gpumem_heap::{Step, TensorCategory};
use pyo3::Py;
use pyo3::types::PyType;

use super::identity;
use super::{Adapter, ObjectDetails, QualifiedName, Sink, StorageEntry, Unread};
use crate::still::{Class, Object, Section};
use graph::Nodes;

/// Looks at what the user's torch has made.
pub(super) struct Torch {
    access: Access,
    nodes: Nodes,
    parameter: Option<Py<PyType>>,
    /// What autograd keeps is read: it may be about to change while its engine runs.
    reads_graph: bool,
}

impl Torch {
    /// None where the user has not imported torch, or where it is another than is known here.
    pub(super) fn of_imported<'s>(section: &'s Section<'s>, reads_graph: bool) -> Option<Self> {
        let access = Access::of_imported(section)?;
        let modules = section.modules();
        let parameters = modules.and_then(|it| it.get("torch.nn.parameter")?.globals());
        let parameter = parameters.and_then(|it| it.get("Parameter")?.as_class());
        Some(Self {
            access,
            nodes: Nodes::default(),
            parameter: parameter.map(Class::unbind),
            reads_graph,
        })
    }

    fn tensor(&self, tensor: &Object<'_>, sink: &mut Sink<'_, '_, '_>) -> Option<()> {
        let own = sink.own();
        if self.access.is_wrapped(tensor)? {
            // What it stands for is in its attributes, which the walk finds as any others.
            sink.describe(own, ObjectDetails::with_category(TensorCategory::Tensor));
            return Some(());
        }
        let is_leaf = self.access.is_leaf.get(tensor)?.is_true()?;
        let is_parameter =
            self.is_parameter(tensor) || is_leaf && self.access.requires_grad(tensor)?;
        let category = if is_parameter {
            TensorCategory::Parameter
        } else {
            TensorCategory::Tensor
        };
        sink.describe(
            own,
            ObjectDetails {
                dtype: self.access.dtype(tensor),
                shape: self.access.shape(tensor),
                ..ObjectDetails::with_category(category)
            },
        );
        let paged_on = libraries::paged_on(tensor);
        for found in self.access.storages(tensor)? {
            let storage = StorageEntry {
                id: identity::storage_id(found.address, found.n_bytes, found.owner),
                device: paged_on.as_deref().unwrap_or(&found.device),
                n_bytes: found.n_bytes,
                address: Some(found.address as u64),
            };
            sink.storage(own, storage, Step::Within);
        }
        if self.reads_graph {
            self.autograd(tensor, is_leaf, sink);
        } else {
            sink.cut("what autograd keeps was left out: another thread may have been changing it");
        }
        self.hooks(tensor, sink);
        libraries::quantized(tensor, &self.access, sink);
        Some(())
    }

    /// What the engine of autograd changes without the GIL.
    fn autograd(&self, tensor: &Object<'_>, is_leaf: bool, sink: &mut Sink<'_, '_, '_>) {
        let own = sink.own();
        if let Some(gradient) = self.access.gradient(tensor)
            && let Some(gradient) = sink.object(own, &gradient, Step::attribute("grad"))
        {
            sink.describe(
                gradient,
                ObjectDetails::with_category(TensorCategory::Gradient),
            );
        }
        if !is_leaf && let Some(node) = self.access.grad_fn.get(tensor) {
            sink.object(own, &node, Step::attribute("grad_fn"));
        }
    }

    /// Gradient hooks, with everything in their closures.
    fn hooks(&self, tensor: &Object<'_>, sink: &mut Sink<'_, '_, '_>) {
        for (name, hooks) in [
            ("_backward_hooks", Some(&self.access.backward_hooks)),
            (
                "_post_accumulate_grad_hooks",
                self.access.post_accumulate_grad_hooks.as_ref(),
            ),
        ] {
            let hooks = hooks.and_then(|hooks| hooks.get(tensor));
            if let Some(hooks) = hooks.filter(|hooks| !hooks.is_none()) {
                sink.object(sink.own(), &hooks, Step::attribute(name));
            }
        }
    }

    fn is_parameter(&self, tensor: &Object<'_>) -> bool {
        let parameter = self.parameter.as_ref();
        parameter.is_some_and(|parameter| tensor.class().is_subtype(parameter))
    }
}

impl Adapter for Torch {
    fn claims(&self, class: &QualifiedName) -> bool {
        let (module, name) = (class.module.as_str(), class.name.as_str());
        matches!(
            (module, name),
            (
                "torch" | "torch._C",
                "Tensor" | "TensorBase" | "_TensorBase"
            )
        ) || self.reads_graph && (graph::is_node(module, name) || graph::is_saved(module, name))
            || modules::is_module(module, name)
            || modules::is_optimizer(module, name)
            || libraries::is_cache(module)
            || libraries::is_quantization(module, name)
    }

    fn look(&self, object: &Object<'_>, sink: &mut Sink<'_, '_, '_>) -> Result<(), Unread> {
        if self.access.is_tensor(object) {
            return self.tensor(object, sink).ok_or(Unread("a tensor of torch"));
        }
        if self.reads_graph {
            if self.nodes.look(object, sink) {
                return Ok(());
            }
            let class = object.class();
            if graph::is_saved(
                &class.module().unwrap_or_default(),
                &class.qualname().unwrap_or_default(),
            ) {
                graph::look_at_saved(object, sink);
                return Ok(());
            }
        }
        modules::look(object, &self.access, sink);
        libraries::look(object, &self.access, sink);
        Ok(())
    }
}
