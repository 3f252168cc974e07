//! Who holds memory: Python's heap as a graph of objects, read without running Python.
//!
//! Knows no cells and no runs, and of the machine only what a look takes itself and the simulated tensors.

pub mod adapters;
pub mod look;
pub mod still;
pub mod walk;
