//! An interactive view of a trace: its levels over time, and its calls.

use super::level_series::TraceLevelSeries;
use super::model::ChromeTrace;
use super::nesting::Nesting;
use super::operator_table::OperatorTable;
use super::operators::{GroupBy, nanos};
use super::summary::{TraceSummary, by_peak, extent};
use crate::cell_files::CellFiles;
use crate::json_file::JsonError;
use gpumem_model::units::{ByteDelta, Nanos};

/// A trace with its summary, levels and nesting.
#[derive(Debug)]
pub struct TraceExplorer {
    /// Its figures.
    pub summary: TraceSummary,
    pub(super) trace: ChromeTrace,
    pub(super) nesting: Nesting,
    pub(super) all_series: Vec<TraceLevelSeries>,
    /// When it starts, as recorded.
    pub(super) start: i64,
}

/// A device's memory over time.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TraceLevels {
    /// Before the first change.
    pub at_start: ByteDelta,
    /// Time of each change after the trace's start, in order.
    pub times: Vec<Nanos>,
    /// Allocated after each change; relative to the trace's start if it has no totals.
    pub allocated: Vec<ByteDelta>,
    /// Reserved after each change; empty if it was not recorded.
    pub reserved: Vec<ByteDelta>,
}

impl TraceExplorer {
    /// Reads a trace's file, with the names of cells in place of their files.
    ///
    /// # Errors
    ///
    /// [`JsonError`] if the file is damaged or not a trace.
    pub fn open(bytes: &[u8], cells: &CellFiles) -> Result<Self, JsonError> {
        let trace = super::read_trace(bytes, cells)?;
        let nesting = Nesting::new(&trace);
        let all_series = by_peak(TraceLevelSeries::all(&trace));
        Ok(Self {
            summary: TraceSummary::new(&trace, &nesting, &all_series),
            start: extent(&trace).0,
            trace,
            nesting,
            all_series,
        })
    }

    /// The memory over time of a device, by its index in [`TraceSummary::devices`].
    pub fn levels(&self, device_idx: usize) -> TraceLevels {
        let Some(series) = self.all_series.get(device_idx) else {
            return TraceLevels::default();
        };
        let changes = || {
            let numbers = series.changes.iter();
            numbers.map(|number| &self.trace.changes[*number as usize])
        };
        let mut last = 0;
        let reserved = changes().map(|change| {
            last = change.reserved.unwrap_or(last);
            ByteDelta::new(i64::try_from(last).unwrap_or(i64::MAX))
        });
        let reserved: Vec<ByteDelta> = reserved.collect();
        let has_reserved = reserved.iter().any(|level| *level > ByteDelta::ZERO);
        let levels = series.levels().iter();
        TraceLevels {
            at_start: ByteDelta::new(series.at_start),
            times: changes().map(|change| self.after(change.at)).collect(),
            allocated: levels.map(|level| ByteDelta::new(*level)).collect(),
            reserved: if has_reserved { reserved } else { Vec::new() },
        }
    }

    /// Its operators and kernels in these groups, with their memory on one device.
    pub fn table(&self, by: GroupBy, device_idx: usize) -> OperatorTable {
        OperatorTable::new(self, by, device_idx)
    }

    /// Whether rows can be made of it.
    pub fn has(&self, by: GroupBy) -> bool {
        by == GroupBy::Name || !self.summary.operators_by(by).is_empty()
    }

    /// Numbers of a device's changes.
    pub(super) fn changes(&self, device_idx: usize) -> impl Iterator<Item = u32> {
        let series = self.all_series.get(device_idx);
        series
            .into_iter()
            .flat_map(|series| series.changes.iter().copied())
    }

    pub(super) fn after(&self, at: i64) -> Nanos {
        nanos(at.saturating_sub(self.start))
    }
}

impl TraceLevels {
    /// Number of changes until an instant.
    fn n_until(&self, at: Nanos) -> usize {
        self.times.partition_point(|time| *time <= at)
    }

    /// Allocated at an instant.
    pub fn allocated_at(&self, at: Nanos) -> ByteDelta {
        let last = self.n_until(at).checked_sub(1);
        last.and_then(|last| self.allocated.get(last).copied())
            .unwrap_or(self.at_start)
    }

    /// Reserved at an instant, if it was recorded before.
    pub fn reserved_at(&self, at: Nanos) -> Option<ByteDelta> {
        let last = self.n_until(at).checked_sub(1)?;
        self.reserved.get(last).copied()
    }
}
