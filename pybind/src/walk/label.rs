//! How a reference reads in Python: `.attr`, `[3]`, `['loss']`, a local of a frame.
//!
//! Only objects whose class is known to run nothing of the user's are asked, by the slots of
//! CPython's own types. What stands between an object and what it shows, such as an instance's
//! dict or a closure's cells, is passed over.

use gpumem_core::holders::Step;
use pyo3::exceptions::PyBaseException;
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::{
    PyBool, PyDict, PyFloat, PyFrozenSet, PyInt, PyList, PyModule, PySet, PyString, PyTuple, PyType,
};

use super::native::{self, ClassFacts, Members, Native, Natives};
use crate::adapters::peek;

/// Instances whose dict is asked for in one walk: CPython makes it when it is asked for, and keeps
/// it from then on.
const MOST_DICTS: usize = 4096;

/// How many entries of containers are looked through in one walk.
const MOST_ENTRIES: usize = 1 << 24;

/// The longest key that a path shows.
const LONGEST_KEY: usize = 40;

/// What an object shows of what it refers to.
#[derive(Default)]
pub(super) struct Labels {
    /// Objects by address, with the way to them. One may be reached in several ways.
    pub(super) targets: Vec<(usize, Step)>,
    /// Objects that are passed over: what they hold is among the targets.
    pub(super) passed: Vec<usize>,
}

impl Labels {
    fn add(&mut self, target: &Bound<'_, PyAny>, step: Step) {
        self.targets.push((target.as_ptr() as usize, step));
    }

    fn pass(&mut self, object: &Bound<'_, PyAny>) {
        self.passed.push(object.as_ptr() as usize);
    }
}

/// Finds the labels of one object after the other.
pub(super) struct Labeller<'py> {
    natives: Natives<'py>,
    facts: ClassFacts,
    members: Members,
    dicts_left: usize,
    entries_left: usize,
}

impl<'py> Labeller<'py> {
    pub(super) fn new(py: Python<'py>) -> PyResult<Self> {
        Ok(Self {
            natives: Natives::new(py)?,
            facts: ClassFacts::new(py)?,
            members: Members::default(),
            dicts_left: MOST_DICTS,
            entries_left: MOST_ENTRIES,
        })
    }

    /// What `object` shows; `is_target` says which objects matter.
    pub(super) fn labels(
        &mut self,
        object: &Bound<'py, PyAny>,
        is_target: &dyn Fn(usize) -> bool,
    ) -> Labels {
        let mut labels = Labels::default();
        // What cannot be asked stays without a name.
        let asked = match self.natives.of(object) {
            Some(native) => self.native(native, object, is_target, &mut labels),
            None => self.other(object, is_target, &mut labels),
        };
        drop(asked);
        labels.targets.retain(|(address, _)| is_target(*address));
        labels
    }

    fn native(
        &mut self,
        native: Native,
        object: &Bound<'py, PyAny>,
        is_target: &dyn Fn(usize) -> bool,
        labels: &mut Labels,
    ) -> PyResult<()> {
        match native {
            Native::Function => self.function(object, labels)?,
            Native::Method => {
                attributes(object, &["__self__", "__func__"], labels)?;
            }
            Native::BuiltinMethod => attributes(object, &["__self__"], labels)?,
            Native::Cell => {
                let content = object.getattr("cell_contents")?;
                labels.add(&content, Step::Cell);
            }
            Native::Frame => {
                locals(object, labels)?;
                attributes(object, &["f_back", "f_globals"], labels)?;
            }
            Native::Traceback => attributes(object, &["tb_next", "tb_frame"], labels)?,
            Native::Generator { frame, awaits } => {
                // What it waits for lies in no variable.
                attributes(object, &[awaits], labels)?;
                let frame = object.getattr(frame)?;
                labels.pass(&frame);
                locals(&frame, labels)?;
            }
            Native::Deque => {
                for (idx, item) in object.try_iter()?.enumerate() {
                    labels.add(&item?, Step::Index(idx as u64));
                }
            }
            Native::Partial => attributes(object, &["func", "args", "keywords"], labels)?,
            Native::LruCache => self.dict_of(object, labels),
            Native::Container => self.items(object, is_target, labels),
        }
        Ok(())
    }

    /// Closure, defaults and attributes.
    fn function(&mut self, function: &Bound<'py, PyAny>, labels: &mut Labels) -> PyResult<()> {
        let code = function.getattr("__code__")?;
        if let Ok(cells) = function
            .getattr("__closure__")?
            .cast_into_exact::<PyTuple>()
        {
            labels.pass(&cells);
            let names = code.getattr("co_freevars")?.cast_into_exact::<PyTuple>()?;
            for (cell, name) in cells.iter().zip(names.iter()) {
                labels.pass(&cell);
                // An empty cell has no contents.
                if let Ok(content) = cell.getattr("cell_contents") {
                    labels.add(&content, Step::closure(&text(&name)));
                }
            }
        }
        if let Ok(defaults) = function
            .getattr("__defaults__")?
            .cast_into_exact::<PyTuple>()
        {
            labels.pass(&defaults);
            let n_arguments: usize = code.getattr("co_argcount")?.extract()?;
            let names = code.getattr("co_varnames")?.cast_into_exact::<PyTuple>()?;
            let first = n_arguments.saturating_sub(defaults.len());
            for (value, name) in defaults.iter().zip(names.iter().skip(first)) {
                labels.add(&value, Step::Default(text(&name).into()));
            }
        }
        if let Ok(defaults) = function
            .getattr("__kwdefaults__")?
            .cast_into_exact::<PyDict>()
        {
            labels.pass(&defaults);
            for (name, value) in &defaults {
                labels.add(&value, Step::Default(text(&name).into()));
            }
        }
        self.dict_of(function, labels);
        attributes(function, &["__globals__"], labels)
    }

    /// Of containers, their items; of anything but CPython's own containers, its attributes.
    fn other(
        &mut self,
        object: &Bound<'py, PyAny>,
        is_target: &dyn Fn(usize) -> bool,
        labels: &mut Labels,
    ) -> PyResult<()> {
        self.items(object, is_target, labels);
        if let Ok(module) = object.cast::<PyModule>() {
            self.attributes_in(&module.dict(), labels);
            return Ok(());
        }
        if let Ok(class) = object.cast::<PyType>() {
            for (name, value) in peek::own_items(class)? {
                labels.add(&value, Step::attribute(&text(&name)));
            }
            return Ok(());
        }
        if let Ok(error) = object.cast::<PyBaseException>() {
            exception(error, labels);
        }
        self.members.for_each(object, |name, value| {
            labels.add(value, Step::attribute(name));
        });
        self.dict_of(object, labels);
        Ok(())
    }

    /// The items of a container, and of what comes from one: not by its own methods, which a
    /// class of the user's may have changed.
    fn items(
        &mut self,
        object: &Bound<'py, PyAny>,
        is_target: &dyn Fn(usize) -> bool,
        labels: &mut Labels,
    ) {
        let is_target = |item: &Bound<'_, PyAny>| is_target(item.as_ptr() as usize);
        let mut found = Numbered::new(self.entries_left);
        if let Ok(dict) = object.cast::<PyDict>() {
            for (_, (key, value)) in found.each(dict) {
                if is_target(&value) {
                    let key = plain_key(&key).unwrap_or_else(|| self.facts.in_words(&key));
                    labels.add(&value, Step::key(&key));
                }
                if is_target(&key) {
                    labels.add(&key, Step::KeyItself);
                }
            }
        } else if let Ok(list) = object.cast::<PyList>() {
            for (idx, item) in found.each(list).filter(|(_, item)| is_target(item)) {
                labels.add(&item, Step::Index(idx));
            }
        } else if let Ok(tuple) = object.cast::<PyTuple>() {
            for (idx, item) in found.each(tuple).filter(|(_, item)| is_target(item)) {
                labels.add(&item, Step::Index(idx));
            }
        } else if let Ok(set) = object.cast_exact::<PySet>() {
            for (_, item) in found.each(set).filter(|(_, item)| is_target(item)) {
                labels.add(&item, Step::Element);
            }
        } else if let Ok(set) = object.cast_exact::<PyFrozenSet>() {
            for (_, item) in found.each(set).filter(|(_, item)| is_target(item)) {
                labels.add(&item, Step::Element);
            }
        }
        self.entries_left -= found.n_taken;
    }

    /// The attributes in an object's own dict.
    fn dict_of(&mut self, object: &Bound<'py, PyAny>, labels: &mut Labels) {
        if self.dicts_left == 0 {
            return;
        }
        if let Some(dict) = peek::attributes(object) {
            self.dicts_left -= 1;
            self.attributes_in(&dict, labels);
        }
    }

    fn attributes_in(&mut self, dict: &Bound<'py, PyDict>, labels: &mut Labels) {
        if dict.len() > self.entries_left {
            return;
        }
        self.entries_left -= dict.len();
        labels.pass(dict.as_any());
        for (name, value) in dict {
            labels.add(&value, Step::attribute(&text(&name)));
        }
    }
}

/// Goes through a container, as far as there is room.
struct Numbered {
    most: usize,
    n_taken: usize,
}

impl Numbered {
    fn new(most: usize) -> Self {
        Self { most, n_taken: 0 }
    }

    fn each<T>(
        &mut self,
        container: impl IntoIterator<Item = T>,
    ) -> impl Iterator<Item = (u64, T)> {
        let items = container.into_iter().take(self.most).enumerate();
        items.map(|(idx, item)| {
            self.n_taken += 1;
            (idx as u64, item)
        })
    }
}

/// What every exception has, whatever its class says.
fn exception(error: &Bound<'_, PyBaseException>, labels: &mut Labels) {
    let py = error.py();
    let error = error.as_ptr();
    // SAFETY: an instance of `BaseException`; each result is a new reference or null.
    let related = unsafe {
        [
            ("__traceback__", ffi::PyException_GetTraceback(error)),
            ("__cause__", ffi::PyException_GetCause(error)),
            ("__context__", ffi::PyException_GetContext(error)),
        ]
        .map(|(name, it)| (name, Bound::from_owned_ptr_or_opt(py, it)))
    };
    for (name, value) in related {
        if let Some(value) = value {
            labels.add(&value, Step::attribute(name));
        }
    }
}

fn locals(frame: &Bound<'_, PyAny>, labels: &mut Labels) -> PyResult<()> {
    for (name, value) in native::locals(frame)? {
        labels.add(&value, Step::local(&name));
    }
    Ok(())
}

/// Attributes of an object of CPython's own, by name.
fn attributes(object: &Bound<'_, PyAny>, names: &[&str], labels: &mut Labels) -> PyResult<()> {
    for name in names {
        let value = object.getattr(*name)?;
        labels.add(&value, Step::attribute(name));
    }
    Ok(())
}

/// A name, which is a string unless somebody put something else into a namespace.
fn text(name: &Bound<'_, PyAny>) -> String {
    let text = name.cast_exact::<PyString>();
    text.map_or_else(
        |_| "?".to_owned(),
        |text| text.to_string_lossy().into_owned(),
    )
}

/// `'loss'`, `3`, `(0, 'a')`: what a key says of itself, if its class is CPython's own.
fn plain_key(key: &Bound<'_, PyAny>) -> Option<String> {
    let is_plain = |it: &Bound<'_, PyAny>| {
        it.is_exact_instance_of::<PyString>()
            || it.is_exact_instance_of::<PyInt>()
            || it.is_exact_instance_of::<PyBool>()
            || it.is_exact_instance_of::<PyFloat>()
            || it.is_none()
    };
    let is_plain_tuple = |it: &Bound<'_, PyAny>| {
        it.cast_exact::<PyTuple>()
            .is_ok_and(|it| it.len() <= 4 && it.iter().all(|it| is_plain(&it)))
    };
    if (is_plain(key) || is_plain_tuple(key))
        && let Ok(shown) = key.repr()
    {
        let shown = shown.to_string_lossy();
        if shown.chars().count() <= LONGEST_KEY {
            return Some(shown.into_owned());
        }
        return Some(shown.chars().take(LONGEST_KEY - 1).chain(['…']).collect());
    }
    None
}
