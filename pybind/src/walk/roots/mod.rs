//! Where a walk begins: everything of the user's, and of IPython's, that has a name.

mod ipython;
mod modules;
mod tasks;
mod threads;

use std::collections::HashSet;

use gpumem_core::holders::RootKind;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};

/// A named place that keeps an object alive.
pub(super) struct Root<'py> {
    /// As a person knows it: `losses`, `Out[3]`. Places of one name and kind keep together.
    pub(super) name: String,
    pub(super) kind: RootKind,
    /// The expression that is the object.
    pub(super) path: String,
    pub(super) object: Bound<'py, PyAny>,
}

/// Where a walk begins and where it does not go.
#[derive(Default)]
pub(super) struct Roots<'py> {
    pub(super) found: Vec<Root<'py>>,
    /// Objects that are not entered: namespaces whose entries are roots themselves, libraries, and
    /// what belongs to IPython.
    pub(super) closed: Vec<Bound<'py, PyAny>>,
    /// The same, of which the attributes lead nowhere but to what has a name.
    pub(super) passed: Vec<Bound<'py, PyAny>>,
    /// Addresses of the namespaces that hold the user's code.
    users: HashSet<usize>,
    /// The globals of the modules that are not the user's.
    pub(super) library_globals: Vec<(String, Bound<'py, PyDict>)>,
    /// Modules whose classes hold nothing of the user's.
    pub(super) libraries: HashSet<String>,
}

impl<'py> Roots<'py> {
    /// Everything that has a name now.
    pub(super) fn find(py: Python<'py>, shells: &[Bound<'py, PyAny>]) -> PyResult<Self> {
        let mut roots = Self::default();
        for shell in shells {
            ipython::add_shell(&mut roots, shell)?;
        }
        modules::add(&mut roots, py)?;
        ipython::add_last_exception(&mut roots, py)?;
        threads::add(&mut roots, py)?;
        let modules = py.import("sys")?.getattr("modules")?;
        tasks::add(&mut roots, modules.cast()?);
        Ok(roots)
    }

    /// The entries of one namespace; every module is closed.
    pub(super) fn of(py: Python<'py>, namespace: &Bound<'py, PyDict>) -> PyResult<Self> {
        let mut roots = Self::default();
        modules::add(&mut roots, py)?;
        threads::add(&mut roots, py)?;
        roots.found.clear();
        for (name, value) in entries(namespace) {
            roots.add_named(RootKind::Variable, &name, value);
        }
        Ok(roots)
    }

    fn add(&mut self, kind: RootKind, name: &str, path: String, object: Bound<'py, PyAny>) {
        self.found.push(Root {
            name: name.to_owned(),
            kind,
            path,
            object,
        });
    }

    /// A place whose name is the expression.
    fn add_named(&mut self, kind: RootKind, name: &str, object: Bound<'py, PyAny>) {
        self.add(kind, name, name.to_owned(), object);
    }

    fn close(&mut self, object: &Bound<'py, PyAny>) {
        self.closed.push(object.clone());
    }

    /// The globals of code that the user wrote; its entries are roots.
    fn close_users(&mut self, namespace: &Bound<'py, PyDict>) {
        self.users.insert(namespace.as_ptr() as usize);
        self.close(namespace.as_any());
    }

    fn is_users(&self, namespace: &Bound<'py, PyAny>) -> bool {
        self.users.contains(&(namespace.as_ptr() as usize))
    }
}

/// The entries of a namespace whose names are text.
pub(super) fn entries<'py>(namespace: &Bound<'py, PyDict>) -> Vec<(String, Bound<'py, PyAny>)> {
    let named = |(name, value): (Bound<'py, PyAny>, _)| {
        let name = name.cast_exact::<PyString>().ok()?;
        Some((name.to_string_lossy().into_owned(), value))
    };
    namespace.iter().filter_map(named).collect()
}

/// An attribute that may be missing: IPython changes.
fn attribute<'py>(object: &Bound<'py, PyAny>, name: &str) -> Option<Bound<'py, PyAny>> {
    object.getattr(name).ok().filter(|value| !value.is_none())
}

/// The same, of which only a dict is of use.
fn dict<'py>(object: &Bound<'py, PyAny>, name: &str) -> Option<Bound<'py, PyDict>> {
    attribute(object, name)?.cast_into().ok()
}
