//! How a reference reads in Python: `.attr`, `[3]`, `['loss']`, a local of a frame.
//!
//! Only objects whose class runs none of the user's code are read, through the slots of CPython's
//! own types. Objects in between, such as an instance's dict or a closure's cells, get no step of
//! their own.

use gpumem_heap::Step;

use super::native::{self, Members, Native, in_words};
use crate::still::{Dict, Object};

/// The most instance dicts read in one walk: CPython creates each at the first access and keeps it.
const MOST_DICTS: usize = 4096;

/// How many entries of containers are looked through in one walk.
const MOST_ENTRIES: usize = 1 << 24;

/// The longest key that a path shows.
const LONGEST_KEY: usize = 40;

/// The labels found so far, and the objects in between.
#[derive(Default)]
pub(super) struct ReferenceLabels {
    /// Objects by address, with the way to them. One may be reached in several ways.
    pub(super) targets: Vec<(usize, Step)>,
    /// Objects that are passed over: what they hold is among the targets.
    pub(super) passed: Vec<usize>,
}

impl ReferenceLabels {
    fn add(&mut self, target: &Object<'_>, step: Step) {
        self.targets.push((target.address(), step));
    }

    fn pass(&mut self, object: &Object<'_>) {
        self.passed.push(object.address());
    }
}

/// Finds the labels of one object after the other.
pub(super) struct Labeller {
    members: Members,
    dicts_left: usize,
    entries_left: usize,
}

impl Labeller {
    pub(super) fn new() -> Self {
        Self {
            members: Members::default(),
            dicts_left: MOST_DICTS,
            entries_left: MOST_ENTRIES,
        }
    }

    /// What `object` shows; `is_target` says which objects matter. Objects that cannot be
    /// read stay unnamed.
    pub(super) fn labels(
        &mut self,
        object: &Object<'_>,
        is_target: &dyn Fn(usize) -> bool,
    ) -> ReferenceLabels {
        let mut labels = ReferenceLabels::default();
        match Native::of_object(object) {
            Some(native) => self.native(native, object, is_target, &mut labels),
            None => self.other(object, is_target, &mut labels),
        }
        labels.targets.retain(|(address, _)| is_target(*address));
        labels
    }

    /// Some attributes raise an audit event, which a hook of the user's may be waiting for: these
    /// are read in a copy of the process alone.
    fn native(
        &mut self,
        native: Native,
        object: &Object<'_>,
        is_target: &dyn Fn(usize) -> bool,
        labels: &mut ReferenceLabels,
    ) {
        let is_copy = object.section().is_copy();
        match native {
            Native::Function => self.function(object, labels),
            Native::Method => attributes(object, &["__self__", "__func__"], labels),
            Native::BuiltinMethod => attributes(object, &["__self__"], labels),
            Native::Cell => {
                if let Some(content) = object.read("cell_contents") {
                    labels.add(&content, Step::Cell);
                }
            }
            Native::Frame => {
                locals(object, labels);
                attributes(object, &["f_back", "f_globals"], labels);
            }
            Native::Traceback => {
                attributes(object, &["tb_next"], labels);
                let frame = if is_copy {
                    object.read("tb_frame")
                } else {
                    None
                };
                if let Some(frame) = frame {
                    let function = native::function_name(&frame).unwrap_or_default();
                    labels.add(&frame, Step::Frame(function.into()));
                }
            }
            Native::Generator { frame, awaits } => {
                // What it waits for lies in no variable.
                attributes(object, &[awaits], labels);
                let frame = if is_copy { object.read(frame) } else { None };
                if let Some(frame) = frame.filter(|frame| !frame.is_none()) {
                    labels.pass(&frame);
                    locals(&frame, labels);
                }
            }
            Native::Deque => {
                for (idx, item) in object.elements().into_iter().flatten().enumerate() {
                    labels.add(&item, Step::Index(idx as u64));
                }
            }
            Native::Partial => attributes(object, &["func", "args", "keywords"], labels),
            Native::LruCache => self.dict_of(object, labels),
            Native::Container => self.items(object, is_target, labels),
        }
    }

    /// Closure, defaults and attributes.
    fn function(&mut self, function: &Object<'_>, labels: &mut ReferenceLabels) {
        let is_copy = function.section().is_copy();
        let code = if is_copy {
            function.read("__code__")
        } else {
            None
        };
        let names = |name: &str| -> Vec<String> {
            let names = code.as_ref().and_then(|code| code.read(name));
            let names = names.as_ref().and_then(Object::tuple);
            let text = |name: Object<'_>| name.text().unwrap_or_default();
            names.into_iter().flatten().map(text).collect()
        };
        if let Some(closure) = function.read("__closure__")
            && let Some(cells) = closure.tuple()
        {
            labels.pass(&closure);
            let names = names("co_freevars");
            for (idx, cell) in cells.enumerate() {
                labels.pass(&cell);
                // An empty cell has no contents.
                if let Some(content) = cell.read("cell_contents") {
                    let name = names.get(idx).map_or("?", String::as_str);
                    labels.add(&content, Step::closure(name));
                }
            }
        }
        if is_copy {
            let n_arguments = code.as_ref().and_then(|code| code.read("co_argcount"));
            let n_arguments = n_arguments.and_then(|it| it.number()).unwrap_or_default();
            defaults(
                function,
                n_arguments as usize,
                &names("co_varnames"),
                labels,
            );
        }
        self.dict_of(function, labels);
        attributes(function, &["__globals__"], labels);
    }

    /// The items of containers; the attributes of everything but CPython's own containers.
    fn other(
        &mut self,
        object: &Object<'_>,
        is_target: &dyn Fn(usize) -> bool,
        labels: &mut ReferenceLabels,
    ) {
        self.items(object, is_target, labels);
        if let Some(globals) = object.globals() {
            self.attributes_in(&globals, labels);
            return;
        }
        if let Some(class) = object.as_class() {
            let own = class.own_attributes().into_iter();
            for (name, value) in own.flat_map(|own| own.items()) {
                labels.add(&value, Step::attribute(&text(&name)));
            }
            return;
        }
        for (name, value) in object.chain() {
            if let Some(value) = value {
                labels.add(&value, Step::attribute(name));
            }
        }
        self.members.for_each(object, |name, value| {
            labels.add(value, Step::attribute(name));
        });
        self.dict_of(object, labels);
    }

    /// The items of a container, and of what comes from one: not by its own methods, which a
    /// class of the user's may have changed.
    fn items(
        &mut self,
        object: &Object<'_>,
        is_target: &dyn Fn(usize) -> bool,
        labels: &mut ReferenceLabels,
    ) {
        let is_target = |item: &Object<'_>| is_target(item.address());
        let mut found = BoundedItems::new(self.entries_left);
        if let Some(dict) = object.dict() {
            for (_, (key, value)) in found.each(dict.items()) {
                if is_target(&value) {
                    let key = plain_key(&key).unwrap_or_else(|| in_words(&key));
                    labels.add(&value, Step::key(&key));
                }
                if is_target(&key) {
                    labels.add(&key, Step::KeyItself);
                }
            }
        } else if let Some(list) = object.list() {
            for (idx, item) in found.each(list).filter(|(_, item)| is_target(item)) {
                labels.add(&item, Step::Index(idx));
            }
        } else if let Some(tuple) = object.tuple() {
            for (idx, item) in found.each(tuple).filter(|(_, item)| is_target(item)) {
                labels.add(&item, Step::Index(idx));
            }
        } else if let Some(set) = object.set() {
            for (_, item) in found.each(set).filter(|(_, item)| is_target(item)) {
                labels.add(&item, Step::Element);
            }
        }
        self.entries_left -= found.n_taken;
    }

    /// The attributes in an object's own dict.
    fn dict_of(&mut self, object: &Object<'_>, labels: &mut ReferenceLabels) {
        if self.dicts_left == 0 {
            return;
        }
        if let Some(dict) = object.attributes() {
            self.dicts_left -= 1;
            self.attributes_in(&dict, labels);
        }
    }

    fn attributes_in(&mut self, dict: &Dict<'_>, labels: &mut ReferenceLabels) {
        if dict.len() > self.entries_left {
            return;
        }
        self.entries_left -= dict.len();
        labels.pass(dict.object());
        for (name, value) in dict.items() {
            labels.add(&value, Step::attribute(&text(&name)));
        }
    }
}

/// Goes through a container, as far as there is room.
struct BoundedItems {
    most: usize,
    n_taken: usize,
}

impl BoundedItems {
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

/// The defaults of a function's last arguments, and of those that have to be named.
fn defaults(
    function: &Object<'_>,
    n_arguments: usize,
    names: &[String],
    labels: &mut ReferenceLabels,
) {
    if let Some(defaults) = function.read("__defaults__")
        && let Some(values) = defaults.tuple()
    {
        labels.pass(&defaults);
        let values: Vec<_> = values.collect();
        let first = n_arguments.saturating_sub(values.len());
        for (value, name) in values.iter().zip(names.iter().skip(first)) {
            labels.add(value, Step::Default(name.as_str().into()));
        }
    }
    if let Some(defaults) = function.read("__kwdefaults__").and_then(|it| it.dict()) {
        labels.pass(defaults.object());
        for (name, value) in defaults.items() {
            labels.add(&value, Step::Default(text(&name).into()));
        }
    }
}

fn locals(frame: &Object<'_>, labels: &mut ReferenceLabels) {
    for (name, value) in native::locals(frame) {
        labels.add(&value, Step::local(&name));
    }
}

/// Attributes of an object of CPython's own, by name.
fn attributes(object: &Object<'_>, names: &[&str], labels: &mut ReferenceLabels) {
    for name in names {
        if let Some(value) = object.read(name) {
            labels.add(&value, Step::attribute(name));
        }
    }
}

/// A name: a string, unless code put another key into a namespace.
fn text(name: &Object<'_>) -> String {
    name.text().unwrap_or_else(|| "?".to_owned())
}

/// `'loss'`, `3`, `(0, 'a')`: the `repr` of a key, if its class is CPython's own.
fn plain_key(key: &Object<'_>) -> Option<String> {
    let shown = key.literal()?;
    if shown.chars().count() <= LONGEST_KEY {
        return Some(shown);
    }
    Some(shown.chars().take(LONGEST_KEY - 1).chain(['…']).collect())
}
