//! What the parts of a device are called.

mod composition;
mod gaps;
