//! Results in Python → the core's calls: without a look-up by name where they are
//! our own records, by their attributes otherwise.

use gpumem_classic::{Call, Calls};
use pyo3::exceptions::{PyAttributeError, PyTypeError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyList, PyString, PyTuple};

use super::number::Number;
use super::records::{MemorySnapshot, ProfileResult};

/// Names that are looked up by the address of their text, before the text itself.
const N_SLOTS: usize = 256;

/// The calls in `results`, any iterable of records; and whether those are
/// all our own, with plain numbers in them.
pub(super) fn calls(results: &Bound<'_, PyAny>) -> PyResult<(Calls, bool)> {
    // Do not reserve memory for a length that foreign code claims.
    let is_builtin = results.is_instance_of::<PyList>() || results.is_instance_of::<PyTuple>();
    let n = if is_builtin { results.len()? } else { 0 };
    let mut reader = ClassicLevelReader {
        calls: Calls::with_capacity(n),
        names: (0..N_SLOTS).map(|_| None).collect(),
        is_plain: true,
    };
    for (idx, result) in results.try_iter()?.enumerate() {
        let result = result?;
        let call = match result.cast::<ProfileResult>() {
            Ok(own) => reader.call_of_own(own),
            Err(_) => reader.call_of_other(&result),
        };
        let call = call.map_err(|error| located(results.py(), idx, error))?;
        reader.calls.push(call);
    }
    Ok((reader.calls, reader.is_plain))
}

struct ClassicLevelReader {
    calls: Calls,
    /// The last function seen under an address; its text is held, so that nothing else can be
    /// there.
    names: Vec<Option<(Py<PyString>, u32)>>,
    is_plain: bool,
}

/// What the rules use of a snapshot.
struct ClassicLevels {
    timestamp: f64,
    allocated: Number,
    reserved: f64,
}

impl ClassicLevelReader {
    fn call_of_own(&mut self, result: &Bound<'_, ProfileResult>) -> PyResult<Call> {
        let py = result.py();
        let own = result.try_borrow()?;
        self.is_plain &= own.execution_time.is_plain() && own.memory_allocated.is_plain();
        self.call(
            own.function_name.0.bind(py),
            own.execution_time.to_f64(py),
            own.memory_allocated.to_f64(py),
            [&own.memory_before, &own.memory_after, &own.memory_peak].map(|it| it.0.bind(py)),
        )
    }

    fn call_of_other(&mut self, result: &Bound<'_, PyAny>) -> PyResult<Call> {
        let py = result.py();
        self.is_plain = false;
        let name = result.getattr(intern!(py, "function_name"))?.str()?;
        let number = |name| -> PyResult<f64> {
            let number: Number = result.getattr(name)?.extract()?;
            Ok(number.to_f64(py))
        };
        let snapshots = [
            result.getattr(intern!(py, "memory_before"))?,
            result.getattr(intern!(py, "memory_after"))?,
            result.getattr(intern!(py, "memory_peak"))?,
        ];
        self.call(
            &name,
            number(intern!(py, "execution_time"))?,
            number(intern!(py, "memory_allocated"))?,
            snapshots.each_ref(),
        )
    }

    fn call(
        &mut self,
        name: &Bound<'_, PyString>,
        seconds: f64,
        allocated: f64,
        snapshots: [&Bound<'_, PyAny>; 3],
    ) -> PyResult<Call> {
        let py = name.py();
        let [before, after, peak] = snapshots;
        let before = self.levels(before)?;
        let after = self.levels(after)?;
        let peak = self.levels(peak)?;
        Ok(Call {
            function: self.function(name),
            seconds,
            began_at: before.timestamp,
            ended_at: after.timestamp,
            diff: after.allocated.minus(&before.allocated, py),
            rise: peak.allocated.minus(&before.allocated, py),
            after: after.allocated.to_f64(py),
            reserved: after.reserved,
            allocated,
        })
    }

    fn levels(&mut self, snapshot: &Bound<'_, PyAny>) -> PyResult<ClassicLevels> {
        let py = snapshot.py();
        let Ok(own) = snapshot.cast::<MemorySnapshot>() else {
            self.is_plain = false;
            return levels_of_other(snapshot);
        };
        let own = own.try_borrow()?;
        self.is_plain &= own.timestamp.is_plain()
            && own.allocated_memory.is_plain()
            && own.reserved_memory.is_plain();
        Ok(ClassicLevels {
            timestamp: own.timestamp.to_f64(py),
            allocated: own.allocated_memory.clone_ref(py),
            reserved: own.reserved_memory.to_f64(py),
        })
    }

    fn function(&mut self, name: &Bound<'_, PyString>) -> u32 {
        let address = name.as_ptr() as usize;
        // Objects are at least 16 bytes apart.
        let slot = &mut self.names[(address >> 4) % N_SLOTS];
        if let Some((known, function)) = slot
            && known.is(name)
        {
            return *function;
        }
        let function = self.calls.function(&name.to_string_lossy());
        *slot = Some((name.clone().unbind(), function));
        function
    }
}

fn levels_of_other(snapshot: &Bound<'_, PyAny>) -> PyResult<ClassicLevels> {
    let number = |name| -> PyResult<Number> { snapshot.getattr(name)?.extract() };
    let py = snapshot.py();
    Ok(ClassicLevels {
        timestamp: number(intern!(py, "timestamp"))?.to_f64(py),
        allocated: number(intern!(py, "allocated_memory"))?,
        reserved: number(intern!(py, "reserved_memory"))?.to_f64(py),
    })
}

/// Says which of the results is none.
fn located(py: Python<'_>, idx: usize, error: PyErr) -> PyErr {
    if error.is_instance_of::<PyAttributeError>(py) {
        let words = error.value(py);
        return PyTypeError::new_err(format!("results[{idx}] is no profile result: {words}"));
    }
    error
}
