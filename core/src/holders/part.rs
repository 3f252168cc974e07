//! What the bytes of a device are for.

/// What a storage is for: its category, or who names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Part {
    /// Parameters and buffers of models.
    Parameters,
    /// Their gradients.
    Gradients,
    /// What optimizers keep.
    OptimizerState,
    /// Keys and values of the tokens so far.
    KvCaches,
    /// Saved for a backward pass, and held by nothing else.
    Graphs,
    /// Other tensors that the user has names for.
    Names,
    /// Only IPython still holds it: displayed results, the last exception.
    Ipython,
    /// Workspaces of libraries.
    Workspaces,
    /// No name reaches it.
    Unnamed,
}

impl Part {
    /// Every part, in the order in which they are shown.
    pub const ALL: [Self; 9] = [
        Self::Parameters,
        Self::Gradients,
        Self::OptimizerState,
        Self::KvCaches,
        Self::Graphs,
        Self::Names,
        Self::Ipython,
        Self::Workspaces,
        Self::Unnamed,
    ];

    /// The name in JSON, in Python and on the wire.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Parameters => "parameters",
            Self::Gradients => "gradients",
            Self::OptimizerState => "optimizer_state",
            Self::KvCaches => "kv_caches",
            Self::Graphs => "graphs",
            Self::Names => "names",
            Self::Ipython => "ipython",
            Self::Workspaces => "workspaces",
            Self::Unnamed => "unnamed",
        }
    }

    /// The part of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|part| part.name() == name)
    }

    /// As people read it.
    pub const fn words(self) -> &'static str {
        match self {
            Self::Parameters => "parameters",
            Self::Gradients => "gradients",
            Self::OptimizerState => "optimizer",
            Self::KvCaches => "KV caches",
            Self::Graphs => "graphs",
            Self::Names => "your names",
            Self::Ipython => "IPython",
            Self::Workspaces => "workspaces",
            Self::Unnamed => "unnamed",
        }
    }
}
