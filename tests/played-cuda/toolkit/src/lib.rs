//! The libraries of the CUDA toolkit, as far as torch needs more of them than a status.
//!
//! This archive has the functions of all of them. `cargo xtask test cuda` links from it
//! the libraries that a wheel names, with the version that it gives their symbols, and
//! adds stubs for the functions that are not here.

#![cfg(target_os = "linux")]
#![expect(unsafe_code, reason = "the libraries' interfaces are C")]
#![expect(
    clippy::cast_possible_wrap,
    reason = "C declares the same small numbers with either sign"
)]

#[macro_use]
mod calls;

mod cublas;
mod cublas_lt;
mod cupti;
mod driver;
mod error;
mod runtime;
mod version;
