//! `libcuda.so.1` without a GPU, from the documented interface of the driver.
//!
//! Device memory is host memory that is mapped when it is touched. Kernels do
//! nothing and succeed, copies copy: whatever is computed is garbage. Handles are
//! numbers, never addresses, so a wrong one is an error and not a crash.

#![cfg(target_os = "linux")]
#![expect(unsafe_code, reason = "the driver's interface is C")]
#![expect(
    clippy::cast_possible_wrap,
    reason = "C's int holds every number of cards"
)]

#[macro_use]
mod calls;

mod attributes;
mod code;
mod contexts;
mod devices;
mod entry_points;
mod events;
mod functions;
mod graphs;
mod handles;
mod launches;
mod memory;
mod process;
mod streams;
mod unsupported;
