//! What the bytes of a device are for.

use crate::named;

named! {
    /// What a storage is for: its category, or who names it.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum StorageUse {
        /// Parameters and buffers of models.
        Parameters = "parameters",
        /// Their gradients.
        Gradients = "gradients",
        /// What optimizers keep.
        OptimizerState = "optimizer_state",
        /// Keys and values of the tokens so far.
        KvCaches = "kv_caches",
        /// Saved for a backward pass, and held by nothing else.
        Graphs = "graphs",
        /// Other tensors that the user has names for.
        Names = "names",
        /// Only IPython still holds it: displayed results, the last exception.
        Ipython = "ipython",
        /// Workspaces of libraries.
        Workspaces = "workspaces",
        /// No name reaches it.
        Unnamed = "unnamed",
    }
}

impl StorageUse {
    /// As people read it.
    pub const fn description(self) -> &'static str {
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
