//! How torch's own C code reads a tensor: nothing of a subclass, of a mode or of a hook is entered.

use std::cell::RefCell;
use std::collections::HashMap;

use gpumem_core::units::Bytes;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple, PyType};

use super::super::identity::Proof;
use super::super::peek::{self, Getter, class_attribute};

/// The readers of torch's tensors and storages, taken from its extension types.
pub(crate) struct Access {
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
    element_size: Py<PyAny>,
    layout: Getter,
    storage: Py<PyAny>,
    storage_device: Getter,
    storage_nbytes: Py<PyAny>,
    storage_data_ptr: Py<PyAny>,
    storage_weak_ref: Py<PyAny>,
    storage_class: Py<PyAny>,
    dispatch_keys: Py<PyAny>,
    python_key: Py<PyAny>,
    /// The classes whose instances are never wrapped.
    plain: Vec<Py<PyType>>,
    base: Py<PyType>,
    words: RefCell<HashMap<usize, String>>,
    /// Dropped last: it turns torch's own interception on again.
    _quiet: Quiet,
}

/// A storage of torch.
pub(crate) struct Found {
    /// Its first byte, or its own address where it has none.
    pub(crate) address: usize,
    /// `cuda:0`; the host is called so.
    pub(crate) device: String,
    pub(crate) n_bytes: Bytes,
    storage: Py<PyAny>,
}

/// While it lives, `__torch_function__`, `__torch_dispatch__`, their modes and autograd stay out.
struct Quiet {
    guards: Vec<Py<PyAny>>,
    set_grad_enabled: Py<PyAny>,
    was_grad_enabled: bool,
}

impl Quiet {
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

impl Access {
    /// Takes the readers from the torch that is imported.
    pub(crate) fn new(py: Python<'_>) -> PyResult<Self> {
        let modules = py.import("sys")?.getattr("modules")?;
        let torch = modules.get_item("torch._C")?;
        let base = torch
            .getattr("TensorBase")
            .or_else(|_| torch.getattr("_TensorBase"))?;
        let base = base.cast_into::<PyType>()?;
        let storage = torch.getattr("StorageBase")?.cast_into::<PyType>()?;
        let method = |class: &Bound<'_, PyType>, name: &str| {
            let found = class_attribute(class, name)?;
            found.map(Bound::unbind).ok_or_else(|| missing(name))
        };
        let of_tensor = |name: &str| Getter::find(&base, name);
        let tensor = modules.get_item("torch")?.getattr("Tensor")?;
        let parameter = modules
            .get_item("torch.nn.parameter")
            .and_then(|module| module.getattr("Parameter"));
        let plain = [Some(tensor), parameter.ok()].into_iter().flatten();
        Ok(Self {
            is_leaf: of_tensor("is_leaf")?,
            retains_grad: of_tensor("retains_grad")?,
            grad: of_tensor("grad")?,
            grad_fn: of_tensor("grad_fn")?,
            backward_hooks: of_tensor("_backward_hooks")?,
            post_accumulate_grad_hooks: of_tensor("_post_accumulate_grad_hooks").ok(),
            requires_grad: of_tensor("requires_grad")?,
            shape: of_tensor("shape")?,
            dtype: of_tensor("dtype")?,
            device: of_tensor("device")?,
            element_size: method(&base, "element_size")?,
            layout: of_tensor("layout")?,
            storage: method(&base, "untyped_storage")?,
            storage_device: Getter::find(&storage, "device")?,
            storage_nbytes: method(&storage, "nbytes")?,
            storage_data_ptr: method(&storage, "data_ptr")?,
            storage_weak_ref: method(&storage, "_weak_ref")?,
            storage_class: storage.clone().into_any().unbind(),
            dispatch_keys: torch.getattr("_dispatch_keys")?.unbind(),
            python_key: torch.getattr("DispatchKey")?.getattr("Python")?.unbind(),
            plain: plain
                .filter_map(|class| Some(class.cast_into::<PyType>().ok()?.unbind()))
                .collect(),
            base: base.unbind(),
            words: RefCell::default(),
            _quiet: Quiet::new(&torch)?,
        })
    }

    /// Whether an object is a tensor of any class.
    pub(crate) fn is_tensor(&self, object: &Bound<'_, PyAny>) -> bool {
        peek::is_subtype(&object.get_type(), self.base.bind(object.py()))
    }

    /// Whether reading this tensor would enter a class that is written in Python.
    ///
    /// Such a class keeps its data in tensors of its own, which are found in its attributes.
    pub(crate) fn is_wrapped(&self, tensor: &Bound<'_, PyAny>) -> PyResult<bool> {
        let py = tensor.py();
        let class = tensor.get_type();
        if self.plain.iter().any(|plain| class.is(plain.bind(py))) {
            return Ok(false);
        }
        let keys = self.dispatch_keys.bind(py).call1((tensor,))?;
        keys.call_method1("has", (self.python_key.bind(py),))?
            .is_truthy()
    }

    /// Its storages: one, the parts of a sparse tensor, or none where torch has nothing to show.
    pub(crate) fn storages(&self, tensor: &Bound<'_, PyAny>) -> PyResult<Vec<Found>> {
        if let Ok(storage) = self.storage.bind(tensor.py()).call1((tensor,)) {
            return Ok(self.found(&storage)?.into_iter().collect());
        }
        let mut found = Vec::new();
        for part in self.sparse_parts(tensor)? {
            let storage = self.storage.bind(tensor.py()).call1((part,))?;
            found.extend(self.found(&storage)?);
        }
        Ok(found)
    }

    /// The tensors that make up a sparse one.
    fn sparse_parts<'py>(&self, tensor: &Bound<'py, PyAny>) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let layout = self.layout.get(tensor)?.str()?.to_string();
        let names: &[&str] = match layout.as_str() {
            "torch.sparse_coo" => &["_indices", "_values"],
            "torch.sparse_csr" | "torch.sparse_bsr" => &["crow_indices", "col_indices", "values"],
            "torch.sparse_csc" | "torch.sparse_bsc" => &["ccol_indices", "row_indices", "values"],
            _ => &[],
        };
        let base = self.base.bind(tensor.py());
        let part = |name: &&str| {
            let method = class_attribute(base, name)?.ok_or_else(|| missing(name))?;
            method.call1((tensor,))
        };
        names.iter().map(part).collect()
    }

    /// Nothing where a storage has no bytes anywhere, as on the `meta` device.
    fn found(&self, storage: &Bound<'_, PyAny>) -> PyResult<Option<Found>> {
        let py = storage.py();
        let device = self.storage_device.get(storage)?.str()?.to_string();
        let n_bytes: u64 = self.storage_nbytes.bind(py).call1((storage,))?.extract()?;
        if n_bytes == 0 || device == "meta" {
            return Ok(None);
        }
        let address: usize = self
            .storage_data_ptr
            .bind(py)
            .call1((storage,))?
            .extract()?;
        Ok(Some(Found {
            address,
            device: label(device),
            n_bytes: Bytes::new(n_bytes),
            storage: storage.clone().unbind(),
        }))
    }

    /// What tells later that it is still this storage. It keeps a few bytes of torch's, no memory
    /// of the tensor.
    pub(super) fn proof(&self, py: Python<'_>, found: &Found) -> Proof {
        let weak = self.storage_weak_ref.call1(py, (&found.storage,));
        weak.map_or(Proof::Size, |weak| Proof::Torch {
            weak,
            class: self.storage_class.clone_ref(py),
        })
    }

    /// `float32`
    pub(crate) fn dtype(&self, tensor: &Bound<'_, PyAny>) -> PyResult<String> {
        let dtype = self.dtype.get(tensor)?;
        let key = dtype.as_ptr() as usize;
        if let Some(known) = self.words.borrow().get(&key) {
            return Ok(known.clone());
        }
        let words = dtype.str()?.to_string();
        let words = words.strip_prefix("torch.").unwrap_or(&words).to_owned();
        self.words.borrow_mut().insert(key, words.clone());
        Ok(words)
    }

    /// None where a length is a symbol.
    pub(crate) fn shape(&self, tensor: &Bound<'_, PyAny>) -> Option<Vec<u64>> {
        let shape = self.shape.get(tensor).ok()?;
        let shape = shape.cast::<PyTuple>().ok()?;
        shape
            .iter()
            .map(|length| {
                length
                    .cast_exact::<pyo3::types::PyInt>()
                    .ok()?
                    .extract()
                    .ok()
            })
            .collect()
    }

    /// Label of its device; `meta` where it has no bytes.
    pub(crate) fn device(&self, tensor: &Bound<'_, PyAny>) -> PyResult<String> {
        Ok(label(self.device.get(tensor)?.str()?.to_string()))
    }

    /// Bytes of one element.
    pub(crate) fn element_bytes(&self, tensor: &Bound<'_, PyAny>) -> PyResult<u64> {
        let element_size = self.element_size.bind(tensor.py());
        element_size.call1((tensor,))?.extract()
    }

    /// Its gradient, which torch warns about where there can be none.
    pub(crate) fn gradient<'py>(
        &self,
        tensor: &Bound<'py, PyAny>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let may_have =
            self.is_leaf.get(tensor)?.is_truthy()? || self.retains_grad.get(tensor)?.is_truthy()?;
        if !may_have {
            return Ok(None);
        }
        Ok(Some(self.grad.get(tensor)?).filter(|grad| !grad.is_none()))
    }

    /// The tensor itself, or what a class written in Python keeps in its place.
    pub(crate) fn local<'py>(
        &self,
        tensor: &Bound<'py, PyAny>,
    ) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let mut pending = vec![tensor.clone()];
        let mut local = Vec::new();
        let mut seen = Vec::new();
        while let Some(tensor) = pending.pop() {
            if !self.is_wrapped(&tensor)? {
                local.push(tensor);
            } else if !seen.contains(&tensor.as_ptr()) {
                seen.push(tensor.as_ptr());
                let values = peek::values(&tensor)?;
                pending.extend(values.into_iter().filter(|value| self.is_tensor(value)));
            }
        }
        Ok(local)
    }

    pub(crate) fn requires_grad(&self, tensor: &Bound<'_, PyAny>) -> PyResult<bool> {
        self.requires_grad.get(tensor)?.is_truthy()
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

fn missing(name: &str) -> PyErr {
    pyo3::exceptions::PyAttributeError::new_err(name.to_owned())
}

/// Whether the user has imported torch. Importing it is not ours to do.
pub(crate) fn is_imported(py: Python<'_>) -> bool {
    let modules = py.import("sys").and_then(|sys| sys.getattr("modules"));
    let torch = modules.and_then(|it| it.cast::<PyDict>()?.get_item("torch._C"));
    torch.is_ok_and(|torch| torch.is_some_and(|torch| !torch.is_none()))
}
