//! How one reference reads in Python.

/// How one reference reads in Python.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Step {
    /// `.weight`
    Attribute(String),
    /// `[3]`
    Index(u64),
    /// `['loss']`, with the key as it is written.
    Key(String),
    /// A member of a set, or the key of a dict.
    Element,
    /// A variable of a function around this one.
    Closure(String),
    /// The default of an argument.
    Default(String),
    /// A local variable of a frame.
    Local(String),
    /// What a cell holds.
    Cell,
    /// Kept by a cache.
    Cached,
    /// What an operation of a graph saved for the way back.
    Saved(String),
    /// The class of an object.
    Class,
    /// The bytes of a tensor.
    Storage,
    /// In a way that nothing tells of.
    Opaque,
}

/// What an object is to a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Category {
    Parameter,
    Gradient,
    OptimizerState,
    Graph,
    KvCache,
    Workspace,
    Buffer,
    Tensor,
}
