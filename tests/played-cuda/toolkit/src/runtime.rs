//! `libcudart.so`: the documented runtime over the driver's interface.

mod capture;
mod current;
mod devices;
mod kernels;
mod memory;
mod pointers;
mod properties;
mod streams;
mod symbols;

pub(crate) use current::{ready, started};
