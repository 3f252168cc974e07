//! The globals of modules that the user wrote.

use std::path::{Path, PathBuf};

use gpumem_core::holders::RootKind;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyModule, PyString};

use super::{Roots, entries};

/// Folders of installed packages.
const INSTALLED: [&str; 2] = ["site-packages", "dist-packages"];

/// Adds the globals of the user's modules, and closes all modules: each is a root of its own.
pub(super) fn add<'py>(roots: &mut Roots<'py>, py: Python<'py>) -> PyResult<()> {
    let modules = py
        .import("sys")?
        .getattr("modules")?
        .cast_into::<PyDict>()?;
    let standard = standard_library(&modules);
    for (name, module) in entries(&modules) {
        let Ok(module) = module.cast_into::<PyModule>() else {
            continue;
        };
        let globals = module.dict();
        roots.close(module.as_any());
        if name == "__main__" || is_users(&name, &globals, standard.as_deref()) {
            // A shell's variables are roots already.
            if !roots.is_users(globals.as_any()) {
                add_globals(roots, &name, &globals);
            }
            roots.close_users(&globals);
        } else {
            roots.close(globals.as_any());
            roots.libraries.insert(name.clone());
            roots.library_globals.push((name, globals));
        }
    }
    roots.close(modules.as_any());
    Ok(())
}

fn add_globals<'py>(roots: &mut Roots<'py>, module: &str, globals: &Bound<'py, PyDict>) {
    let is_dunder = |name: &str| name.starts_with("__") && name.ends_with("__");
    for (name, value) in entries(globals) {
        if is_dunder(&name) {
            continue;
        }
        if module == "__main__" {
            roots.add_named(RootKind::Variable, &name, value);
        } else {
            let name = format!("{module}.{name}");
            roots.add_named(RootKind::ModuleGlobal, &name, value);
        }
    }
}

/// A module whose file is neither Python's own, nor installed, nor ours.
fn is_users(name: &str, globals: &Bound<'_, PyDict>, standard: Option<&Path>) -> bool {
    let is_ours = name == "gpumem" || name.starts_with("gpumem.");
    file(globals).is_some_and(|file| {
        let is_installed = file
            .components()
            .any(|part| INSTALLED.iter().any(|it| part.as_os_str() == *it));
        let is_standard = standard.is_some_and(|folder| file.starts_with(folder));
        !is_ours && !is_installed && !is_standard
    })
}

/// Where Python's own library lies.
fn standard_library(modules: &Bound<'_, PyDict>) -> Option<PathBuf> {
    let module = modules.get_item("os").ok()??.cast_into::<PyModule>().ok()?;
    file(&module.dict())?.parent().map(Path::to_owned)
}

fn file(globals: &Bound<'_, PyDict>) -> Option<PathBuf> {
    let file = globals.get_item("__file__").ok()??;
    let file = file.cast_exact::<PyString>().ok()?.to_string_lossy();
    Some(PathBuf::from(file.as_ref()))
}
