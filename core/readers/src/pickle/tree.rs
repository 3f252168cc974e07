//! The values of a pickle, in one arena.

use std::fmt;

/// A value of eight bytes: itself, or its index in one of the tree's tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Value {
    None,
    Bool(bool),
    Small(i32),
    Int(u32),
    Float(u32),
    Text(u32),
    Decoded(u32),
    Bytes(u32),
    List(u32),
    Tuple(u32),
    Dict(u32),
}

/// The type of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// `None`.
    None,
    /// `True` or `False`.
    Bool,
    /// An integer.
    Int,
    /// A floating-point number.
    Float,
    /// A text.
    Text,
    /// Bytes.
    Bytes,
    /// A list.
    List,
    /// A tuple.
    Tuple,
    /// A dict.
    Dict,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::None => "None",
            Self::Bool => "bool",
            Self::Int => "int",
            Self::Float => "float",
            Self::Text => "str",
            Self::Bytes => "bytes",
            Self::List => "list",
            Self::Tuple => "tuple",
            Self::Dict => "dict",
        })
    }
}

impl Value {
    pub(super) const fn kind(self) -> Kind {
        match self {
            Self::None => Kind::None,
            Self::Bool(_) => Kind::Bool,
            Self::Small(_) | Self::Int(_) => Kind::Int,
            Self::Float(_) => Kind::Float,
            Self::Text(_) | Self::Decoded(_) => Kind::Text,
            Self::Bytes(_) => Kind::Bytes,
            Self::List(_) => Kind::List,
            Self::Tuple(_) => Kind::Tuple,
            Self::Dict(_) => Kind::Dict,
        }
    }

    /// The index of the items that it has.
    pub(super) const fn container(self) -> Option<u32> {
        match self {
            Self::List(at) | Self::Tuple(at) | Self::Dict(at) => Some(at),
            _ => None,
        }
    }
}

/// What a list, tuple or dict holds; keys and values of a dict alternate.
#[derive(Debug)]
pub(super) struct Container {
    pub(super) items: Vec<Value>,
    /// Where it begins in the input.
    pub(super) offset: u32,
}

/// The values of a pickle. Values that it shares are here once; it may contain itself.
#[derive(Debug)]
pub struct Tree<'a> {
    pub(super) root: Value,
    pub(super) ints: Vec<i128>,
    pub(super) floats: Vec<f64>,
    pub(super) texts: Vec<&'a str>,
    pub(super) decoded: Vec<Box<str>>,
    pub(super) bytes: Vec<&'a [u8]>,
    pub(super) containers: Vec<Container>,
}

impl Tree<'_> {
    /// The value that was pickled.
    pub const fn root(&self) -> View<'_> {
        View {
            tree: self,
            value: self.root,
        }
    }

    /// Number of items that its lists, tuples and dicts hold together; shared ones count once.
    pub fn n_items(&self) -> usize {
        self.containers
            .iter()
            .map(|container| container.items.len())
            .sum()
    }

    /// Number of lists, tuples and dicts: identities are below it.
    pub const fn n_containers(&self) -> usize {
        self.containers.len()
    }
}

/// One value of a tree.
#[derive(Clone, Copy)]
pub struct View<'t> {
    tree: &'t Tree<'t>,
    value: Value,
}

impl<'t> View<'t> {
    /// Its type.
    pub const fn kind(self) -> Kind {
        self.value.kind()
    }

    /// Whether it is `None`.
    pub const fn is_none(self) -> bool {
        matches!(self.value, Value::None)
    }

    /// A bool.
    pub const fn as_bool(self) -> Option<bool> {
        match self.value {
            Value::Bool(yes) => Some(yes),
            _ => None,
        }
    }

    /// An integer.
    pub fn as_int(self) -> Option<i128> {
        match self.value {
            Value::Small(number) => Some(number.into()),
            Value::Int(at) => self.tree.ints.get(at as usize).copied(),
            _ => None,
        }
    }

    /// An integer from 0 to 2^64−1.
    pub fn as_u64(self) -> Option<u64> {
        u64::try_from(self.as_int()?).ok()
    }

    /// A floating-point number.
    pub fn as_float(self) -> Option<f64> {
        match self.value {
            Value::Float(at) => self.tree.floats.get(at as usize).copied(),
            _ => None,
        }
    }

    /// A text. What was not Unicode in it is U+FFFD.
    pub fn as_text(self) -> Option<&'t str> {
        match self.value {
            Value::Text(at) => self.tree.texts.get(at as usize).copied(),
            Value::Decoded(at) => self.tree.decoded.get(at as usize).map(Box::as_ref),
            _ => None,
        }
    }

    /// Bytes.
    pub fn as_bytes(self) -> Option<&'t [u8]> {
        match self.value {
            Value::Bytes(at) => self.tree.bytes.get(at as usize).copied(),
            _ => None,
        }
    }

    /// The items of a list or tuple; none for another value.
    pub fn items(self) -> impl ExactSizeIterator<Item = View<'t>> {
        let items = match self.value {
            Value::List(_) | Value::Tuple(_) => self.contents(),
            _ => &[],
        };
        items.iter().map(move |&value| self.beside(value))
    }

    /// The keys and values of a dict in the order in which they were written; none for another value.
    pub fn entries(self) -> impl ExactSizeIterator<Item = (View<'t>, View<'t>)> {
        let items = match self.value {
            Value::Dict(_) => self.contents(),
            _ => &[],
        };
        let (pairs, _) = items.as_chunks::<2>();
        pairs
            .iter()
            .map(move |&[key, value]| (self.beside(key), self.beside(value)))
    }

    /// The value of a dict's text key; the last one if it was set several times. Looks at every key.
    pub fn get(self, key: &str) -> Option<View<'t>> {
        let mut found = None;
        for (name, value) in self.entries() {
            if name.as_text() == Some(key) {
                found = Some(value);
            }
        }
        found
    }

    /// Offset in the input at which a list, tuple or dict begins.
    pub fn offset(self) -> Option<usize> {
        let container = self.tree.containers.get(self.identity()? as usize)?;
        Some(container.offset as usize)
    }

    /// A number that a list, tuple or dict has wherever it is shared.
    pub const fn identity(self) -> Option<u32> {
        self.value.container()
    }

    fn contents(self) -> &'t [Value] {
        let container = self.value.container().and_then(|at| {
            let at = usize::try_from(at).ok()?;
            self.tree.containers.get(at)
        });
        container.map_or(&[], |container| &container.items)
    }

    const fn beside(self, value: Value) -> Self {
        Self {
            tree: self.tree,
            value,
        }
    }
}
