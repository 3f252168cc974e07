//! Logs of `nvidia-smi`: `--query-gpu`, `--query-compute-apps` (both as CSV), `dmon`, `pmon`, the table, `-q` and
//! `-q -x`; and lines that other monitors derive from it.
//!
//! Logs grow for days and are put together by scripts: headers repeat or are absent, error lines stand
//! between readings, `PowerShell` writes UTF-16, and the last line may be cut. Lines that are no reading are
//! skipped and noted. A log without any level of memory is an error that says how to log one.
//!
//! ```
//! use gpumem_readers::nvidia_smi;
//! use gpumem_model::units::Bytes;
//!
//! let log = b"# gpu        pid  type    fb   command\n# Idx          #   C/G    MB   name\n\
//!     0       4211     C   800   python3\n    0          -     -     -   -\n";
//! let log = nvidia_smi::read(log)?;
//! let process = &log.devices[0].processes[0];
//! assert_eq!((process.pid, process.levels[0].series.peak), (4211, Bytes::mib(800)));
//!
//! let error = nvidia_smi::read(b"# gpu    sm   mem\n# Idx     %     %\n    0    12     3\n").unwrap_err();
//! assert!(error.to_string().contains("nvidia-smi dmon -s m"), "{error}");
//! # Ok::<(), nvidia_smi::NvidiaSmiError>(())
//! ```

mod columns;
mod decoded;
mod fault;
mod fields;
mod guess;
mod names;
mod prose;
mod quantity;
mod query;
mod row;
mod rows;
mod table;
mod xml;
pub use fault::{NvidiaSmiError, NvidiaSmiFault};
pub use guess::HeaderlessRows;

use super::level_log::LevelLog;
use columns::SmiColumns;
use decoded::DecodedText;

/// The name of an `nvidia-smi` log in a report.
pub const TITLE: &str = "nvidia-smi log";

/// The name of a log whose lines nvidia-smi did not write.
const TITLE_OF_OTHERS: &str = "log of GPU memory";

/// In logs of other monitors, at least one in this many lines has a level.
const N_LINES_A_READING: usize = 3;

/// What a text with this beginning logs, if it may be a log of `nvidia-smi`.
pub fn rows_in(head: &[u8]) -> Option<HeaderlessRows> {
    let decoded = DecodedText::new(head);
    let lines = decoded.lines();
    let is_theirs =
        |text: &str| table::is_theirs(text) || query::begins(text) || xml::is_theirs(text);
    let is_named = |text: &str| is_theirs(text) || SmiColumns::of_header(text).is_some();
    if lines.clone().any(|line| is_named(line.text)) {
        return Some(HeaderlessRows::Log);
    }
    let of_prose = lines.clone().filter(|it| prose::row(it.text).is_some());
    let n_lines = lines.clone().count();
    if of_prose.count() * N_LINES_A_READING >= n_lines.max(1) {
        return Some(HeaderlessRows::Log);
    }
    // The examined text may end inside a line.
    let whole = lines.take(n_lines.max(2) - 1);
    let rows: Vec<&str> = whole.map(|line| line.text).collect();
    guess::rows_are(&rows)
}

/// Reads a log.
///
/// # Errors
///
/// [`NvidiaSmiError`] if it has no level of memory, with the offset and what to log instead.
pub fn read(bytes: &[u8]) -> Result<LevelLog, NvidiaSmiError> {
    let decoded = DecodedText::new(bytes);
    rows::read(&decoded).map_err(|(at, what)| NvidiaSmiError {
        offset: decoded.offset_in_file(at).min(bytes.len()),
        what,
    })
}
