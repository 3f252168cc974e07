//! What the machine has and uses: levels of devices and of the host, read again and again, processes on the
//! GPUs, and the simulated device.
//!
//! Knows no cells and no runs, and not who holds memory.

pub mod out_of_memory;
pub mod processes;
pub mod sampler;
pub mod sim;
pub mod sources;
