//! Simulated tensors on a simulated device: real allocations in a model of a
//! caching allocator, graphs that keep what a backward pass would need, and no
//! numbers at all.
//!
//! As in torch, a graph is invisible to Python's garbage collector.

mod device;
mod graph;
mod log;

use std::cell::Cell;
use std::sync::Arc;

use gpumem_model::units::Bytes;
use gpumem_sim::SimOutOfMemory;
use pyo3::exceptions::{
    PyAttributeError, PyOverflowError, PyRuntimeError, PyTypeError, PyValueError,
};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyFloat, PyInt};

use device::MAX_DEVICES;
pub use device::{
    SimDevice, SimStorage, begin_traces, ensure as ensure_device, reset_peaks, segments, shown,
    stats,
};
pub use graph::{Gradient, GraphNode, Leaf};

/// A scalar: one 4-byte float.
const SCALAR: Bytes = Bytes::new(4);

pyo3::create_exception!(
    gpumem.sim,
    OutOfMemoryError,
    PyRuntimeError,
    "The simulated device cannot serve a request, in PyTorch's words."
);

thread_local! {
    static IS_GRAD_ON: Cell<bool> = const { Cell::new(true) };
}

/// Adds what `gpumem.sim` is made of to the extension module.
pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<HostTensor>()?;
    module.add_class::<Tensor>()?;
    let error = module.py().get_type::<OutOfMemoryError>();
    module.add("OutOfMemoryError", error)?;
    module.add_function(wrap_pyfunction!(sim_use, module)?)?;
    module.add_function(wrap_pyfunction!(sim_tensor, module)?)?;
    module.add_function(wrap_pyfunction!(sim_empty_cache, module)?)?;
    module.add_function(wrap_pyfunction!(sim_memory_stats, module)?)?;
    module.add_function(wrap_pyfunction!(sim_reset_peak_memory_stats, module)?)?;
    module.add_function(wrap_pyfunction!(sim_set_grad_enabled, module)?)
}

/// A tensor of a simulated device: a size and what it keeps alive, without numbers.
#[pyclass(frozen, weakref, module = "gpumem.sim")]
pub struct Tensor {
    /// The memory that it has.
    pub storage: Arc<SimStorage>,
    n_bytes: Bytes,
    /// Where its gradient goes.
    pub gradient: Option<Gradient>,
}

/// What stands beside a tensor in `+` and `*`. Anything else is left to Python to refuse.
#[derive(FromPyObject)]
enum Operand<'py> {
    Tensor(Bound<'py, Tensor>),
    Number(AnyNumber),
}

/// An `int` or a `float`; its value makes no difference here.
struct AnyNumber;

impl<'a, 'py> FromPyObject<'a, 'py> for AnyNumber {
    type Error = PyErr;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        if object.is_instance_of::<PyInt>() || object.is_instance_of::<PyFloat>() {
            return Ok(Self);
        }
        Err(PyTypeError::new_err("not a number"))
    }
}

#[pymethods]
impl Tensor {
    fn __add__(&self, other: Operand<'_>) -> PyResult<Self> {
        match other {
            Operand::Tensor(other) => {
                let other = other.get();
                self.check_same_device(other)?;
                self.result("add", self.n_bytes.max(other.n_bytes), &[self, other], &[])
            }
            Operand::Number(_) => self.result("add", self.n_bytes, &[self], &[]),
        }
    }

    fn __radd__(&self, _number: AnyNumber) -> PyResult<Self> {
        self.__add__(Operand::Number(AnyNumber))
    }

    fn __mul__(&self, other: Operand<'_>) -> PyResult<Self> {
        match other {
            Operand::Tensor(other) => {
                let both = [self, other.get()];
                self.check_same_device(both[1])?;
                self.result("mul", self.n_bytes.max(both[1].n_bytes), &both, &both)
            }
            // The derivative of `t * 2` needs no more than the 2.
            Operand::Number(_) => self.result("mul", self.n_bytes, &[self], &[]),
        }
    }

    fn __rmul__(&self, _number: AnyNumber) -> PyResult<Self> {
        self.__mul__(Operand::Number(AnyNumber))
    }

    fn __matmul__(&self, other: &Bound<'_, Self>) -> PyResult<Self> {
        let both = [self, other.get()];
        self.check_same_device(both[1])?;
        self.result("matmul", self.n_bytes, &both, &both)
    }

    /// A tensor of one 4-byte number, which the allocator rounds to 512 B.
    fn sum(&self) -> PyResult<Self> {
        self.result("sum", SCALAR, &[self], &[])
    }

    /// The same storage without the graph: it is kept alive, what the graph saved is not.
    fn detach(&self) -> Self {
        Self {
            storage: Arc::clone(&self.storage),
            n_bytes: self.n_bytes,
            gradient: None,
        }
    }

    /// The number of a scalar: 0.0, as simulated tensors have no numbers.
    fn item(&self) -> PyResult<f64> {
        self.check_scalar("only a scalar (4 B) can be turned into a number")?;
        Ok(0.0)
    }

    fn __float__(&self) -> PyResult<f64> {
        self.item()
    }

    /// A copy in host memory: on the simulated device it takes nothing.
    fn cpu(&self) -> HostTensor {
        HostTensor {
            n_bytes: self.n_bytes,
        }
    }

    /// A copy on a device, without the graph; this tensor if it is there already.
    fn to<'py>(slf: &Bound<'py, Self>, device: DeviceChoice) -> PyResult<Bound<'py, Self>> {
        let device = device.find()?;
        let tensor = slf.get();
        if Arc::ptr_eq(tensor.storage.device(), &device) {
            return Ok(slf.clone());
        }
        Bound::new(slf.py(), Self::new(&device, tensor.n_bytes, None)?)
    }

    /// Allocates the gradients of the leaves and frees what the graph saved.
    fn backward(&self) -> PyResult<()> {
        self.check_scalar("backward starts from a scalar (4 B), such as `.sum()` gives")?;
        let Some(gradient) = &self.gradient else {
            let message = "this tensor does not require grad and has no graph to go back through";
            return Err(PyRuntimeError::new_err(message));
        };
        graph::backward(gradient)
    }

    /// Bytes requested; the allocator rounds them up.
    #[getter]
    fn nbytes(&self) -> u64 {
        self.n_bytes.get()
    }

    /// The device's name, such as `sim:0`.
    #[getter]
    fn device(&self) -> &str {
        self.storage.device().label()
    }

    #[getter]
    fn requires_grad(&self) -> bool {
        self.gradient.is_some()
    }

    /// What `backward` left here: a tensor of the same size on each leaf.
    #[getter]
    fn grad(&self) -> Option<Self> {
        let Some(Gradient::Leaf(leaf)) = &self.gradient else {
            return None;
        };
        leaf.grad().map(|storage| Self {
            storage,
            n_bytes: self.n_bytes,
            gradient: None,
        })
    }

    /// `None` frees it.
    #[setter(grad)]
    fn set_grad(&self, grad: Option<&Bound<'_, PyAny>>) -> PyResult<()> {
        if grad.is_some() {
            return Err(PyAttributeError::new_err("grad can only be set to None"));
        }
        if let Some(Gradient::Leaf(leaf)) = &self.gradient {
            leaf.forget_grad();
        }
        Ok(())
    }

    fn __repr__(&self) -> String {
        let size = self.n_bytes;
        let device = match self.storage.device().number() {
            0 => String::new(),
            number => format!(", device={number}"),
        };
        match &self.gradient {
            None => format!("sim.tensor({size}{device})"),
            Some(Gradient::Leaf(_)) => format!("sim.tensor({size}, requires_grad=True{device})"),
            Some(Gradient::Node(node)) => {
                format!("sim.tensor({size}, grad_fn={}{device})", node.op())
            }
        }
    }
}

/// What a simulated tensor is copied to. It has no numbers either, and takes no host memory.
#[pyclass(frozen, module = "gpumem.sim")]
pub(crate) struct HostTensor {
    n_bytes: Bytes,
}

#[pymethods]
impl HostTensor {
    /// Bytes.
    #[getter]
    fn nbytes(&self) -> u64 {
        self.n_bytes.get()
    }

    fn __repr__(&self) -> String {
        format!("sim.tensor({}).cpu()", self.n_bytes)
    }
}

impl Tensor {
    fn new(device: &Arc<SimDevice>, n_bytes: Bytes, gradient: Option<Gradient>) -> PyResult<Self> {
        let storage = SimStorage::new(device, n_bytes);
        Ok(Self {
            storage: Arc::new(storage.map_err(|error| refused(device, &error))?),
            n_bytes,
            gradient,
        })
    }

    /// A new tensor on this one's device; `saved` are kept for the backward pass.
    fn result(
        &self,
        op: &'static str,
        n_bytes: Bytes,
        inputs: &[&Self],
        saved: &[&Self],
    ) -> PyResult<Self> {
        let inputs = inputs.iter().filter_map(|input| input.gradient.clone());
        let inputs: Vec<_> = inputs.filter(|_| IS_GRAD_ON.get()).collect();
        let gradient = (!inputs.is_empty()).then(|| {
            let saved = saved.iter().map(|tensor| Arc::clone(&tensor.storage));
            Gradient::Node(Arc::new(GraphNode::new(op, inputs, saved.collect())))
        });
        Self::new(self.storage.device(), n_bytes, gradient)
    }

    fn check_same_device(&self, other: &Self) -> PyResult<()> {
        let (one, another) = (self.storage.device(), other.storage.device());
        if Arc::ptr_eq(one, another) {
            return Ok(());
        }
        let (one, another) = (one.label(), another.label());
        let message = format!("the operands are on {one} and on {another}: copy one with `.to()`");
        Err(PyRuntimeError::new_err(message))
    }

    fn check_scalar(&self, rule: &str) -> PyResult<()> {
        if self.n_bytes == SCALAR {
            return Ok(());
        }
        let size = self.n_bytes;
        let message = format!("{rule}: this tensor has {size}");
        Err(PyValueError::new_err(message))
    }
}

/// A device as the user names it: `1`, or `"sim:1"`.
#[derive(FromPyObject)]
enum DeviceChoice {
    #[pyo3(annotation = "int")]
    Number(i64),
    #[pyo3(annotation = "str")]
    Label(String),
}

impl DeviceChoice {
    fn find(self) -> PyResult<Arc<SimDevice>> {
        let number = match &self {
            Self::Number(number) => usize::try_from(*number).ok(),
            Self::Label(label) => {
                let number = label.strip_prefix("sim:");
                number.and_then(|number| number.parse().ok())
            }
        };
        let mut devices = device::current();
        match number {
            Some(number) if number < devices.len() => Ok(devices.swap_remove(number)),
            _ => Err(self.unknown(devices.len())),
        }
    }

    fn unknown(&self, n_devices: usize) -> PyErr {
        let named = match self {
            Self::Number(number) => number.to_string(),
            Self::Label(label) => format!("{label:?}"),
        };
        let last = n_devices - 1;
        let message = format!("device must be from 0 to {last}, not {named}");
        PyValueError::new_err(message)
    }
}

/// Replaces the simulated devices by empty ones of `total_bytes` each.
#[pyfunction]
fn sim_use(total_bytes: &Bound<'_, PyAny>, n_devices: i64) -> PyResult<()> {
    let capacity = size("total_bytes", total_bytes)?;
    if capacity == Bytes::ZERO {
        return Err(PyValueError::new_err(
            "total_bytes must be at least 1, not 0",
        ));
    }
    let n_wanted = usize::try_from(n_devices).ok();
    let n_wanted = n_wanted.filter(|n| (1..=MAX_DEVICES).contains(n));
    let n_wanted = n_wanted.ok_or_else(|| {
        let message = format!("n_devices must be from 1 to {MAX_DEVICES}, not {n_devices}");
        PyValueError::new_err(message)
    })?;
    device::install(capacity, n_wanted);
    Ok(())
}

/// Allocates a tensor of `n_bytes`.
#[pyfunction(signature = (n_bytes, *, requires_grad, device))]
fn sim_tensor(
    n_bytes: &Bound<'_, PyAny>,
    requires_grad: bool,
    device: DeviceChoice,
) -> PyResult<Tensor> {
    let n_bytes = size("n_bytes", n_bytes)?;
    let mut tensor = Tensor::new(&device.find()?, n_bytes, None)?;
    if requires_grad {
        let leaf = Leaf::new(Arc::clone(&tensor.storage));
        tensor.gradient = Some(Gradient::Leaf(Arc::new(leaf)));
    }
    Ok(tensor)
}

/// Gives free segments back to all devices; how many bytes that was.
#[pyfunction]
fn sim_empty_cache() -> u64 {
    let devices = device::current();
    let freed = devices.iter().map(|device| device.empty_cache().get());
    freed.sum()
}

/// What the device's allocator counts now.
#[pyfunction]
fn sim_memory_stats(py: Python<'_>, device: DeviceChoice) -> PyResult<Bound<'_, PyDict>> {
    let device = device.find()?;
    let stats = device.stats();
    let entries = [
        ("allocated_bytes", stats.allocated.get()),
        ("active_bytes", stats.allocated.get()),
        ("reserved_bytes", stats.reserved.get()),
        ("inactive_split_bytes", stats.inactive_split.get()),
        ("largest_free_bytes", stats.largest_free.get()),
        ("peak_allocated_bytes", stats.peak_allocated.get()),
        ("peak_reserved_bytes", stats.peak_reserved.get()),
        ("total_bytes", device.capacity().get()),
        ("n_segments", stats.n_segments),
        ("n_retries", stats.n_retries),
        ("n_ooms", stats.n_ooms),
    ];
    let dict = PyDict::new(py);
    for (key, value) in entries {
        dict.set_item(key, value)?;
    }
    Ok(dict)
}

/// Sets the device's peaks to the present levels.
#[pyfunction]
fn sim_reset_peak_memory_stats(device: DeviceChoice) -> PyResult<()> {
    device.find()?.reset_peaks();
    Ok(())
}

/// Sets whether this thread's operations build graphs; what it was before.
#[pyfunction(signature = (*, enabled))]
fn sim_set_grad_enabled(enabled: bool) -> bool {
    IS_GRAD_ON.replace(enabled)
}

fn size(name: &str, value: &Bound<'_, PyAny>) -> PyResult<Bytes> {
    let n_bytes = match value.extract::<i64>() {
        Err(error) if !error.is_instance_of::<PyOverflowError>(value.py()) => return Err(error),
        n_bytes => n_bytes.ok().and_then(|n| u64::try_from(n).ok()),
    };
    n_bytes.map(Bytes::new).ok_or_else(|| {
        let message = format!("{name} must be from 0 to 2**63 - 1, not {value}");
        PyValueError::new_err(message)
    })
}

/// The error that the user's code gets.
fn refused(device: &SimDevice, error: &SimOutOfMemory) -> PyErr {
    OutOfMemoryError::new_err(device::out_of_memory(device, error))
}
