//! The libraries of the CUDA toolkit, as far as torch needs more of them than a status.
//!
//! This archive has the functions of all of them. `cargo xtask test cuda` links from it
//! the libraries that a wheel names, with the version that it gives their symbols, and
//! adds stubs for the functions that are not here.

#![expect(unsafe_code, reason = "the libraries' interfaces are C")]

#[macro_use]
mod calls;

mod cublas;
mod cublas_lt;
mod cupti;
mod driver;
mod error;
mod runtime;
mod version;
