//! Chrome traces of PyTorch's profiler: `prof.export_chrome_trace(path)`, packed with gzip or not.
//!
//! Allocations and frees are instant events with the name `[memory]`. Since 2022 they have totals; before,
//! levels are relative to the trace's start. Events need not be in the order of time, and fields that were
//! not recorded are missing.
//!
//! ```
//! use gpumem_readers::cell_files::CellFiles;
//! use gpumem_readers::chrome_trace::summary;
//! use gpumem_model::units::{ByteDelta, Nanos};
//!
//! let file = br#"{"traceEvents": [
//!     {"ph": "X", "cat": "cpu_op", "name": "aten::ones", "pid": 1, "tid": 1, "ts": 10.5, "dur": 4},
//!     {"ph": "i", "name": "[memory]", "pid": 1, "tid": 1, "ts": 12, "args": {
//!         "Device Type": 1, "Device Id": 0, "Bytes": 512, "Total Allocated": 2560}}
//! ]}"#;
//! let summary = summary(file, &CellFiles::default())?;
//! let device = &summary.devices[0];
//! assert_eq!(device.device.to_string(), "cuda:0");
//! assert_eq!((device.at_start, device.peak), (ByteDelta::new(2048), ByteDelta::new(2560)));
//! assert_eq!(summary.operators[0].own, Nanos::new(4000));
//! assert_eq!(summary.operators[0].memory[0].kept, ByteDelta::new(512));
//! # Ok::<(), gpumem_readers::json_file::JsonError>(())
//! ```

mod device;
mod event;
mod explorer;
mod function;
mod kind;
mod level_series;
mod model;
mod names;
mod nesting;
mod operator_table;
mod operators;
mod owners;
mod range_rows;
mod read;
mod summary;
pub use device::TraceDevice;
pub use explorer::{TraceExplorer, TraceLevels};
pub use model::Worker;
pub use operator_table::{OperatorColumn, OperatorFigures, OperatorTable, OperatorView, RowKind};
pub use operators::{GroupBy, Operator, OperatorMemory};
pub use owners::OperatorOwner;
pub use range_rows::{RangeRow, range_rows};
pub use summary::{
    FailedAllocation, PeakPlace, RangeMemory, TraceDeviceLevels, TraceRange, TraceSummary,
};

use model::ChromeTrace;
use read::TraceSeed;

use super::cell_files::CellFiles;
use super::json_file::{self, JsonError};

/// Reads a trace's file and sums it up, with the names of cells in place of their files.
///
/// # Errors
///
/// [`JsonError`] if the file is damaged or not a trace, with the offset at which reading stopped.
pub fn summary(bytes: &[u8], cells: &CellFiles) -> Result<TraceSummary, JsonError> {
    Ok(TraceExplorer::open(bytes, cells)?.summary)
}

fn read_trace(bytes: &[u8], cells: &CellFiles) -> Result<ChromeTrace, JsonError> {
    let seed = || TraceSeed {
        file_size: bytes.len(),
    };
    let mut trace = json_file::read(bytes, seed)?;
    trace.name_functions(cells);
    Ok(trace)
}
