//! M4 reduction.
