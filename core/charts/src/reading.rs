//! The readout of the run under the pointer.

/// The readout of a run.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RunDescription {
    /// `In [47]`.
    pub place: String,
    /// The cell's name.
    pub name: String,
    /// `run 11 of 16: kept +120 MiB, 1.29 GiB so far; gave back 60 MiB; all cells 8.73 GiB`.
    pub words: String,
}
