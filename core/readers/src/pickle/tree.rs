//! The values of a pickle, in one arena.

use std::fmt;

/// A value of eight bytes: itself, or its index in one of the tree's tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PickleValue {
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
pub enum PickleKind {
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

impl fmt::Display for PickleKind {
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

impl PickleValue {
    pub(super) const fn kind(self) -> PickleKind {
        match self {
            Self::None => PickleKind::None,
            Self::Bool(_) => PickleKind::Bool,
            Self::Small(_) | Self::Int(_) => PickleKind::Int,
            Self::Float(_) => PickleKind::Float,
            Self::Text(_) | Self::Decoded(_) => PickleKind::Text,
            Self::Bytes(_) => PickleKind::Bytes,
            Self::List(_) => PickleKind::List,
            Self::Tuple(_) => PickleKind::Tuple,
            Self::Dict(_) => PickleKind::Dict,
        }
    }

    /// The index of its items.
    pub(super) const fn container(self) -> Option<u32> {
        match self {
            Self::List(at) | Self::Tuple(at) | Self::Dict(at) => Some(at),
            _ => None,
        }
    }
}

/// The items of a list, tuple or dict; keys and values of a dict alternate.
#[derive(Debug)]
pub(super) struct PickleContainer {
    pub(super) items: Vec<PickleValue>,
    /// Where it begins in the input.
    pub(super) offset: u32,
}

/// The values of a pickle. Shared values are here once; a value may contain itself.
#[derive(Debug)]
pub struct Tree<'a> {
    pub(super) root: PickleValue,
    pub(super) ints: Vec<i128>,
    pub(super) floats: Vec<f64>,
    pub(super) texts: Vec<&'a str>,
    pub(super) decoded: Vec<Box<str>>,
    pub(super) bytes: Vec<&'a [u8]>,
    pub(super) containers: Vec<PickleContainer>,
}

impl Tree<'_> {
    /// The value that was pickled.
    pub const fn root(&self) -> PickleView<'_> {
        PickleView {
            tree: self,
            value: self.root,
        }
    }

    /// Number of items in its lists, tuples and dicts; shared ones count once.
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
pub struct PickleView<'t> {
    tree: &'t Tree<'t>,
    value: PickleValue,
}

impl<'t> PickleView<'t> {
    /// Its type.
    pub const fn kind(self) -> PickleKind {
        self.value.kind()
    }

    /// Whether it is `None`.
    pub const fn is_none(self) -> bool {
        matches!(self.value, PickleValue::None)
    }

    /// A bool.
    pub const fn as_bool(self) -> Option<bool> {
        match self.value {
            PickleValue::Bool(yes) => Some(yes),
            _ => None,
        }
    }

    /// An integer.
    pub fn as_int(self) -> Option<i128> {
        match self.value {
            PickleValue::Small(number) => Some(number.into()),
            PickleValue::Int(at) => self.tree.ints.get(at as usize).copied(),
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
            PickleValue::Float(at) => self.tree.floats.get(at as usize).copied(),
            _ => None,
        }
    }

    /// A text. Invalid Unicode in it is U+FFFD.
    pub fn as_text(self) -> Option<&'t str> {
        match self.value {
            PickleValue::Text(at) => self.tree.texts.get(at as usize).copied(),
            PickleValue::Decoded(at) => self.tree.decoded.get(at as usize).map(Box::as_ref),
            _ => None,
        }
    }

    /// Bytes.
    pub fn as_bytes(self) -> Option<&'t [u8]> {
        match self.value {
            PickleValue::Bytes(at) => self.tree.bytes.get(at as usize).copied(),
            _ => None,
        }
    }

    /// The items of a list or tuple; none for another value.
    pub fn items(self) -> impl ExactSizeIterator<Item = PickleView<'t>> {
        let items = match self.value {
            PickleValue::List(_) | PickleValue::Tuple(_) => self.contents(),
            _ => &[],
        };
        items.iter().map(move |&value| self.beside(value))
    }

    /// The keys and values of a dict in the order in which they were written; none for another value.
    pub fn entries(self) -> impl ExactSizeIterator<Item = (PickleView<'t>, PickleView<'t>)> {
        let items = match self.value {
            PickleValue::Dict(_) => self.contents(),
            _ => &[],
        };
        let (pairs, _) = items.as_chunks::<2>();
        pairs
            .iter()
            .map(move |&[key, value]| (self.beside(key), self.beside(value)))
    }

    /// The value of a dict's text key; the last one if it was set several times. A linear search.
    pub fn get(self, key: &str) -> Option<PickleView<'t>> {
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

    /// The identity of a list, tuple or dict, the same wherever it is shared.
    pub const fn identity(self) -> Option<u32> {
        self.value.container()
    }

    fn contents(self) -> &'t [PickleValue] {
        let container = self.value.container().and_then(|at| {
            let at = usize::try_from(at).ok()?;
            self.tree.containers.get(at)
        });
        container.map_or(&[], |container| &container.items)
    }

    const fn beside(self, value: PickleValue) -> Self {
        Self {
            tree: self.tree,
            value,
        }
    }
}
