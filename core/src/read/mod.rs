//! Readers of what other programs wrote: messages and files.
//!
//! ```
//! use gpumem_core::read::oom::parse;
//!
//! assert!(parse("RuntimeError: CUDA error: out of memory").is_some());
//! ```

pub mod chrome_trace;
pub mod file_kind;
pub mod json_file;
pub mod memory_timeline;
pub mod oom;
pub mod pickle;
pub mod torch_snapshot;
