//! What the memory of a device is for. Colours belong to these, never to ranks.

use crate::analyze::{Part, PartContent, PartKind};
use crate::holders::Part as Purpose;

/// What a part of a device is for, in the order in which parts are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Category {
    /// Parameters and buffers of models.
    Parameters,
    /// Their gradients.
    Gradients,
    /// What optimizers keep.
    Optimizer,
    /// What autograd keeps, and caches of keys and values.
    Graphs,
    /// Other tensors that have names.
    Names,
    /// What only `IPython` keeps.
    Ipython,
    /// No name reaches it.
    Unnamed,
    /// Free in the allocator.
    Cache,
    /// Of the driver and of libraries.
    Context,
    /// Of other processes.
    Others,
}

impl Category {
    /// All, in the order in which they are shown.
    pub const ALL: [Self; 10] = [
        Self::Parameters,
        Self::Gradients,
        Self::Optimizer,
        Self::Graphs,
        Self::Names,
        Self::Ipython,
        Self::Unnamed,
        Self::Cache,
        Self::Context,
        Self::Others,
    ];

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

    /// Where a part of the device belongs; `None` if it is free.
    pub(super) fn of_part(part: &Part) -> Option<Self> {
        Some(match (part.content, part.kind()) {
            (PartContent::Purpose(purpose), _) => Self::of_purpose(purpose),
            (PartContent::Level(_), _) => Self::Names,
            (_, PartKind::Held) => Self::Unnamed,
            (_, PartKind::Cache) => Self::Cache,
            (_, PartKind::Context) => Self::Context,
            (_, PartKind::Others) => Self::Others,
            (_, PartKind::Free) => return None,
        })
    }

    /// It is drawn with stripes: whose it is nobody can say, or it is nobody's here.
    pub(super) const fn is_striped(self) -> bool {
        matches!(self, Self::Unnamed | Self::Others)
    }

    /// As people read it.
    pub const fn words(self) -> &'static str {
        match self {
            Self::Parameters => "parameters",
            Self::Gradients => "gradients",
            Self::Optimizer => "optimizer",
            Self::Graphs => "graphs",
            Self::Names => "your names",
            Self::Ipython => "IPython",
            Self::Unnamed => "unnamed",
            Self::Cache => "cache",
            Self::Context => "context",
            Self::Others => "other processes",
        }
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
