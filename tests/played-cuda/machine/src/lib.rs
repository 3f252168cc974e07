//! The machine that the played NVIDIA libraries show: its cards, who uses them,
//! and which calls are to fail.
//!
//! A text file describes it ([`State`]). What processes have allocated stands in
//! a file beside it ([`ledger`]), which they share.

#![cfg(target_os = "linux")]
#![expect(unsafe_code, reason = "the libraries' interfaces are C")]

mod answer;
mod call;
mod code;
mod device;
pub mod ledger;
mod process;
mod state;
mod uuid;
mod visible;

pub use answer::{Fault, put, put_text, read, read_text};
pub use call::{Call, Failure};
pub use code::CodeName;
pub use device::{Device, MAX_GPUS, MAX_PARTS, gpus};
pub use process::{Process, processes};
pub use state::State;
pub use uuid::bytes as uuid_bytes;
pub use visible::visible;
