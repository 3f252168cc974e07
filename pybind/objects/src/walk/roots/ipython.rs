//! The user's variables, and every place where IPython keeps what a cell made.

use std::ffi::CStr;

use gpumem_model::holders::RootKind;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::Roots;
use crate::still::{Dict, Object, Section};

/// What IPython calls its results: the last, the one before, the one before that.
const LAST_RESULTS: [&str; 3] = ["_", "__", "___"];

/// All places of the last exception keep together.
pub(super) const LAST_EXCEPTION: &str = "last exception";

/// A place of IPython's: what kind, what people call it, the expression, and what is there.
type ShellRoot<'py> = (RootKind, &'static str, String, Bound<'py, PyAny>);

/// What a shell keeps, read through its attributes, which are Python code.
pub(super) struct Shell<'py> {
    variables: Bound<'py, PyDict>,
    hidden: Option<Bound<'py, PyDict>>,
    outputs: Option<Bound<'py, PyDict>>,
    /// Displayed results beside `outputs`, with the expressions that are them.
    results: Vec<(String, Bound<'py, PyAny>)>,
    /// What is left of failures.
    failures: Vec<ShellRoot<'py>>,
    /// What `%run` scripts left behind, by file.
    scripts: Option<Bound<'py, PyDict>>,
    /// The shell and its parts: references to them do not keep what they hold.
    own: Vec<Bound<'py, PyAny>>,
}

impl<'py> Shell<'py> {
    /// An attribute that is missing is passed over: IPython changes.
    pub(super) fn read(shell: &Bound<'py, PyAny>) -> PyResult<Self> {
        let history = attribute(shell, "history_manager");
        let own = [
            "displayhook",
            "history_manager",
            "kernel",
            "user_module",
            "events",
        ];
        let own = own.iter().filter_map(|name| attribute(shell, name));
        let mut read = Self {
            variables: shell.getattr("user_ns")?.cast_into::<PyDict>()?,
            hidden: dict(shell, "user_ns_hidden"),
            outputs: history.and_then(|history| dict(&history, "output_hist")),
            results: Vec::new(),
            failures: Vec::new(),
            scripts: dict(shell, "_main_mod_cache"),
            own: own.chain([shell.clone()]).collect(),
        };
        read.read_results(shell);
        read.read_failures(shell);
        Ok(read)
    }

    fn read_results(&mut self, shell: &Bound<'py, PyAny>) {
        if let Some(hook) = attribute(shell, "displayhook") {
            for name in LAST_RESULTS {
                if let Some(value) = attribute(&hook, name) {
                    let path = format!("get_ipython().displayhook.{name}");
                    self.results.push((path, value));
                }
            }
        }
        let last = attribute(shell, "last_execution_result");
        if let Some(value) = last.and_then(|last| attribute(&last, "result")) {
            let path = "get_ipython().last_execution_result.result".to_owned();
            self.results.push((path, value));
        }
    }

    /// The exception of the last cell, and what `%debug` looked at.
    fn read_failures(&mut self, shell: &Bound<'py, PyAny>) {
        for formatter in ["InteractiveTB", "SyntaxTB"] {
            let Some(found) = attribute(shell, formatter) else {
                continue;
            };
            let places = [
                (RootKind::Traceback, LAST_EXCEPTION, "tb"),
                (RootKind::Debugger, "%debug", "pdb"),
            ];
            for (kind, name, which) in places {
                if let Some(value) = attribute(&found, which) {
                    let path = format!("get_ipython().{formatter}.{which}");
                    self.failures.push((kind, name, path, value));
                }
            }
            self.own.push(found);
        }
        let Some(last) = attribute(shell, "last_execution_result") else {
            return;
        };
        for name in ["error_in_exec", "error_before_exec"] {
            if let Some(error) = attribute(&last, name) {
                let path = format!("get_ipython().last_execution_result.{name}");
                let place = (RootKind::Traceback, LAST_EXCEPTION, path, error);
                self.failures.push(place);
            }
        }
        self.own.push(last);
    }

    /// Adds everything that the shell keeps, and closes the shell.
    pub(super) fn add_to<'s>(&self, roots: &mut Roots<'s>, section: &'s Section<'s>) {
        let met = |dict: &Bound<'_, PyDict>| section.object(dict.as_any()).dict();
        let Some(variables) = met(&self.variables) else {
            return;
        };
        let hidden = self.hidden.as_ref().and_then(met);
        let is_own = |name: &str, value: &Object<'s>| {
            let own = hidden.as_ref().and_then(|hidden| hidden.get(name));
            own.is_some_and(|own| own.is(value))
        };
        let hidden_names: Vec<_> = hidden.iter().flat_map(Dict::named).collect();
        let hidden_by_name: std::collections::HashMap<&str, usize> = hidden_names
            .iter()
            .map(|(name, value)| (name.as_str(), value.address()))
            .collect();
        for (name, value) in variables.named() {
            let is_hidden = hidden_by_name.get(name.as_str()) == Some(&value.address());
            if !is_hidden && !is_dunder(&name) {
                roots.add_named(RootKind::Variable, &name, value);
            }
        }
        let outputs = self.outputs.as_ref().and_then(met);
        let results = DisplayedResults::new(outputs.as_ref(), hidden_names);
        let others = self.results.iter();
        let others = others.map(|(path, value)| (path.clone(), section.object(value)));
        results.add_to(roots, others, |name| {
            let value = variables.get(name)?;
            is_own(name, &value).then_some(value)
        });
        self.add_scripts(roots, section);
        for (kind, name, path, value) in &self.failures {
            roots.add(*kind, name, path.clone(), section.object(value));
        }
        roots.close_users(&variables);
        let dicts = hidden.into_iter().chain(outputs);
        let dicts = dicts.map(|dict| dict.object().clone());
        let own = self.own.iter().map(|own| section.object(own));
        for closed in own.chain(dicts) {
            roots.close(closed);
        }
    }

    fn add_scripts<'s>(&self, roots: &mut Roots<'s>, section: &'s Section<'s>) {
        let modules = self.scripts.as_ref();
        let modules = modules.and_then(|it| section.object(it.as_any()).dict());
        for (file, module) in modules.iter().flat_map(Dict::named) {
            let Some(globals) = module.globals() else {
                continue;
            };
            let script = file.rsplit(['/', '\\']).next().unwrap_or_default();
            for (name, value) in globals.named() {
                if !is_dunder(&name) {
                    let path = format!("get_ipython()._main_mod_cache[{file:?}].{name}");
                    let name = format!("%run {script}: {name}");
                    roots.add(RootKind::RunModule, &name, path, value);
                }
            }
            roots.close_users(&globals);
            roots.close(module);
        }
    }
}

/// An attribute that may be missing.
fn attribute<'py>(object: &Bound<'py, PyAny>, name: &str) -> Option<Bound<'py, PyAny>> {
    object.getattr(name).ok().filter(|value| !value.is_none())
}

/// The same, of which only a dict is of use.
fn dict<'py>(object: &Bound<'py, PyAny>, name: &str) -> Option<Bound<'py, PyDict>> {
    attribute(object, name)?.cast_into().ok()
}

/// Displayed results: every place that keeps one has the name of the first.
struct DisplayedResults<'s> {
    /// `Out[3]`, and the object that was displayed.
    outputs: Vec<(String, Object<'s>)>,
    /// `_3`, `_`: what IPython put beside the user's variables.
    hidden: Vec<(String, Object<'s>)>,
}

impl<'s> DisplayedResults<'s> {
    fn new(outputs: Option<&Dict<'s>>, hidden: Vec<(String, Object<'s>)>) -> Self {
        let numbered =
            |(number, value): (Object<'s>, _)| Some((format!("Out[{}]", number.number()?), value));
        let is_result = |name: &str| LAST_RESULTS.contains(&name) || number(name).is_some();
        Self {
            outputs: outputs
                .into_iter()
                .flat_map(Dict::items)
                .filter_map(numbered)
                .collect(),
            hidden: hidden
                .into_iter()
                .filter(|(name, _)| is_result(name))
                .collect(),
        }
    }

    /// `variable` is the user's variable of a name, if IPython made it.
    fn add_to(
        self,
        roots: &mut Roots<'s>,
        others: impl Iterator<Item = (String, Object<'s>)>,
        variable: impl Fn(&str) -> Option<Object<'s>>,
    ) {
        let mut add = |path: String, value: Object<'s>| {
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
        for (path, value) in others {
            add(path, value);
        }
    }

    /// `Out[3]` for whatever keeps what was displayed there, also when that entry is gone.
    fn name(&self, path: &str, value: &Object<'s>) -> String {
        let same = |(_, it): &&(String, Object<'s>)| it.is(value);
        if let Some((name, _)) = self.outputs.iter().find(same) {
            return name.clone();
        }
        let mut hidden = self.hidden.iter().filter(same);
        let numbered = hidden.find_map(|(name, _)| number(name));
        numbered.map_or_else(|| path.to_owned(), |number| format!("Out[{number}]"))
    }
}

/// Adds Python's own references to the last uncaught exception.
pub(super) fn add_last_exception<'s>(roots: &mut Roots<'s>, section: &'s Section<'s>) {
    const PLACES: [(&CStr, &str); 3] = [
        (c"last_value", "sys.last_value"),
        (c"last_exc", "sys.last_exc"),
        (c"last_traceback", "sys.last_traceback"),
    ];
    for (name, path) in PLACES {
        if let Some(value) = section.sys(name).filter(|value| !value.is_none()) {
            roots.add(RootKind::Traceback, LAST_EXCEPTION, path.to_owned(), value);
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
