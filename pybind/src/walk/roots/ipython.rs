//! The user's variables, and every place where IPython keeps what a cell made.

use gpumem_core::holders::RootKind;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyModule};

use super::{Roots, attribute, dict, entries};

/// What IPython calls its results: the last, the one before, the one before that.
const LAST_RESULTS: [&str; 3] = ["_", "__", "___"];

/// All places of the last exception keep together.
const LAST_EXCEPTION: &str = "last exception";

/// Adds everything that a shell keeps, and closes the shell.
pub(super) fn add_shell<'py>(roots: &mut Roots<'py>, shell: &Bound<'py, PyAny>) -> PyResult<()> {
    let variables = shell.getattr("user_ns")?.cast_into::<PyDict>()?;
    let hidden = dict(shell, "user_ns_hidden").unwrap_or_else(|| PyDict::new(shell.py()));
    let outputs = attribute(shell, "history_manager")
        .and_then(|history| dict(&history, "output_hist"))
        .unwrap_or_else(|| PyDict::new(shell.py()));
    let is_own = |name: &str, value: &Bound<'py, PyAny>| {
        let own = hidden.get_item(name).ok().flatten();
        own.is_some_and(|own| own.is(value))
    };
    for (name, value) in entries(&variables) {
        if !is_own(&name, &value) && !is_dunder(&name) {
            roots.add_named(RootKind::Variable, &name, value);
        }
    }
    Results::of(&outputs, &hidden).add(roots, shell, |name| {
        let value = variables.get_item(name).ok().flatten()?;
        is_own(name, &value).then_some(value)
    });
    add_scripts(roots, shell);
    add_failure(roots, shell);
    close(roots, shell, &variables);
    roots.close(hidden.as_any());
    roots.close(outputs.as_any());
    Ok(())
}

/// Displayed results: every place that keeps one has the name of the first.
struct Results<'py> {
    /// `Out[3]`, and the object that was displayed.
    outputs: Vec<(String, Bound<'py, PyAny>)>,
    /// `_3`, `_`: what IPython put beside the user's variables.
    hidden: Vec<(String, Bound<'py, PyAny>)>,
}

impl<'py> Results<'py> {
    fn of(outputs: &Bound<'py, PyDict>, hidden: &Bound<'py, PyDict>) -> Self {
        let numbered = |(number, value): (Bound<'py, PyAny>, _)| {
            let number: u64 = number.extract().ok()?;
            Some((format!("Out[{number}]"), value))
        };
        Self {
            outputs: outputs.iter().filter_map(numbered).collect(),
            hidden: entries(hidden)
                .into_iter()
                .filter(|(name, _)| LAST_RESULTS.contains(&name.as_str()) || number(name).is_some())
                .collect(),
        }
    }

    /// `variable` is the user's variable of a name, if IPython made it.
    fn add(
        self,
        roots: &mut Roots<'py>,
        shell: &Bound<'py, PyAny>,
        variable: impl Fn(&str) -> Option<Bound<'py, PyAny>>,
    ) {
        let mut add = |path: String, value: Bound<'py, PyAny>| {
            let name = self.name(&path, &value);
            roots.add(RootKind::OutputHistory, &name, path, value);
        };
        for (path, value) in &self.outputs {
            add(path.clone(), value.clone());
        }
        for (name, value) in &self.hidden {
            if let Some(value) = variable(name) {
                add(name.clone(), value);
            }
            let path = format!("get_ipython().user_ns_hidden['{name}']");
            add(path, value.clone());
        }
        if let Some(hook) = attribute(shell, "displayhook") {
            for name in LAST_RESULTS {
                if let Some(value) = attribute(&hook, name) {
                    add(format!("get_ipython().displayhook.{name}"), value);
                }
            }
        }
        let last = attribute(shell, "last_execution_result");
        if let Some(value) = last.and_then(|last| attribute(&last, "result")) {
            add(
                "get_ipython().last_execution_result.result".to_owned(),
                value,
            );
        }
    }

    /// `Out[3]` for whatever keeps what was displayed there, also when that entry is gone.
    fn name(&self, path: &str, value: &Bound<'py, PyAny>) -> String {
        let same = |(_, it): &&(String, Bound<'py, PyAny>)| it.is(value);
        if let Some((name, _)) = self.outputs.iter().find(same) {
            return name.clone();
        }
        let mut hidden = self.hidden.iter().filter(same);
        let numbered = hidden.find_map(|(name, _)| number(name));
        numbered.map_or_else(|| path.to_owned(), |number| format!("Out[{number}]"))
    }
}

/// What `%run` scripts left behind.
fn add_scripts<'py>(roots: &mut Roots<'py>, shell: &Bound<'py, PyAny>) {
    let Some(modules) = dict(shell, "_main_mod_cache") else {
        return;
    };
    for (file, module) in entries(&modules) {
        let Ok(module) = module.cast::<PyModule>() else {
            continue;
        };
        let script = file.rsplit(['/', '\\']).next().unwrap_or_default();
        let globals = module.dict();
        for (name, value) in entries(&globals) {
            if !is_dunder(&name) {
                let path = format!("get_ipython()._main_mod_cache[{file:?}].{name}");
                roots.add(
                    RootKind::RunModule,
                    &format!("%run {script}: {name}"),
                    path,
                    value,
                );
            }
        }
        roots.close_users(&globals);
        roots.close(module.as_any());
    }
}

/// The exception of the last cell, and what `%debug` looked at.
fn add_failure<'py>(roots: &mut Roots<'py>, shell: &Bound<'py, PyAny>) {
    for formatter in ["InteractiveTB", "SyntaxTB"] {
        let Some(formatter_object) = attribute(shell, formatter) else {
            continue;
        };
        let path = |name: &str| format!("get_ipython().{formatter}.{name}");
        if let Some(traceback) = attribute(&formatter_object, "tb") {
            roots.add(RootKind::Traceback, LAST_EXCEPTION, path("tb"), traceback);
        }
        if let Some(debugger) = attribute(&formatter_object, "pdb") {
            roots.add(RootKind::Debugger, "%debug", path("pdb"), debugger);
        }
        roots.close(&formatter_object);
    }
    let Some(last) = attribute(shell, "last_execution_result") else {
        return;
    };
    for name in ["error_in_exec", "error_before_exec"] {
        if let Some(error) = attribute(&last, name) {
            let path = format!("get_ipython().last_execution_result.{name}");
            roots.add(RootKind::Traceback, LAST_EXCEPTION, path, error);
        }
    }
    roots.close(&last);
}

/// Adds what Python itself keeps of the last exception that nobody caught.
pub(super) fn add_last_exception<'py>(roots: &mut Roots<'py>, py: Python<'py>) -> PyResult<()> {
    let sys = py.import("sys")?;
    for name in ["last_value", "last_exc", "last_traceback"] {
        if let Some(value) = attribute(sys.as_any(), name) {
            let path = format!("sys.{name}");
            roots.add(RootKind::Traceback, LAST_EXCEPTION, path, value);
        }
    }
    Ok(())
}

/// The shell and what belongs to it: whoever refers to it does not keep what it keeps.
fn close<'py>(roots: &mut Roots<'py>, shell: &Bound<'py, PyAny>, variables: &Bound<'py, PyDict>) {
    roots.close_users(variables);
    roots.close(shell);
    for name in [
        "displayhook",
        "history_manager",
        "kernel",
        "user_module",
        "events",
    ] {
        if let Some(own) = attribute(shell, name) {
            roots.close(&own);
        }
    }
}

/// The number in `_3`.
fn number(name: &str) -> Option<u64> {
    name.strip_prefix('_')?.parse().ok()
}

fn is_dunder(name: &str) -> bool {
    name.starts_with("__") && name.ends_with("__") && name.len() > 4
}
