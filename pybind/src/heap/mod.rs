//! Who holds memory: Python's heap as a graph of objects, read without running Python.
//!
//! Knows no cells and no runs, and of the machine only what a look takes itself and the simulated tensors.

pub(crate) mod adapters;
pub(crate) mod look;
pub(crate) mod still;
pub(crate) mod walk;
