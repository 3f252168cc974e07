//! What the machine has and uses: levels of devices and of the host, read again and again, processes on the
//! GPUs, and the simulated device.
//!
//! Knows no cells and no runs, and not who holds memory.

pub(crate) mod out_of_memory;
pub(crate) mod processes;
pub(crate) mod sampler;
pub(crate) mod sim;
pub(crate) mod sources;
