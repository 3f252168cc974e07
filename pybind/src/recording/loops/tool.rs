//! `sys.monitoring`: events of single code objects, under an unused tool id.
//!
//! Its functions are looked up when the module is loaded: what the user does to the module later
//! concerns neither side. Other tools keep their ids and events, and `restart_events` is never called.

use std::time::Instant;

use gpumem_process::bytecode::Opcodes;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::code::PyCodeInput;
use pyo3::types::{PyCFunction, PyCode, PyCodeMethods, PyDict};

use super::bytecode;
use super::count::{self, LoopStart};
use gpumem_base::gil;

/// Debuggers, coverage and profilers have 0 to 2. Nobody uses the one for optimizers; 3 and 4 are for
/// everybody.
const IDS: [u8; 3] = [5, 4, 3];

const NAME: &str = "gpumem";

/// What the interpreter offers.
pub(super) struct Monitoring {
    get_tool: Py<PyAny>,
    use_tool_id: Py<PyAny>,
    free_tool_id: Py<PyAny>,
    register_callback: Py<PyAny>,
    set_local_events: Py<PyAny>,
    jump: u32,
    py_start: u32,
    jumped: Py<PyAny>,
    called: Py<PyAny>,
    pub(super) opcodes: Opcodes,
}

static MONITORING: PyOnceLock<Option<Monitoring>> = PyOnceLock::new();

/// It counts as it should.
static IS_PROVEN: PyOnceLock<bool> = PyOnceLock::new();

/// Looks it up, once, when the module is loaded.
pub(super) fn resolve(py: Python<'_>) -> PyResult<()> {
    let found = Monitoring::find(py)?;
    // A second interpreter's would be the same.
    drop(MONITORING.set(py, found));
    Ok(())
}

impl Monitoring {
    /// `None` where there is none, as before Python 3.12, and in a build without a GIL, which
    /// the counters need.
    pub(super) fn get(py: Python<'_>) -> Option<&'static Self> {
        MONITORING.get(py)?.as_ref()
    }

    fn find(py: Python<'_>) -> PyResult<Option<Self>> {
        let sys = py.import("sys")?;
        let Some(monitoring) = sys.getattr_opt("monitoring")?.filter(|_| gil::is_there()) else {
            return Ok(None);
        };
        let function = |name: &str| -> PyResult<Py<PyAny>> {
            let function = monitoring.getattr(name)?;
            let is_of_c = function.is_instance_of::<PyCFunction>();
            let error = || PyRuntimeError::new_err(format!("sys.monitoring.{name} was replaced"));
            is_of_c.then(|| function.unbind()).ok_or_else(error)
        };
        let functions = || {
            let events = monitoring.getattr("events")?;
            let Some(opcodes) = bytecode::opcodes(py)? else {
                return Ok(None);
            };
            count::set_disable(py, monitoring.getattr("DISABLE")?.unbind());
            PyResult::Ok(Some(Self {
                get_tool: function("get_tool")?,
                use_tool_id: function("use_tool_id")?,
                free_tool_id: function("free_tool_id")?,
                register_callback: function("register_callback")?,
                set_local_events: function("set_local_events")?,
                jump: events.getattr("JUMP")?.extract()?,
                py_start: events.getattr("PY_START")?.extract()?,
                jumped: wrap_pyfunction!(count::jumped, py)?.into_any().unbind(),
                called: wrap_pyfunction!(count::called, py)?.into_any().unbind(),
                opcodes,
            }))
        };
        // If the module was replaced, nothing is counted.
        Ok(functions().ok().flatten())
    }
}

/// An id that is ours until it is given back.
pub(super) struct Tool {
    id: u8,
    of: &'static Monitoring,
}

impl Tool {
    /// `None` where every id is in use.
    pub(super) fn take(py: Python<'_>, of: &'static Monitoring) -> PyResult<Option<Self>> {
        for id in IDS {
            if !of.get_tool.bind(py).call1((id,))?.is_none() {
                continue;
            }
            of.use_tool_id.bind(py).call1((id, NAME))?;
            let tool = Self { id, of };
            return match tool.prepare(py) {
                Ok(true) => Ok(Some(tool)),
                unfit => tool.give_back(py).and(unfit).map(|_| None),
            };
        }
        Ok(None)
    }

    /// False if it does not count as it should.
    fn prepare(&self, py: Python<'_>) -> PyResult<bool> {
        let of = self.of;
        self.register(py, of.jump, of.jumped.bind(py))?;
        self.register(py, of.py_start, of.called.bind(py))?;
        let is_proven = IS_PROVEN.get_or_try_init(py, || self.is_proven(py))?;
        Ok(*is_proven)
    }

    /// Counts a loop of our own: a later Python may have other bytecode, or call back in another way,
    /// and the error would be the user's.
    fn is_proven(&self, py: Python<'_>) -> PyResult<bool> {
        let code = PyCode::compile(
            py,
            c"for i in (1, 2, 3): pass",
            c"gpumem",
            PyCodeInput::File,
        )?;
        let loops = bytecode::loops_of(&code, self.of.opcodes)?;
        let [found] = loops.as_slice() else {
            return Ok(false);
        };
        count::begin(Instant::now());
        count::add_loop(
            0,
            code.as_ptr() as usize,
            &found.heads,
            LoopStart::default(),
        );
        self.watch(&code, true, false)?;
        let ran = code.run(Some(&PyDict::new(py)), None);
        self.watch(&code, false, false)?;
        Ok(ran.is_ok() && count::count(0).n == 3)
    }

    /// The id may have been freed and taken by other code.
    pub(super) fn is_ours(&self, py: Python<'_>) -> bool {
        let name = self.of.get_tool.bind(py).call1((self.id,));
        name.is_ok_and(|name| name.extract::<&str>().is_ok_and(|name| name == NAME))
    }

    /// Events of this code, and no others: of its jumps, of its calls.
    pub(super) fn watch(&self, code: &Bound<'_, PyAny>, jumps: bool, calls: bool) -> PyResult<()> {
        let mut events = 0;
        if jumps {
            events |= self.of.jump;
        }
        if calls {
            events |= self.of.py_start;
        }
        let set = self.of.set_local_events.bind(code.py());
        set.call1((self.id, code, events)).map(drop)
    }

    /// Gives the id back. Its codes have no events any more.
    pub(super) fn give_back(self, py: Python<'_>) -> PyResult<()> {
        let none = py.None();
        let events = [self.of.jump, self.of.py_start];
        let unregistered = events.map(|event| self.register(py, event, none.bind(py)));
        let freed = self.of.free_tool_id.bind(py).call1((self.id,)).map(drop);
        unregistered.into_iter().fold(freed, PyResult::and)
    }

    fn register(&self, py: Python<'_>, event: u32, callback: &Bound<'_, PyAny>) -> PyResult<()> {
        let register = self.of.register_callback.bind(py);
        register.call1((self.id, event, callback)).map(drop)
    }
}
