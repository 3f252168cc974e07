//! How an edge of the graph reads as Python.

use std::fmt;
use std::sync::Arc;

/// How one object is reached from another, written as Python.
///
/// Steps without a Python expression are written in angle brackets, as in Python's own
/// `train.<locals>.step`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Step {
    /// `.name`
    Attribute(Arc<str>),
    /// `[3]`
    Index(u64),
    /// `['loss']`: the key as Python writes it.
    Key(Arc<str>),
    /// A key of a dict.
    KeyItself,
    /// A variable of a module or a namespace: `.name`.
    Variable(Arc<str>),
    /// A variable that a function took from the scope around it: `.<closure>.name`.
    Closure(Arc<str>),
    /// What an argument is when it is left out: `.<defaults>.name`.
    Default(Arc<str>),
    /// A local variable of a frame, a generator or a coroutine: `.<locals>.name`.
    Local(Arc<str>),
    /// The frame of a traceback, in which this function ran: `.tb_frame`.
    Frame(Arc<str>),
    /// What a closure's cell holds: `.cell_contents`.
    Cell,
    /// An element of a set: `.<element>`.
    Element,
    /// What a graph's node saved for the backward pass: `._saved_self`, where its name is known.
    Saved(Option<Arc<str>>),
    /// The same as a hook of `saved_tensors_hooks` packed it.
    Packed(Arc<str>),
    /// The same object for a reader: an instance's `__dict__`, a tensor's storage.
    Within,
    /// Held from inside, where Python has no name for it: `.<inside>`.
    Opaque,
}

impl Step {
    pub(super) fn is_attribute(&self, name: &str) -> bool {
        matches!(self, Self::Attribute(it) if &**it == name)
    }

    /// `.name`
    pub fn attribute(name: &str) -> Self {
        Self::Attribute(name.into())
    }

    /// `[key]`: the key as Python writes it, with its quotation marks.
    pub fn key(key: &str) -> Self {
        Self::Key(key.into())
    }

    /// `.<closure>.name`
    pub fn closure(name: &str) -> Self {
        Self::Closure(name.into())
    }

    /// `.<locals>.name`
    pub fn local(name: &str) -> Self {
        Self::Local(name.into())
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Attribute(name) | Self::Variable(name) => write!(f, ".{name}"),
            Self::Index(idx) => write!(f, "[{idx}]"),
            Self::Key(key) => write!(f, "[{key}]"),
            Self::KeyItself => f.write_str(".<key>"),
            Self::Closure(name) => write!(f, ".<closure>.{name}"),
            Self::Default(name) => write!(f, ".<defaults>.{name}"),
            Self::Local(name) => write!(f, ".<locals>.{name}"),
            Self::Frame(_) => f.write_str(".tb_frame"),
            Self::Cell => f.write_str(".cell_contents"),
            Self::Element => f.write_str(".<element>"),
            Self::Saved(Some(name)) | Self::Packed(name) => write!(f, "._saved_{name}"),
            Self::Saved(None) => f.write_str(".<saved>"),
            Self::Within => Ok(()),
            Self::Opaque => f.write_str(".<inside>"),
        }
    }
}
