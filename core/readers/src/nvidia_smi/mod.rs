//! Logs of `nvidia-smi`: `--query-gpu`, `--query-compute-apps` (both as CSV), `dmon`, `pmon`, the table, `-q` and
//! `-q -x`; and lines that other monitors made of its figures.
//!
//! Logs grow for days and are put together by scripts: headers repeat or are absent, lines of errors stand
//! between readings, `PowerShell` writes UTF-16, and the last line may be cut. What is no reading is passed
//! over and noted. A log without any level of memory is an error that says how to log one.
//!
//! ```
//! use gpumem_readers::nvidia_smi;
//! use gpumem_model::units::Bytes;
//!
//! let log = b"# gpu        pid  type    fb   command\n# Idx          #   C/G    MB   name\n\
//!     0       4211     C   800   python3\n    0          -     -     -   -\n";
//! let log = nvidia_smi::read(log)?;
//! let process = &log.devices[0].processes[0];
//! assert_eq!((process.pid, process.levels[0].course.peak), (4211, Bytes::mib(800)));
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
pub use guess::Rows;

use super::level_log::LevelLog;
use columns::Columns;
use decoded::Decoded;

/// What a log of `nvidia-smi` is called in a report.
pub const TITLE: &str = "nvidia-smi log";

/// What a log is called whose lines nvidia-smi did not write.
const TITLE_OF_OTHERS: &str = "log of GPU memory";

/// Of so many lines one has a level, if other monitors wrote them.
const N_LINES_A_READING: usize = 3;

/// What the rows of a text with this beginning are, if they may be a log of `nvidia-smi`.
pub fn rows_in(head: &[u8]) -> Option<Rows> {
    let decoded = Decoded::of(head);
    let mut lines = decoded.lines();
    let is_theirs =
        |text: &str| table::is_theirs(text) || query::begins(text) || xml::is_theirs(text);
    let is_named = |text: &str| is_theirs(text) || Columns::of_header(text).is_some();
    if lines.clone().any(|line| is_named(line.text)) {
        return Some(Rows::Log);
    }
    let n_of_prose = lines
        .clone()
        .filter(|line| prose::row(line.text).is_some())
        .count();
    if n_of_prose * N_LINES_A_READING >= lines.clone().count().max(1) {
        return Some(Rows::Log);
    }
    // The look may end inside a line.
    let n_lines = decoded.lines().count().max(2) - 1;
    let mut rows = Vec::new();
    rows.extend(lines.by_ref().take(n_lines).map(|line| line.text));
    guess::rows_are(&rows)
}

/// Reads a log.
///
/// # Errors
///
/// [`NvidiaSmiError`] if it has no level of memory, with the offset and what to log instead.
pub fn read(bytes: &[u8]) -> Result<LevelLog, NvidiaSmiError> {
    let decoded = Decoded::of(bytes);
    rows::read(&decoded).map_err(|(at, what)| NvidiaSmiError {
        offset: decoded.offset_in_file(at).min(bytes.len()),
        what,
    })
}
