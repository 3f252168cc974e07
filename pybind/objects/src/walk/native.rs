//! The classes of CPython itself that a path leads through, and how to ask them.
//!
//! Their attributes are descriptors of immutable C types, so that asking for one runs
//! no code of the user's.

use std::collections::HashMap;

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::PyType;

use crate::still::{Getter, Object};

/// Which class of CPython's own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Native {
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

static NATIVES: PyOnceLock<Vec<(Py<PyType>, Native)>> = PyOnceLock::new();

/// Finds the classes, once, when the module is loaded: this imports.
pub(crate) fn resolve(py: Python<'_>) -> PyResult<()> {
    let find = |(module, name, native): &(&str, &str, Native)| {
        let class = py.import(*module)?.getattr(*name)?;
        Ok((class.cast_into::<PyType>()?.unbind(), *native))
    };
    let found = PLACES.iter().map(find).collect::<PyResult<_>>()?;
    // A second interpreter's would be the same.
    drop(NATIVES.set(py, found));
    Ok(())
}

impl Native {
    /// It is a function that Python code made.
    pub(super) fn is_function(object: &Object<'_>) -> bool {
        Self::of_object(object) == Some(Self::Function)
    }

    /// What `object` is, if its class is exactly one of these.
    pub(super) fn of_object(object: &Object<'_>) -> Option<Self> {
        let class = object.class();
        let natives = NATIVES.get(object.section().py());
        let mut natives = natives.into_iter().flatten();
        let exact = natives.find(|(it, _)| class.is_class(it));
        exact.map(|(_, native)| *native)
    }
}

/// `<Model>`: an object for which there is no expression.
pub(super) fn in_words(object: &Object<'_>) -> String {
    format!("<{}>", object.class().short_name())
}

/// The slots of instances, class by class.
#[derive(Default)]
pub(super) struct Members {
    by_class: HashMap<usize, Vec<(String, Getter)>>,
}

impl Members {
    /// Calls `each` with every slot of `object` that is set.
    pub(super) fn for_each(
        &mut self,
        object: &Object<'_>,
        mut each: impl FnMut(&str, &Object<'_>),
    ) {
        let class = object.class();
        let members = self.by_class.entry(class.address());
        for (name, member) in members.or_insert_with(|| class.slots()) {
            if let Some(value) = member.get(object) {
                each(name, &value);
            }
        }
    }
}

/// The name of the function that runs in a frame.
pub(super) fn function_name(frame: &Object<'_>) -> Option<String> {
    frame.code_of_frame()?.read("co_name")?.text()
}

/// The local variables of a function's frame; nothing of a module's or a class's, whose locals are
/// its namespace.
///
/// Before Python 3.13 asking for them refreshes a dictionary that the user's `locals()` is, and lets
/// go of what was in it: only a copy of the process may, and there nothing is let go of.
pub(super) fn locals<'s>(frame: &Object<'s>) -> Vec<(String, Object<'s>)> {
    /// `CO_OPTIMIZED`: locals have places of their own.
    const OPTIMIZED: u64 = 1;
    let section = frame.section();
    let code = frame.code_of_frame();
    let flags = code.and_then(|code| code.read("co_flags")?.number());
    let is_refreshed = !section.has_views_of_locals();
    if flags.is_none_or(|flags| flags & OPTIMIZED == 0) || is_refreshed && !section.is_copy() {
        return Vec::new();
    }
    if is_refreshed {
        frame.pin_dictionaries();
    }
    let Some(locals) = frame.read("f_locals") else {
        return Vec::new();
    };
    if let Some(snapshot) = locals.dict() {
        return snapshot.named().collect();
    }
    // A view, whose items are pairs.
    let items = locals.call("items");
    let items = items.as_ref().and_then(Object::list).into_iter().flatten();
    let pair = |item: Object<'s>| {
        let mut pair = item.tuple()?;
        Some((pair.next()?.text()?, pair.next()?))
    };
    items.filter_map(pair).collect()
}
