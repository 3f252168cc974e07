//! Where a walk begins: everything of the user's, and of IPython's, that has a name.
//!
//! What only Python code can tell, such as the attributes of IPython's shell, is read before the
//! section begins ([`Places`]); the rest in it.

mod dask_worker;
mod fillers;
mod ipython;
mod modules;
mod pytest;
mod tasks;
mod threads;

use std::collections::HashSet;

use gpumem_model::holders::RootKind;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyList};

use crate::still::{Dict, Object, Section};
use ipython::Shell;
pub use tasks::waiting_tasks;
pub(crate) use threads::other_threads;
pub use threads::own_thread;

/// A named place that keeps an object alive.
pub(super) struct NamedRoot<'s> {
    /// As a person knows it: `losses`, `Out[3]`. Places of one name and kind keep together.
    pub(super) name: String,
    pub(super) kind: RootKind,
    /// The expression that is the object.
    pub(super) path: String,
    pub(super) object: Object<'s>,
    /// What fills it beside the cells: `worker (thread)`.
    pub(super) filled_by: Option<String>,
}

impl<'s> NamedRoot<'s> {
    pub(super) fn new(kind: RootKind, name: &str, path: String, object: Object<'s>) -> Self {
        Self {
            name: name.to_owned(),
            kind,
            path,
            object,
            filled_by: None,
        }
    }
}

/// What is read outside of a section, where Python code may run.
pub struct Places<'py> {
    shells: Vec<Shell<'py>>,
    /// Only this namespace, and no shell.
    namespace: Option<Bound<'py, PyDict>>,
    /// The innermost frame of each thread, by its number.
    pub(super) frames: Bound<'py, PyDict>,
    /// The thread whose functions hold what they hold, and not beside the cells.
    own_thread: u64,
}

impl<'py> Places<'py> {
    /// The roots in these shells, for a run of `thread` (default: this thread).
    pub fn of_shells(
        py: Python<'py>,
        shells: &[Bound<'py, PyAny>],
        thread: Option<u64>,
    ) -> PyResult<Self> {
        Ok(Self {
            shells: shells.iter().map(Shell::read).collect::<PyResult<_>>()?,
            namespace: None,
            frames: current_frames(py)?,
            own_thread: thread.unwrap_or_else(own_thread),
        })
    }

    /// The entries of one namespace.
    pub fn of_namespace(namespace: Bound<'py, PyDict>) -> PyResult<Self> {
        Ok(Self {
            shells: Vec::new(),
            frames: current_frames(namespace.py())?,
            own_thread: own_thread(),
            namespace: Some(namespace),
        })
    }
}

/// Functions that list frames and objects, imported when the module is loaded: a later import may
/// run the user's code.
struct Functions {
    current_frames: Py<PyAny>,
    get_objects: Py<PyAny>,
}

static FUNCTIONS: PyOnceLock<Functions> = PyOnceLock::new();

impl Functions {
    fn get(py: Python<'_>) -> PyResult<&Self> {
        FUNCTIONS.get_or_try_init(py, || {
            let function = |module: &str, name: &str| -> PyResult<Py<PyAny>> {
                Ok(py.import(module)?.getattr(name)?.unbind())
            };
            Ok(Self {
                current_frames: function("sys", "_current_frames")?,
                get_objects: function("gc", "get_objects")?,
            })
        })
    }
}

/// Finds what a walk needs of Python's own modules: this imports.
pub(crate) fn resolve(py: Python<'_>) -> PyResult<()> {
    Functions::get(py).map(drop)
}

/// The innermost frame of each thread, by its number.
pub fn current_frames(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    let frames = Functions::get(py)?.current_frames.bind(py).call0()?;
    Ok(frames.cast_into()?)
}

/// Every object that the garbage collector tracks. Called outside of a section, because it may run
/// the user's audit hooks.
pub(super) fn tracked(py: Python<'_>) -> PyResult<Bound<'_, PyList>> {
    let objects = Functions::get(py)?.get_objects.bind(py).call0()?;
    Ok(objects.cast_into()?)
}

/// Where a walk begins and where it does not go.
#[derive(Default)]
pub(super) struct Roots<'s> {
    pub(super) found: Vec<NamedRoot<'s>>,
    /// Objects that are not entered: namespaces whose entries are roots themselves, libraries, and
    /// what belongs to IPython.
    pub(super) closed: Vec<Object<'s>>,
    /// The same, of which the attributes lead nowhere but to what has a name.
    pub(super) passed: Vec<Object<'s>>,
    /// Addresses of the namespaces that hold the user's code.
    users: HashSet<usize>,
    /// The globals of the modules that are not the user's.
    pub(super) library_globals: Vec<(String, Dict<'s>)>,
    /// Modules whose classes hold nothing of the user's.
    pub(super) libraries: HashSet<String>,
}

impl<'s> Roots<'s> {
    /// Everything that has a name now.
    pub(super) fn find(section: &'s Section<'s>, places: &Places<'_>) -> Self {
        let mut roots = Self::default();
        for shell in &places.shells {
            shell.add_to(&mut roots, section);
        }
        modules::add(&mut roots, section);
        if let Some(namespace) = &places.namespace {
            threads::add(&mut roots, section, places);
            roots.found.clear();
            let entries = section.object(namespace.as_any()).dict();
            for (name, value) in entries.into_iter().flat_map(|it| it.named()) {
                roots.add_named(RootKind::Variable, &name, value);
            }
            return roots;
        }
        dask_worker::add(&mut roots, section);
        pytest::add(&mut roots, section);
        ipython::add_last_exception(&mut roots, section);
        threads::add(&mut roots, section, places);
        tasks::add(&mut roots, section);
        roots
    }

    fn add(&mut self, kind: RootKind, name: &str, path: String, object: Object<'s>) {
        self.found.push(NamedRoot::new(kind, name, path, object));
    }

    /// A local variable of code that runs beside the cells.
    fn add_beside(&mut self, name: &str, path: String, object: Object<'s>, by: String) {
        self.found.push(NamedRoot {
            filled_by: Some(by),
            ..NamedRoot::new(RootKind::ThreadFrame, name, path, object)
        });
    }

    /// A place whose name is the expression.
    fn add_named(&mut self, kind: RootKind, name: &str, object: Object<'s>) {
        self.add(kind, name, name.to_owned(), object);
    }

    fn close(&mut self, object: Object<'s>) {
        self.closed.push(object);
    }

    /// The globals of code that the user wrote; its entries are roots.
    fn close_users(&mut self, namespace: &Dict<'s>) {
        self.users.insert(namespace.address());
        self.close(namespace.object().clone());
    }

    fn is_users(&self, namespace: &Dict<'s>) -> bool {
        self.users.contains(&namespace.address())
    }
}
