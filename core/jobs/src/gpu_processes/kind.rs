//! The relation of a process on a GPU to this one.

use gpumem_model::named;

named! {
    /// The relation of a process to this one.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum ProcessKind {
        /// This process.
        Own = "own",
        /// Started by this process, or by a child of it.
        Child = "child",
        /// Another kernel.
        Kernel = "kernel",
        /// Started by another kernel.
        KernelsChild = "kernels_child",
        /// A kernel whose server is gone, so nobody can talk to it.
        OrphanedKernel = "orphaned_kernel",
        /// A worker, or a part of a run, that outlived the process that started it.
        LeftOver = "left_over",
        /// It has ended, but its parent has not reaped it.
        Zombie = "zombie",
        /// The driver lists it, but there is no such process.
        Gone = "gone",
        /// It belongs to another user, and the system hides it.
        Hidden = "hidden",
        /// Outside this container, where its id means nothing.
        Outside = "outside",
        /// Any other process.
        Process = "process",
    }
}

impl ProcessKind {
    /// Whether it seems unused.
    pub const fn is_suspect(self) -> bool {
        matches!(
            self,
            Self::OrphanedKernel | Self::LeftOver | Self::Zombie | Self::Gone
        )
    }

    /// Whether it still runs, so that the user can end it.
    pub const fn can_be_ended(self) -> bool {
        matches!(self, Self::OrphanedKernel | Self::LeftOver)
    }
}
