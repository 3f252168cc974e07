//! What a profiler hands out, and what people build by hand: a snapshot of a
//! device's memory, and the result of one profiled call.
//!
//! Neither takes part in Python's garbage collection: a million of them would
//! make every collection slow, and what they hold (numbers and texts) makes no
//! cycles. What the rules read stands last, beside pyo3's borrow flag: of a million
//! records, each line of the processor's cache that is not fetched counts.

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyTuple, PyType};
use pyo3::{PyClass, intern};

use super::number::{FieldValue, Number, records_change};

/// The memory of a device at one instant. Sizes are bytes, the timestamp is
/// seconds since 1970; None where a level is not known.
#[pyclass(subclass, get_all, set_all, module = "gpumem.classic")]
#[repr(C)]
pub(crate) struct MemorySnapshot {
    pub(super) operation: Py<PyAny>,
    pub(super) stack_trace: Py<PyAny>,
    pub(super) max_memory_allocated: Number,
    pub(super) max_memory_reserved: Number,
    pub(super) active_memory: Number,
    pub(super) inactive_memory: Number,
    pub(super) cpu_memory: Number,
    pub(super) device_id: Number,
    pub(super) timestamp: Number,
    pub(super) reserved_memory: Number,
    pub(super) allocated_memory: Number,
}

#[pymethods]
impl MemorySnapshot {
    #[new]
    #[pyo3(signature = (
        timestamp,
        allocated_memory,
        reserved_memory,
        max_memory_allocated,
        max_memory_reserved,
        active_memory,
        inactive_memory,
        cpu_memory,
        device_id = Number::Whole(0),
        operation = None,
        stack_trace = None
    ), text_signature = "(timestamp, allocated_memory, reserved_memory, max_memory_allocated, max_memory_reserved, active_memory, inactive_memory, cpu_memory, device_id=0, operation=None, stack_trace=None)")]
    #[expect(clippy::too_many_arguments, reason = "the fields that people know")]
    fn new(
        py: Python<'_>,
        timestamp: Number,
        allocated_memory: Number,
        reserved_memory: Number,
        max_memory_allocated: Number,
        max_memory_reserved: Number,
        active_memory: Number,
        inactive_memory: Number,
        cpu_memory: Number,
        device_id: Number,
        operation: Option<Py<PyAny>>,
        stack_trace: Option<Py<PyAny>>,
    ) -> Self {
        Self {
            timestamp,
            allocated_memory,
            reserved_memory,
            max_memory_allocated,
            max_memory_reserved,
            active_memory,
            inactive_memory,
            cpu_memory,
            device_id,
            operation: operation.unwrap_or_else(|| py.None()),
            stack_trace: stack_trace.unwrap_or_else(|| py.None()),
        }
    }

    /// The fields by name.
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let dict = PyDict::new(py);
        for (name, value) in self.fields(py)? {
            dict.set_item(name, value)?;
        }
        Ok(dict)
    }

    fn __eq__(slf: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        equal(slf, other)
    }

    fn __repr__(slf: &Bound<'_, Self>) -> PyResult<String> {
        described(slf)
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<PickleReduction<'py>> {
        Ok((slf.get_type(), values(slf)?))
    }
}

/// What `pickle` makes a record from again: its class and the values of its fields.
type PickleReduction<'py> = (Bound<'py, PyType>, Bound<'py, PyTuple>);

type RecordFields<'py> = Vec<(&'static str, Bound<'py, PyAny>)>;

/// A record with its fields in the order in which it is made from them.
trait Record: PyClass {
    fn fields<'py>(&self, py: Python<'py>) -> PyResult<RecordFields<'py>>;
}

impl Record for MemorySnapshot {
    fn fields<'py>(&self, py: Python<'py>) -> PyResult<RecordFields<'py>> {
        let number = |number: &Number| -> PyResult<_> { Ok(number.into_pyobject(py)?) };
        Ok(vec![
            ("timestamp", number(&self.timestamp)?),
            ("allocated_memory", number(&self.allocated_memory)?),
            ("reserved_memory", number(&self.reserved_memory)?),
            ("max_memory_allocated", number(&self.max_memory_allocated)?),
            ("max_memory_reserved", number(&self.max_memory_reserved)?),
            ("active_memory", number(&self.active_memory)?),
            ("inactive_memory", number(&self.inactive_memory)?),
            ("cpu_memory", number(&self.cpu_memory)?),
            ("device_id", number(&self.device_id)?),
            ("operation", self.operation.bind(py).clone()),
            ("stack_trace", self.stack_trace.bind(py).clone()),
        ])
    }
}

/// One profiled call of a function. Sizes are bytes, the time is seconds.
#[pyclass(subclass, get_all, set_all, module = "gpumem.classic")]
#[repr(C)]
pub(crate) struct ProfileResult {
    pub(super) memory_freed: Number,
    pub(super) tensors_created: Number,
    pub(super) tensors_deleted: Number,
    pub(super) call_count: Number,
    pub(super) execution_time: Number,
    pub(super) memory_allocated: Number,
    pub(super) function_name: FieldValue<PyString>,
    pub(super) memory_before: FieldValue<PyAny>,
    pub(super) memory_after: FieldValue<PyAny>,
    pub(super) memory_peak: FieldValue<PyAny>,
}

#[pymethods]
impl ProfileResult {
    #[new]
    #[pyo3(signature = (
        function_name,
        execution_time,
        memory_before,
        memory_after,
        memory_peak,
        memory_allocated,
        memory_freed,
        tensors_created,
        tensors_deleted,
        call_count = Number::Whole(1)
    ), text_signature = "(function_name, execution_time, memory_before, memory_after, memory_peak, memory_allocated, memory_freed, tensors_created, tensors_deleted, call_count=1)")]
    #[expect(clippy::too_many_arguments, reason = "the fields that people know")]
    fn new(
        function_name: FieldValue<PyString>,
        execution_time: Number,
        memory_before: FieldValue<PyAny>,
        memory_after: FieldValue<PyAny>,
        memory_peak: FieldValue<PyAny>,
        memory_allocated: Number,
        memory_freed: Number,
        tensors_created: Number,
        tensors_deleted: Number,
        call_count: Number,
    ) -> Self {
        Self {
            memory_freed,
            tensors_created,
            tensors_deleted,
            call_count,
            execution_time,
            memory_allocated,
            function_name,
            memory_before,
            memory_after,
            memory_peak,
        }
    }

    /// Allocated after the call less allocated before it.
    fn memory_diff<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let name = intern!(py, "allocated_memory");
        let after = self.memory_after.0.bind(py).getattr(name)?;
        after.sub(self.memory_before.0.bind(py).getattr(name)?)
    }

    /// The highest that was allocated inside the call.
    fn peak_memory_usage<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let name = intern!(py, "allocated_memory");
        self.memory_peak.0.bind(py).getattr(name)
    }

    /// The fields by name, snapshots as dicts too, with the difference and the peak.
    fn to_dict<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyDict>> {
        let dict = PyDict::new(slf.py());
        for (name, value) in slf.borrow().fields(slf.py())? {
            let is_snapshot = value.hasattr("to_dict")?;
            let value = if is_snapshot {
                value.call_method0("to_dict")?
            } else {
                value
            };
            dict.set_item(name, value)?;
            if name == "memory_freed" {
                for derived in ["memory_diff", "peak_memory_usage"] {
                    dict.set_item(derived, slf.call_method0(derived)?)?;
                }
            }
        }
        Ok(dict)
    }

    fn __eq__(slf: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        equal(slf, other)
    }

    fn __repr__(slf: &Bound<'_, Self>) -> PyResult<String> {
        described(slf)
    }

    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<PickleReduction<'py>> {
        Ok((slf.get_type(), values(slf)?))
    }
}

impl Drop for ProfileResult {
    fn drop(&mut self) {
        records_change();
    }
}

impl Record for ProfileResult {
    fn fields<'py>(&self, py: Python<'py>) -> PyResult<RecordFields<'py>> {
        let number = |number: &Number| -> PyResult<_> { Ok(number.into_pyobject(py)?) };
        Ok(vec![
            (
                "function_name",
                self.function_name.0.bind(py).clone().into_any(),
            ),
            ("execution_time", number(&self.execution_time)?),
            ("memory_before", self.memory_before.0.bind(py).clone()),
            ("memory_after", self.memory_after.0.bind(py).clone()),
            ("memory_peak", self.memory_peak.0.bind(py).clone()),
            ("memory_allocated", number(&self.memory_allocated)?),
            ("memory_freed", number(&self.memory_freed)?),
            ("tensors_created", number(&self.tensors_created)?),
            ("tensors_deleted", number(&self.tensors_deleted)?),
            ("call_count", number(&self.call_count)?),
        ])
    }
}

fn values<'py, T: Record>(record: &Bound<'py, T>) -> PyResult<Bound<'py, PyTuple>> {
    let fields = record.borrow().fields(record.py())?;
    PyTuple::new(record.py(), fields.into_iter().map(|(_, value)| value))
}

/// Whether the fields are equal; Python asks the other one where that is no such record.
fn equal<T: Record>(record: &Bound<'_, T>, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
    let py = record.py();
    let Ok(other) = other.cast::<T>() else {
        return Ok(py.NotImplemented());
    };
    let is_equal = values(record)?.eq(values(other)?)?;
    Ok(is_equal.into_pyobject(py)?.to_owned().into_any().unbind())
}

/// `Name(field=value, …)`, as a dataclass shows itself.
fn described<T: Record>(record: &Bound<'_, T>) -> PyResult<String> {
    let name = record.as_any().get_type().name()?.to_string();
    let fields = record.borrow().fields(record.py())?;
    let fields: PyResult<Vec<String>> = fields
        .iter()
        .map(|(name, value)| Ok(format!("{name}={}", value.repr()?)))
        .collect();
    Ok(format!("{name}({})", fields?.join(", ")))
}
