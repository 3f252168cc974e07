//! The relation of a process on a GPU to this one.

/// The relation of a process to this one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Kind {
    /// This process.
    Own,
    /// Started by this process, or by a child of it.
    Child,
    /// Another kernel.
    Kernel,
    /// Started by another kernel.
    KernelsChild,
    /// A kernel whose server is gone, so nobody can talk to it.
    OrphanedKernel,
    /// A worker, or a part of a run, that outlived the process that started it.
    LeftOver,
    /// It has ended, but its parent has not reaped it.
    Zombie,
    /// The driver lists it, but there is no such process.
    Gone,
    /// It belongs to another user, and the system hides it.
    Hidden,
    /// Outside this container, where its id means nothing.
    Outside,
    /// Any other process.
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

    /// It seems to serve nobody.
    pub const fn is_suspect(self) -> bool {
        matches!(
            self,
            Self::OrphanedKernel | Self::LeftOver | Self::Zombie | Self::Gone
        )
    }

    /// It still runs, so the user can end it.
    pub(crate) const fn can_be_ended(self) -> bool {
        matches!(self, Self::OrphanedKernel | Self::LeftOver)
    }
}
