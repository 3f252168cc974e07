//! PyTorch: tensors with their storages and gradients, the autograd graph, modules, optimizers, and
//! what libraries build of them.

mod access;
mod graph;
mod libraries;
mod modules;
pub(crate) mod pools;

pub(crate) use access::{Access, is_imported};

use gpumem_core::holders::{Category, Step};
use pyo3::prelude::*;
use pyo3::types::PyType;

use super::identity;
use super::peek;
use super::{Adapter, ClassName, Details, Sink, Storage};
use graph::Nodes;

/// Looks at what the user's torch has made.
pub(super) struct Torch {
    access: Access,
    nodes: Nodes,
    parameter: Option<Py<PyType>>,
}

impl Torch {
    /// None where the user has not imported torch, or where it is another than is known here.
    pub(super) fn of_imported(py: Python<'_>) -> Option<Self> {
        if !is_imported(py) {
            return None;
        }
        let modules = py
            .import("sys")
            .and_then(|sys| sys.getattr("modules"))
            .ok()?;
        let parameter = modules
            .get_item("torch.nn.parameter")
            .and_then(|module| module.getattr("Parameter"));
        Some(Self {
            access: Access::new(py).ok()?,
            nodes: Nodes::default(),
            parameter: parameter
                .ok()
                .and_then(|it| Some(it.cast_into().ok()?.unbind())),
        })
    }

    fn tensor<'py>(
        &self,
        tensor: &Bound<'py, PyAny>,
        sink: &mut Sink<'_, '_, 'py>,
    ) -> PyResult<()> {
        let own = sink.own();
        if self.access.is_wrapped(tensor)? {
            // What it stands for is in its attributes, which the walk finds as any others.
            sink.describe(own, Details::of(Category::Tensor));
            return Ok(());
        }
        let is_leaf = self.access.is_leaf.get(tensor)?.is_truthy()?;
        let is_parameter =
            self.is_parameter(tensor) || is_leaf && self.access.requires_grad(tensor)?;
        let category = if is_parameter {
            Category::Parameter
        } else {
            Category::Tensor
        };
        sink.describe(
            own,
            Details {
                dtype: Some(self.access.dtype(tensor)?),
                shape: self.access.shape(tensor),
                ..Details::of(category)
            },
        );
        let paged_on = libraries::paged_on(tensor);
        for found in self.access.storages(tensor)? {
            let id = identity::number(tensor.py(), found.address, found.n_bytes, || {
                self.access.proof(tensor.py(), &found)
            });
            let storage = Storage {
                id,
                device: paged_on.as_deref().unwrap_or(&found.device),
                n_bytes: found.n_bytes,
            };
            sink.storage(own, storage, Step::Within);
        }
        if let Some(gradient) = self.access.gradient(tensor)? {
            let step = Step::attribute("grad");
            if let Some(gradient) = sink.object(own, gradient, step) {
                sink.describe(gradient, Details::of(Category::Gradient));
            }
        }
        if !is_leaf {
            let node = self.access.grad_fn.get(tensor)?;
            sink.object(own, node, Step::attribute("grad_fn"));
        }
        self.hooks(tensor, sink);
        libraries::quantized(tensor, &self.access, sink);
        Ok(())
    }

    /// Functions that run when a gradient comes by, with all that they close over.
    fn hooks<'py>(&self, tensor: &Bound<'py, PyAny>, sink: &mut Sink<'_, '_, 'py>) {
        for (name, hooks) in [
            ("_backward_hooks", Some(&self.access.backward_hooks)),
            (
                "_post_accumulate_grad_hooks",
                self.access.post_accumulate_grad_hooks.as_ref(),
            ),
        ] {
            let hooks = hooks.and_then(|hooks| hooks.get(tensor).ok());
            if let Some(hooks) = hooks.filter(|hooks| !hooks.is_none()) {
                sink.object(sink.own(), hooks, Step::attribute(name));
            }
        }
    }

    fn is_parameter(&self, tensor: &Bound<'_, PyAny>) -> bool {
        let parameter = self.parameter.as_ref().map(|it| it.bind(tensor.py()));
        parameter.is_some_and(|parameter| peek::is_subtype(&tensor.get_type(), parameter))
    }
}

impl Drop for Torch {
    fn drop(&mut self) {
        Python::attach(identity::sweep);
    }
}

impl Adapter for Torch {
    fn claims(&self, class: &ClassName) -> bool {
        let (module, name) = (class.module.as_str(), class.name.as_str());
        matches!(
            (module, name),
            (
                "torch" | "torch._C",
                "Tensor" | "TensorBase" | "_TensorBase"
            )
        ) || graph::is_node(module, name)
            || modules::is_module(module, name)
            || modules::is_optimizer(module, name)
            || libraries::is_cache(module)
            || libraries::is_quantization(module, name)
    }

    fn look<'py>(&self, object: &Bound<'py, PyAny>, sink: &mut Sink<'_, '_, 'py>) -> PyResult<()> {
        if self.access.is_tensor(object) {
            return self.tensor(object, sink);
        }
        if self.nodes.look(object, sink)? {
            return Ok(());
        }
        modules::look(object, &self.access, sink);
        libraries::look(object, &self.access, sink);
        Ok(())
    }
}
