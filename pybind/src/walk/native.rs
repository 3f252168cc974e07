//! The classes of CPython itself that a path leads through, and how to ask them.
//!
//! Their attributes are descriptors of C types that nobody can change, so that asking for one runs
//! no code of the user's.

use std::collections::HashMap;

use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyType};

use crate::adapters::ClassName;
use crate::adapters::peek::{self, Getter};

/// Which class of CPython's own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Native {
    Function,
    Method,
    BuiltinMethod,
    Cell,
    Frame,
    Traceback,
    /// A generator, a coroutine or an asynchronous generator; the attributes that are its frame and
    /// what it waits for.
    Generator {
        frame: &'static str,
        awaits: &'static str,
    },
    Deque,
    Partial,
    LruCache,
    /// A container that has no attributes.
    Container,
}

const fn suspended(frame: &'static str, awaits: &'static str) -> Native {
    Native::Generator { frame, awaits }
}

/// Where they are found.
const PLACES: [(&str, &str, Native); 17] = [
    ("types", "FunctionType", Native::Function),
    ("types", "MethodType", Native::Method),
    ("types", "BuiltinMethodType", Native::BuiltinMethod),
    ("types", "CellType", Native::Cell),
    ("types", "FrameType", Native::Frame),
    ("types", "TracebackType", Native::Traceback),
    (
        "types",
        "GeneratorType",
        suspended("gi_frame", "gi_yieldfrom"),
    ),
    ("types", "CoroutineType", suspended("cr_frame", "cr_await")),
    (
        "types",
        "AsyncGeneratorType",
        suspended("ag_frame", "ag_await"),
    ),
    ("collections", "deque", Native::Deque),
    ("functools", "partial", Native::Partial),
    ("functools", "_lru_cache_wrapper", Native::LruCache),
    ("builtins", "dict", Native::Container),
    ("builtins", "list", Native::Container),
    ("builtins", "tuple", Native::Container),
    ("builtins", "set", Native::Container),
    ("builtins", "frozenset", Native::Container),
];

/// The classes by their address.
pub(super) struct Natives<'py> {
    classes: Vec<(Bound<'py, PyType>, Native)>,
}

impl<'py> Natives<'py> {
    pub(super) fn new(py: Python<'py>) -> PyResult<Self> {
        let find = |(module, name, native): &(&str, &str, Native)| {
            let class = py.import(*module)?.getattr(*name)?;
            Ok((class.cast_into::<PyType>()?, *native))
        };
        let classes = PLACES.iter().map(find).collect::<PyResult<_>>()?;
        Ok(Self { classes })
    }

    /// What `object` is, if its class is exactly one of these.
    pub(super) fn of(&self, object: &Bound<'py, PyAny>) -> Option<Native> {
        let class = object.get_type_ptr();
        let exact = self
            .classes
            .iter()
            .find(|(it, _)| it.as_type_ptr() == class);
        exact.map(|(_, native)| *native)
    }
}

/// What `type` itself says of a class: no metaclass has a say.
pub(super) struct ClassFacts {
    module: Getter,
    qualname: Getter,
}

impl ClassFacts {
    pub(super) fn new(py: Python<'_>) -> PyResult<Self> {
        let own = py.get_type::<PyType>().getattr("__dict__")?;
        Ok(Self {
            module: Getter::of(own.get_item("__module__")?)?,
            qualname: Getter::of(own.get_item("__qualname__")?)?,
        })
    }

    pub(super) fn name(&self, class: &Bound<'_, PyType>) -> Option<ClassName> {
        let text = |getter: &Getter| {
            // A class may have put anything under the name.
            let text = getter.get(class).ok()?.cast_into_exact::<PyString>().ok()?;
            Some(text.to_string_lossy().into_owned())
        };
        Some(ClassName {
            module: text(&self.module).unwrap_or_default(),
            name: text(&self.qualname)?,
        })
    }

    /// `Model`, of an instance of `make.<locals>.Model`.
    pub(super) fn type_name(&self, object: &Bound<'_, PyAny>) -> String {
        let name = self.name(&object.get_type());
        let name = name.map(|it| it.name).unwrap_or_default();
        name.rsplit('.').next().unwrap_or_default().to_owned()
    }

    /// `<Model>`: an object for which there is no expression.
    pub(super) fn in_words(&self, object: &Bound<'_, PyAny>) -> String {
        format!("<{}>", self.type_name(object))
    }
}

/// The slots of instances, class by class.
#[derive(Default)]
pub(super) struct Members {
    by_class: HashMap<usize, Vec<(String, Getter)>>,
}

impl Members {
    /// Calls `each` with every slot of `object` that is set.
    pub(super) fn for_each<'py>(
        &mut self,
        object: &Bound<'py, PyAny>,
        mut each: impl FnMut(&str, &Bound<'py, PyAny>),
    ) {
        let class = object.get_type();
        let members = self.by_class.entry(class.as_ptr() as usize);
        for (name, member) in members.or_insert_with(|| peek::slots(&class).unwrap_or_default()) {
            if let Ok(value) = member.get(object) {
                each(name, &value);
            }
        }
    }
}

/// The local variables of a function's frame; nothing of a module's or a class's, whose locals are
/// its namespace.
///
/// Before Python 3.13 asking for them leaves a dict behind that would keep them alive: it is emptied
/// again, unless somebody else holds it.
pub(super) fn locals<'py>(frame: &Bound<'py, PyAny>) -> PyResult<Vec<(String, Bound<'py, PyAny>)>> {
    /// `CO_OPTIMIZED`: locals have places of their own.
    const OPTIMIZED: u32 = 1;
    let flags: u32 = frame.getattr("f_code")?.getattr("co_flags")?.extract()?;
    if flags & OPTIMIZED == 0 {
        return Ok(Vec::new());
    }
    let locals = frame.getattr("f_locals")?;
    let Ok(snapshot) = locals.cast_exact::<PyDict>() else {
        let items = locals.call_method0("items")?;
        return items.try_iter()?.map(|item| item?.extract()).collect();
    };
    let named = |(name, value): (Bound<'py, PyAny>, _)| Some((name.extract().ok()?, value));
    let found = snapshot.iter().filter_map(named).collect();
    // One reference is the frame's, one is ours.
    if n_references(&locals) == 2 {
        snapshot.clear();
    }
    Ok(found)
}

/// How many references there are to an object.
pub(super) fn n_references(object: &Bound<'_, PyAny>) -> isize {
    // SAFETY: a live object; the GIL is held.
    unsafe { ffi::Py_REFCNT(object.as_ptr()) }
}
