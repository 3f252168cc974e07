//! Readers of what other programs wrote: messages and files.
//!
//! ```
//! use gpumem_readers::oom::parse;
//!
//! assert!(parse("RuntimeError: CUDA error: out of memory").is_some());
//! ```
#![forbid(unsafe_code)]

pub mod cell_files;
pub mod chrome_trace;
pub mod code_line;
pub mod container;
pub mod device_profile;
pub mod json_file;
pub mod level_log;
pub mod memory_timeline;
pub mod nsight;
pub mod nvidia_smi;
pub mod oom;
pub mod pickle;
pub mod read_error;
pub mod stormlog;
pub mod torch_snapshot;
