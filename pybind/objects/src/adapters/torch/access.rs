//! How torch's own C code reads a tensor: nothing of a subclass, of a mode or of a hook is entered.

use std::cell::RefCell;
use std::collections::HashMap;

use gpumem_model::units::Bytes;
use pyo3::prelude::*;
use pyo3::types::PyType;

use crate::still::{Getter, Method, Object, Section};
use gpumem_base::modules::imported;

/// The readers of torch's tensors and storages, taken from its extension types.
pub struct Access {
    pub(super) is_leaf: Getter,
    pub(super) retains_grad: Getter,
    pub(super) grad: Getter,
    pub(super) grad_fn: Getter,
    pub(super) backward_hooks: Getter,
    pub(super) post_accumulate_grad_hooks: Option<Getter>,
    requires_grad: Getter,
    shape: Getter,
    dtype: Getter,
    device: Getter,
    element_size: Method,
    layout: Getter,
    storage: Method,
    storage_device: Getter,
    storage_nbytes: Method,
    storage_data_ptr: Method,
    /// The address of what stands for a storage in C++.
    storage_owner: Option<Getter>,
    dispatch_keys: Method,
    /// The dispatch key of tensors whose class is written in Python.
    python_key: Py<PyAny>,
    /// The classes whose instances are never wrapped.
    plain: Vec<Py<PyType>>,
    base: Py<PyType>,
    dtypes: RefCell<HashMap<usize, String>>,
}

/// A storage of torch.
pub struct TorchStorage {
    /// Its first byte, or its own address where it has none.
    pub address: usize,
    /// `cuda:0`; the host is called so.
    pub device: String,
    pub n_bytes: Bytes,
    /// The address of what stands for it in C++.
    pub owner: usize,
}

/// While it lives, `__torch_function__`, `__torch_dispatch__`, their modes and autograd stay out.
///
/// Made before a section and dropped after it: this calls torch.
pub struct Quiet {
    guards: Vec<Py<PyAny>>,
    set_grad_enabled: Py<PyAny>,
    was_grad_enabled: bool,
}

impl Quiet {
    /// None if the user has not imported torch.
    pub fn of_imported(py: Python<'_>) -> Option<Self> {
        let torch = module(py)?;
        Self::new(&torch).ok()
    }

    fn new(torch: &Bound<'_, PyAny>) -> PyResult<Self> {
        let set_grad_enabled = torch.getattr("_set_grad_enabled")?;
        let mut quiet = Self {
            guards: Vec::new(),
            was_grad_enabled: torch.getattr("is_grad_enabled")?.call0()?.is_truthy()?,
            set_grad_enabled: set_grad_enabled.clone().unbind(),
        };
        for name in ["DisableTorchFunction", "_DisableTorchDispatch"] {
            // The second came with torch 2.1; before, modes were entered by operators only.
            let Ok(guard) = torch.getattr(name) else {
                continue;
            };
            let guard = guard.call0()?;
            guard.call_method0("__enter__")?;
            quiet.guards.push(guard.unbind());
        }
        set_grad_enabled.call1((false,))?;
        Ok(quiet)
    }
}

impl Drop for Quiet {
    fn drop(&mut self) {
        Python::attach(|py| {
            // What was entered by these calls is left by them: they do not fail.
            let _ = self.set_grad_enabled.call1(py, (self.was_grad_enabled,));
            for guard in self.guards.iter().rev() {
                let none = (py.None(), py.None(), py.None());
                let _ = guard.call_method1(py, "__exit__", none);
            }
        });
    }
}

/// The module of torch's C code, if the user has imported torch.
fn module(py: Python<'_>) -> Option<Bound<'_, PyAny>> {
    imported(py, "torch._C").ok()?
}

/// Whether the user has imported torch. Importing it is not ours to do.
pub fn is_imported(py: Python<'_>) -> bool {
    module(py).is_some()
}

impl Access {
    /// Takes the readers from the torch that is imported; none if there is none, or another than is
    /// known here.
    pub fn of_imported<'s>(section: &'s Section<'s>) -> Option<Self> {
        let modules = section.modules()?;
        let torch = modules.get("torch._C")?.globals()?;
        let base = torch.get("TensorBase").or_else(|| torch.get("_TensorBase"));
        let base = base?.as_class()?;
        let storage = torch.get("StorageBase")?.as_class()?;
        let class = |module: &str, name: &str| {
            let class = modules.get(module)?.globals()?.get(name)?.as_class()?;
            Some(class.unbind())
        };
        let plain = [
            class("torch", "Tensor"),
            class("torch.nn.parameter", "Parameter"),
        ];
        Some(Self {
            is_leaf: base.getter("is_leaf")?,
            retains_grad: base.getter("retains_grad")?,
            grad: base.getter("grad")?,
            grad_fn: base.getter("grad_fn")?,
            backward_hooks: base.getter("_backward_hooks")?,
            post_accumulate_grad_hooks: base.getter("_post_accumulate_grad_hooks"),
            requires_grad: base.getter("requires_grad")?,
            shape: base.getter("shape")?,
            dtype: base.getter("dtype")?,
            device: base.getter("device")?,
            element_size: base.method("element_size")?,
            layout: base.getter("layout")?,
            storage: base.method("untyped_storage")?,
            storage_device: storage.getter("device")?,
            storage_nbytes: storage.method("nbytes")?,
            storage_data_ptr: storage.method("data_ptr")?,
            storage_owner: storage.getter("_cdata"),
            dispatch_keys: torch.get("_dispatch_keys")?.function()?,
            python_key: torch
                .get("DispatchKey")?
                .as_class()?
                .attribute("Python")?
                .unbind(),
            plain: plain.into_iter().flatten().collect(),
            base: base.unbind(),
            dtypes: RefCell::default(),
        })
    }

    /// Whether an object is a tensor of any class.
    pub fn is_tensor(&self, object: &Object<'_>) -> bool {
        object.class().is_subtype(&self.base)
    }

    /// Whether reading this tensor would enter a class that is written in Python.
    ///
    /// Such a class keeps its data in tensors of its own, which are found in its attributes.
    pub(crate) fn is_wrapped(&self, tensor: &Object<'_>) -> Option<bool> {
        let class = tensor.class();
        if self.plain.iter().any(|plain| class.is_class(plain)) {
            return Some(false);
        }
        let keys = self.dispatch_keys.call(tensor)?;
        let key = tensor.section().kept(&self.python_key);
        let has = keys.class().method("has")?;
        has.call_with(&[&keys, &key])?.is_true()
    }

    /// Its storages: one, the parts of a sparse tensor, or none where torch has nothing to show.
    pub fn storages(&self, tensor: &Object<'_>) -> Option<Vec<TorchStorage>> {
        if let Some(storage) = self.storage.call(tensor) {
            return Some(self.found(&storage)?.into_iter().collect());
        }
        let mut found = Vec::new();
        for part in self.sparse_parts(tensor)? {
            found.extend(self.found(&self.storage.call(&part)?)?);
        }
        Some(found)
    }

    /// The tensors that make up a sparse one.
    fn sparse_parts<'s>(&self, tensor: &Object<'s>) -> Option<Vec<Object<'s>>> {
        let layout = self.layout.get(tensor)?.str_text()?;
        let names: &[&str] = match layout.as_str() {
            "torch.sparse_coo" => &["_indices", "_values"],
            "torch.sparse_csr" | "torch.sparse_bsr" => &["crow_indices", "col_indices", "values"],
            "torch.sparse_csc" | "torch.sparse_bsc" => &["ccol_indices", "row_indices", "values"],
            _ => &[],
        };
        let base = tensor.section().class(&self.base);
        let part = |name: &&str| base.method(name)?.call(tensor);
        names.iter().map(part).collect()
    }

    /// Nothing inside where a storage has no bytes anywhere, as on the `meta` device.
    #[expect(clippy::option_option, reason = "not read, and nothing to be read")]
    fn found(&self, storage: &Object<'_>) -> Option<Option<TorchStorage>> {
        let device = self.storage_device.get(storage)?.str_text()?;
        let n_bytes = self.storage_nbytes.call(storage)?.number()?;
        if n_bytes == 0 || device == "meta" {
            return Some(None);
        }
        let number = |object: Object<'_>| usize::try_from(object.number()?).ok();
        let owner = self.storage_owner.as_ref();
        let owner = owner.and_then(|owner| number(owner.get(storage)?));
        Some(Some(TorchStorage {
            address: number(self.storage_data_ptr.call(storage)?)?,
            device: label(device),
            n_bytes: Bytes::new(n_bytes),
            owner: owner.unwrap_or_default(),
        }))
    }

    /// `float32`
    pub fn dtype(&self, tensor: &Object<'_>) -> Option<String> {
        let dtype = self.dtype.get(tensor)?;
        if let Some(known) = self.dtypes.borrow().get(&dtype.address()) {
            return Some(known.clone());
        }
        let words = dtype.str_text()?;
        let words = words.strip_prefix("torch.").unwrap_or(&words).to_owned();
        let mut dtypes = self.dtypes.borrow_mut();
        dtypes.insert(dtype.address(), words.clone());
        Some(words)
    }

    /// None where a length is a symbol.
    pub fn shape(&self, tensor: &Object<'_>) -> Option<Vec<u64>> {
        let shape = self.shape.get(tensor)?;
        shape.tuple()?.map(|length| length.number()).collect()
    }

    /// Label of its device; `meta` where it has no bytes.
    pub fn device(&self, tensor: &Object<'_>) -> Option<String> {
        self.device.get(tensor)?.str_text().map(label)
    }

    /// Bytes of one element.
    pub fn element_bytes(&self, tensor: &Object<'_>) -> Option<u64> {
        self.element_size.call(tensor)?.number()
    }

    /// Its gradient, which torch warns about where there can be none.
    pub fn gradient<'s>(&self, tensor: &Object<'s>) -> Option<Object<'s>> {
        let may_have =
            self.is_leaf.get(tensor)?.is_true()? || self.retains_grad.get(tensor)?.is_true()?;
        let grad = may_have.then(|| self.grad.get(tensor))?;
        grad.filter(|grad| !grad.is_none())
    }

    /// The tensor itself, or what a class written in Python keeps in its place.
    pub fn local<'s>(&self, tensor: &Object<'s>) -> Option<Vec<Object<'s>>> {
        let mut pending = vec![tensor.clone()];
        let mut local = Vec::new();
        let mut seen = Vec::new();
        while let Some(tensor) = pending.pop() {
            if !self.is_wrapped(&tensor)? {
                local.push(tensor);
            } else if !seen.contains(&tensor.address()) {
                seen.push(tensor.address());
                let values = tensor.values();
                pending.extend(values.into_iter().filter(|value| self.is_tensor(value)));
            }
        }
        Some(local)
    }

    /// Whether it takes part in autograd; `None` if that cannot be read.
    pub fn requires_grad(&self, tensor: &Object<'_>) -> Option<bool> {
        self.requires_grad.get(tensor)?.is_true()
    }
}

/// torch's name of a device as it is written elsewhere in gpumem.
pub(crate) fn label(device: String) -> String {
    if device == "cpu" {
        "host".to_owned()
    } else {
        device
    }
}
