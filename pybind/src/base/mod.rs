//! What every wing may use: Python, threads, files, text and failures of our own.
//!
//! Knows no memory but gpumem's own.

/// A Python dict of these names and values.
macro_rules! dict {
    ($py:expr, { $($name:literal: $value:expr),+ $(,)? }) => {{
        let dict = pyo3::types::PyDict::new($py);
        $(dict.set_item($name, $value)?;)+
        dict
    }};
}
pub(crate) use dict;

pub(crate) mod call_stacks;
pub(crate) mod clock;
pub(crate) mod cpu_time;
pub(crate) mod errors;
pub(crate) mod files;
pub(crate) mod gil;
pub(crate) mod guard;
pub(crate) mod interrupt;
pub(crate) mod locks;
pub(crate) mod modules;
#[cfg(target_os = "linux")]
pub(crate) mod own_memory;
#[cfg(target_os = "linux")]
pub(crate) mod pages;
#[cfg(target_os = "linux")]
pub(crate) mod process_status;
pub(crate) mod shells;
pub(crate) mod slots;
pub(crate) mod strand;
pub(crate) mod text;
pub(crate) mod threads;
