//! Readers of other programs' text.
//!
//! ```
//! use gpumem_core::read::oom::parse;
//!
//! assert!(parse("RuntimeError: CUDA error: out of memory").is_some());
//! ```

pub mod oom;
