//! What all of the extension may use: Python, threads, files, text and failures of our own.
//!
//! Knows no memory but gpumem's own.

pub mod call_stacks;
pub mod clock;
pub mod cpu_time;
pub mod errors;
pub mod files;
pub mod gil;
pub mod guard;
pub mod interrupt;
pub mod locks;
pub mod modules;
#[cfg(target_os = "linux")]
pub mod own_memory;
#[cfg(target_os = "linux")]
pub mod pages;
#[cfg(target_os = "linux")]
pub mod process_status;
pub mod shells;
pub mod slots;
pub mod strand;
pub mod text;
pub mod threads;
