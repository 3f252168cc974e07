//! The globals of modules that the user wrote.

use std::path::{Path, PathBuf};

use gpumem_model::holders::RootKind;

use super::Roots;
use crate::still::{Dict, Section};

/// Folders of installed packages.
const INSTALLED: [&str; 2] = ["site-packages", "dist-packages"];

/// Packages of gpumem itself.
const OURS: [&str; 2] = ["gpumem", "pytest_gpumem"];

/// Where `pyplot` keeps every figure until it is closed: the one thing of a library that a user's line
/// fills and another line empties.
const FIGURES: &str = "matplotlib._pylab_helpers";

/// Adds the globals of the user's modules, and closes all modules: each is a root of its own.
pub(super) fn add<'s>(roots: &mut Roots<'s>, section: &'s Section<'s>) {
    let Some(modules) = section.modules() else {
        return;
    };
    let standard = standard_library(&modules);
    for (name, module) in modules.named() {
        let Some(globals) = module.globals() else {
            continue;
        };
        roots.close(module);
        if name == "__main__" || is_users(&name, &globals, standard.as_deref()) {
            // A shell's variables are roots already.
            if !roots.is_users(&globals) {
                add_globals(roots, &name, &globals);
            }
            roots.close_users(&globals);
        } else {
            if name == FIGURES {
                add_figures(roots, &globals);
            }
            roots.close(globals.object().clone());
            roots.libraries.insert(name.clone());
            roots.library_globals.push((name, globals));
        }
    }
    roots.close(modules.object().clone());
}

fn add_globals<'s>(roots: &mut Roots<'s>, module: &str, globals: &Dict<'s>) {
    let is_dunder = |name: &str| name.starts_with("__") && name.ends_with("__");
    for (name, value) in globals.named() {
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

/// Those of `Gcf.figs`: an `OrderedDict` of a class of that module.
fn add_figures<'s>(roots: &mut Roots<'s>, globals: &Dict<'s>) {
    let class = globals.get("Gcf").and_then(|it| it.as_class());
    if let Some(figures) = class.and_then(|it| it.attribute("figs")) {
        let name = format!("{FIGURES}.Gcf.figs");
        roots.add_named(RootKind::ModuleGlobal, &name, figures);
    }
}

/// A module of the user: not of the standard library, not installed, not gpumem's.
fn is_users(name: &str, globals: &Dict<'_>, standard: Option<&Path>) -> bool {
    let package = name.split('.').next();
    let is_ours = package.is_some_and(|it| OURS.contains(&it));
    file(globals).is_some_and(|file| {
        let is_installed = file
            .components()
            .any(|part| INSTALLED.iter().any(|it| part.as_os_str() == *it));
        let is_standard = standard.is_some_and(|folder| file.starts_with(folder));
        !is_ours && !is_installed && !is_standard
    })
}

/// Where Python's own library lies.
fn standard_library(modules: &Dict<'_>) -> Option<PathBuf> {
    let globals = modules.get("os")?.globals()?;
    file(&globals)?.parent().map(Path::to_owned)
}

fn file(globals: &Dict<'_>) -> Option<PathBuf> {
    globals.get("__file__")?.text().map(PathBuf::from)
}
