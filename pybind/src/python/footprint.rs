//! Reads a torch model and its optimizer for the core's footprint.

use std::collections::{HashMap, HashSet};

use gpumem_footprint as footprint;
use gpumem_footprint::{FootprintPart, ModelTensor, Options, Parameter, PresentPart, TrainedModel};
use gpumem_model::units::Bytes;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use gpumem_base::errors::GpuMemError;
use gpumem_base::gil;
use gpumem_objects::adapters::{Access, Quiet, torch_is_imported};
use gpumem_objects::still::{Class, Object, Section};

/// An optimizer inside an optimizer, as wrappers keep it: more levels are no wrapper.
const MAX_WRAPPERS: usize = 4;
/// How deep an optimizer's state is read: lists inside the dictionary of a parameter.
const MAX_DEPTH: usize = 4;

/// What a model in training should take, next to what is there. Sizes are bytes.
#[pyclass(frozen, name = "Footprint", module = "gpumem.types")]
pub(crate) struct PyFootprint {
    inner: footprint::Footprint,
}

/// One kind of memory on one device.
#[pyclass(frozen, get_all, name = "FootprintRow", module = "gpumem.types")]
pub(crate) struct PyFootprintRow {
    device: String,
    /// `parameters`, `buffers`, `gradients` or `optimizer_state`.
    part: &'static str,
    /// What it should take; None where the optimizer is not known.
    expected_bytes: Option<u64>,
    present_bytes: u64,
    /// How the expected size comes about.
    formula: String,
}

#[pymethods]
impl PyFootprint {
    /// One for each device and part.
    #[getter]
    fn rows(&self) -> Vec<PyFootprintRow> {
        let rows = self.inner.rows.iter();
        rows.map(|row| PyFootprintRow {
            device: row.device.clone(),
            part: row.part.name(),
            expected_bytes: row.expected.map(Bytes::get),
            present_bytes: row.present.get(),
            formula: row.formula.clone(),
        })
        .collect()
    }

    /// The name of the optimizer's class.
    #[getter]
    fn optimizer(&self) -> Option<&str> {
        self.inner.optimizer.as_deref()
    }

    /// The table as text.
    fn text(&self) -> String {
        self.inner.to_string()
    }

    fn __str__(&self) -> String {
        self.text()
    }

    fn __repr__(&self) -> String {
        let n_rows = self.inner.rows.len();
        format!("<Footprint: {n_rows} rows>")
    }

    /// What `IPython` prints.
    fn _repr_pretty_(&self, printer: &Bound<'_, PyAny>, _is_cycle: bool) -> PyResult<()> {
        printer.call_method1("text", (self.text(),)).map(drop)
    }

    fn _repr_html_<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let module = py.import("gpumem._table")?;
        let size = |bytes: Option<u64>| module.call_method1("size", (bytes,));
        let rows = self.rows().into_iter().map(|row| {
            let (expected, present) = (size(row.expected_bytes)?, size(Some(row.present_bytes))?);
            let part = row.part.replace('_', " ");
            Ok((row.device, part, expected, present, row.formula))
        });
        let heads = ["device", "", "should take", "is there", "how"];
        module.call_method1("table", (heads, rows.collect::<PyResult<Vec<_>>>()?))
    }
}

#[pymethods]
impl PyFootprintRow {
    fn __repr__(&self) -> String {
        let expected = self.expected_bytes.map(Bytes::new);
        let expected = expected.map_or_else(|| "not known".to_owned(), |bytes| bytes.to_string());
        let (device, part, present) = (&self.device, self.part, Bytes::new(self.present_bytes));
        format!("<{device} {part}: {present} of {expected}>")
    }
}

/// What parameters, gradients and the optimizer's state should take, next to what is there.
///
/// `model` is a `torch.nn.Module`, `optimizer` a `torch.optim.Optimizer`, one of bitsandbytes or
/// one that wraps such. Activations depend on the input and are not foretold.
#[pyfunction(name = "footprint", signature = (model, optimizer=None))]
pub(crate) fn of_model(
    py: Python<'_>,
    model: &Bound<'_, PyAny>,
    optimizer: Option<&Bound<'_, PyAny>>,
) -> PyResult<PyFootprint> {
    if !gil::is_there() {
        return Err(GpuMemError::new_err(format!("no footprint: {}", gil::NONE)));
    }
    let not_a_module = || {
        let class = model.get_type().to_string();
        PyTypeError::new_err(format!("a torch.nn.Module is needed, not {class}"))
    };
    if !torch_is_imported(py) || !model.hasattr("parameters")? {
        return Err(not_a_module());
    }
    // Read from the model before torch's dispatch is disabled: it may be a wrapper.
    let parameters = collected(model, "parameters")?;
    let buffers = if model.hasattr("buffers")? {
        collected(model, "buffers")?
    } else {
        Vec::new()
    };
    let optimizer = optimizer.map(unwrapped).transpose()?;
    let options = optimizer.as_ref().map(options_by_parameter).transpose()?;
    let _quiet = Quiet::of_imported(py);
    let model = Section::enter(py, false, |section| {
        let access = Access::of_imported(section)?;
        let object = |it: &Bound<'_, PyAny>| section.object(it);
        if !parameters.iter().all(|it| access.is_tensor(&object(it))) {
            return None;
        }
        let mut reader = ModelReader {
            access,
            seen: HashSet::new(),
            model: TrainedModel::default(),
        };
        let optimizer = optimizer.as_ref().map(object);
        reader.read_optimizer(optimizer.as_ref());
        for parameter in &parameters {
            let parameter = object(parameter);
            let options = options.as_ref().and_then(|of| of.get(&parameter.address()));
            reader.read_parameter(&parameter, options)?;
        }
        for buffer in &buffers {
            reader.read_buffer(&object(buffer))?;
        }
        if let Some(state) = optimizer.and_then(|optimizer| optimizer.attribute("state")) {
            reader.read_state(&state, MAX_DEPTH);
        }
        Some(reader.model)
    });
    Ok(PyFootprint {
        inner: footprint::Footprint::for_model(&model.ok_or_else(not_a_module)?),
    })
}

fn collected<'py>(model: &Bound<'py, PyAny>, method: &str) -> PyResult<Vec<Bound<'py, PyAny>>> {
    model.call_method0(method)?.try_iter()?.collect()
}

/// The optimizer that has the parameters, where another wraps it.
fn unwrapped<'py>(optimizer: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let py = optimizer.py();
    let attribute = |object: &Bound<'_, PyAny>, name: &str| {
        Section::enter(py, false, |section| {
            let found = section.object(object).attribute(name);
            found.map(Object::unbind)
        })
    };
    let mut found = optimizer.clone();
    for _ in 0..MAX_WRAPPERS {
        if attribute(&found, "param_groups").is_some() {
            return Ok(found);
        }
        let Some(inner) = attribute(&found, "optimizer") else {
            break;
        };
        found = inner.into_bound(py);
    }
    let class = optimizer.get_type();
    Err(PyTypeError::new_err(format!(
        "a torch.optim.Optimizer is needed, not {class}"
    )))
}

/// The address of each parameter that an optimizer has, with the options of its group.
fn options_by_parameter(optimizer: &Bound<'_, PyAny>) -> PyResult<HashMap<usize, Options>> {
    let groups = optimizer.getattr("param_groups")?;
    let mut found = HashMap::new();
    for group in groups.try_iter()? {
        let group = group?;
        let group = group.cast::<PyDict>()?;
        let options = options(group)?;
        let parameters = group.get_item("params")?;
        for parameter in parameters
            .iter()
            .flat_map(pyo3::types::PyAnyMethods::try_iter)
            .flatten()
        {
            found.insert(parameter?.as_ptr() as usize, options.clone());
        }
    }
    Ok(found)
}

fn options(group: &Bound<'_, PyDict>) -> PyResult<Options> {
    let is_set = |name: &str| match group.get_item(name)? {
        Some(value) => {
            Ok::<_, PyErr>(value.extract::<f64>().map_or(true, |n| n != 0.0) && !value.is_none())
        }
        None => Ok(false),
    };
    let history_size = group.get_item("history_size")?;
    Ok(Options {
        has_momentum: is_set("momentum")?,
        is_amsgrad: is_set("amsgrad")?,
        is_centered: is_set("centered")?,
        has_step_on_device: is_set("fused")? || is_set("capturable")?,
        history_size: history_size.map_or(Ok(0), |n| n.extract())?,
    })
}

/// Fills the core's model with what it reads.
struct ModelReader {
    access: Access,
    /// Storages that are counted already.
    seen: HashSet<(String, usize)>,
    model: TrainedModel,
}

impl ModelReader {
    fn read_optimizer(&mut self, optimizer: Option<&Object<'_>>) {
        let name = |class: Class<'_>| Some(format!("{}.{}", class.module()?, class.qualname()?));
        let lineage =
            |optimizer: &Object<'_>| optimizer.class().lineage().filter_map(name).collect();
        self.model.optimizer = optimizer.map(lineage);
    }

    fn read_parameter(&mut self, parameter: &Object<'_>, options: Option<&Options>) -> Option<()> {
        for tensor in self.access.local(parameter)? {
            self.model.parameters.push(Parameter {
                tensor: self.shape(&tensor)?,
                requires_grad: self.access.requires_grad(parameter)?,
                options: options.cloned(),
            });
            self.count(&tensor, FootprintPart::Parameters);
        }
        if let Some(grad) = self.access.gradient(parameter) {
            for tensor in self.access.local(&grad)? {
                self.count(&tensor, FootprintPart::Gradients);
            }
        }
        Some(())
    }

    fn read_buffer(&mut self, buffer: &Object<'_>) -> Option<()> {
        for tensor in self.access.local(buffer)? {
            let shape = self.shape(&tensor)?;
            self.model.buffers.push(shape);
            self.count(&tensor, FootprintPart::Buffers);
        }
        Some(())
    }

    /// The tensors in the values of nested dictionaries, lists and tuples.
    fn read_state(&mut self, state: &Object<'_>, depth: usize) {
        if self.access.is_tensor(state) {
            for tensor in self.access.local(state).into_iter().flatten() {
                self.count(&tensor, FootprintPart::OptimizerState);
            }
            return;
        }
        if depth == 0 {
            return;
        }
        if let Some(dict) = state.dict() {
            dict.values()
                .for_each(|value| self.read_state(&value, depth - 1));
        } else if let Some(list) = state.list() {
            list.for_each(|value| self.read_state(&value, depth - 1));
        } else if let Some(tuple) = state.tuple() {
            tuple.for_each(|value| self.read_state(&value, depth - 1));
        }
    }

    fn shape(&self, tensor: &Object<'_>) -> Option<ModelTensor> {
        Some(ModelTensor {
            device: self.access.device(tensor)?,
            dtype: self.access.dtype(tensor)?,
            shape: self.access.shape(tensor).unwrap_or_default(),
            element_bytes: self.access.element_bytes(tensor)?,
        })
    }

    fn count(&mut self, tensor: &Object<'_>, part: FootprintPart) {
        for storage in self.access.storages(tensor).into_iter().flatten() {
            if self.seen.insert((storage.device.clone(), storage.address)) {
                self.model.present.push(PresentPart {
                    device: storage.device,
                    part,
                    n_bytes: storage.n_bytes,
                });
            }
        }
    }
}
