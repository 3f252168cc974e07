//! What the memory of a device is for. Colours belong to these, never to ranks.

use gpumem_model::holders::StorageUse as Purpose;
use gpumem_model::named;

named! {
    /// What a part of a device is for, in the order in which parts are shown.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum Category {
        /// Parameters and buffers of models.
        Parameters = "parameters",
        /// Their gradients.
        Gradients = "gradients",
        /// What optimizers keep.
        Optimizer = "optimizer",
        /// What autograd keeps, and caches of keys and values.
        Graphs = "graphs",
        /// Other tensors that have names.
        Names = "your names",
        /// What only `IPython` keeps.
        Ipython = "IPython",
        /// No name reaches it.
        Unnamed = "unnamed",
        /// Free in the allocator.
        Cache = "cache",
        /// Of the driver and of libraries.
        Context = "context",
        /// Of other processes.
        Others = "other processes",
    }
}

impl Category {
    /// Where memory of that purpose belongs.
    pub const fn of_purpose(purpose: Purpose) -> Self {
        match purpose {
            Purpose::Parameters => Self::Parameters,
            Purpose::Gradients => Self::Gradients,
            Purpose::OptimizerState => Self::Optimizer,
            Purpose::KvCaches | Purpose::Graphs => Self::Graphs,
            Purpose::Names => Self::Names,
            Purpose::Ipython => Self::Ipython,
            Purpose::Workspaces => Self::Context,
            Purpose::Unnamed => Self::Unnamed,
        }
    }

    /// It is drawn with stripes: whose it is nobody can say, or it is nobody's here.
    pub const fn is_striped(self) -> bool {
        matches!(self, Self::Unnamed | Self::Others)
    }

    /// On light and on dark.
    pub(super) const fn colours(self) -> [u32; 2] {
        match self {
            Self::Parameters => [0x21_5a_a2, 0x5b_97_e6],
            Self::Gradients => [0x83_5c_be, 0xab_88_e8],
            Self::Optimizer => [0x34_36_85, 0x7f_87_e8],
            Self::Graphs => [0x15_73_65, 0x3f_a4_93],
            Self::Names => [0x16_7a_99, 0x4b_ac_d0],
            Self::Ipython => [0x7c_37_6f, 0xc1_74_b2],
            Self::Unnamed | Self::Context => [0x6e_75_7d, 0x8b_93_9c],
            Self::Cache => [0xc6_d5_e6, 0x3f_4f_60],
            Self::Others => [0x47_4e_55, 0x7d_86_8f],
        }
    }
}
