//! What a process on a GPU is to this one.

/// What a process is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Kind {
    /// This process.
    Own,
    /// This process started it, or a child of its did.
    Child,
    /// Another kernel.
    Kernel,
    /// Started by another kernel.
    KernelsChild,
    /// A kernel whose server is gone: nobody talks to it any more.
    OrphanedKernel,
    /// A worker, or a part of a run, that outlived what started it.
    LeftOver,
    /// It has ended, and its parent has not taken note.
    Zombie,
    /// The driver lists it, and there is no such process: it has ended.
    Gone,
    /// Of another user, and hidden by the system.
    Hidden,
    /// Outside of this container: its id means nothing here.
    Outside,
    /// Any other.
    Process,
}

impl Kind {
    /// The name in Python.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Own => "own",
            Self::Child => "child",
            Self::Kernel => "kernel",
            Self::KernelsChild => "kernels_child",
            Self::OrphanedKernel => "orphaned_kernel",
            Self::LeftOver => "left_over",
            Self::Zombie => "zombie",
            Self::Gone => "gone",
            Self::Hidden => "hidden",
            Self::Outside => "outside",
            Self::Process => "process",
        }
    }

    /// Nobody seems to use it any more.
    pub const fn is_suspect(self) -> bool {
        matches!(
            self,
            Self::OrphanedKernel | Self::LeftOver | Self::Zombie | Self::Gone
        )
    }

    /// It still runs, so that it can be ended.
    pub const fn can_be_ended(self) -> bool {
        matches!(self, Self::OrphanedKernel | Self::LeftOver)
    }
}
