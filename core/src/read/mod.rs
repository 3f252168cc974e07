//! What others wrote, as figures and events. Reading is tolerant and never panics.

pub mod oom;
