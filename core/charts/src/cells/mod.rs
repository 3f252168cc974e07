//! What each cell kept: one row per cell, and all cells over time, on one axis of runs.
//!
//! [`cells`] computes the data once; the scenes only lay it out for a width.

mod layout;
mod level;
mod marks;
mod name;
mod order;
mod over_time;
mod reading;
mod row;
mod row_scene;
mod slots;
#[cfg(test)]
mod tests;

use super::CellMeasure;
use super::device_view::{DeviceView, by_cell};
use gpumem_analyzer::{Analysis, Finding};
use gpumem_model::recording::{DeviceIdx, Recording, RunIdx};
use gpumem_model::units::{ByteDelta, Units};
use gpumem_scene::Scene;

pub use layout::CellLayout;
use level::CellPoint;
pub use order::HiddenRows;
pub use over_time::HoldingBand;
pub use reading::ended;
pub use row::CellRow;
pub use slots::Slots;

/// What the cells of a recording kept on one device.
#[derive(Debug, Clone)]
pub struct CellChart {
    /// A row for each cell: the worst finding first, then the largest total.
    pub rows: Vec<CellRow>,
    /// Where the runs are on the axis that all charts share.
    pub slots: Slots,
    /// The levels of the device, from left to right.
    levels: Vec<CellPoint>,
    /// Transient memory of runs: place, level after, and the peak above it.
    given_back: Vec<level::TransientUse>,
    /// The runs that ran out of memory.
    ooms: Vec<OomPlace>,
    /// The smallest limit that applies.
    capacity: Option<f64>,
    /// `In [3]`, of each slot.
    numbers: Vec<Option<u32>>,
    /// The last run goes on, and what it held since it began is not known.
    is_hatched: bool,
    /// The device's name.
    device: String,
    /// The levels of the session that this one is compared with, from first to last on the same axis.
    before: Vec<(f64, f64)>,
}

/// A run that ran out of memory.
#[derive(Debug, Clone, Copy)]
struct OomPlace {
    /// Where its slot is on the axis.
    at: f64,
    execution_count: Option<u32>,
}

impl CellChart {
    /// The row of a run's cell, with the position of the run among the cell's runs.
    pub fn find(&self, run: RunIdx) -> Option<(&CellRow, usize)> {
        self.rows.iter().find_map(|row| {
            let place = row.runs.binary_search(&run).ok()?;
            Some((row, place))
        })
    }

    /// The largest total, the scale of the bars.
    pub fn largest(&self) -> ByteDelta {
        let totals = self.rows.iter().map(|row| row.total);
        totals.max().unwrap_or_default().max(ByteDelta::ZERO)
    }

    /// Whether a run ran out of memory.
    pub fn has_oom(&self) -> bool {
        !self.ooms.is_empty()
    }

    /// The last run goes on, and is hatched: what it held since it began is not known.
    pub fn is_hatched(&self) -> bool {
        self.is_hatched
    }

    /// Compares all cells over time with another session, from its first run to its last.
    pub fn hold_against(&mut self, before: &Self) {
        let levels = before.levels.iter();
        let levels = levels.filter_map(|point| Some((point.at, point.level?.max(0.0))));
        self.before = levels.collect();
    }

    /// The chart of one row, that many pixels wide.
    pub fn row_scene(&self, row: &CellRow, width: f64, measure: CellMeasure) -> Scene {
        row_scene::scene(self, row, width, measure)
    }

    /// All cells over time, on a sheet as wide as the panel.
    pub fn over_time(&self, layout: CellLayout, units: Units) -> Scene {
        over_time::scene(self, layout, units)
    }

    /// What fills the device now, from the bottom to the top of the chart over time.
    pub fn bands(&self) -> Vec<HoldingBand> {
        over_time::bands(self)
    }
}

/// What each cell kept on a device.
pub fn cells(recording: &Recording, analysis: &Analysis, device: DeviceIdx) -> CellChart {
    let session = DeviceView::new(recording, analysis, device);
    let slots = Slots::new(&session);
    let worst = worst_findings(recording, analysis, device);
    let groups = by_cell(recording.cells().len(), session.runs());
    let mut rows: Vec<CellRow> = groups
        .iter()
        .map(|(cell, runs)| CellRow::new(&session, &slots, runs, worst[cell.get()]))
        .collect();
    order::sort(&mut rows);
    let runs = || slots.runs().iter().map(|run| recording.run(*run));
    let is_oom = |run: &&gpumem_model::recording::Run| {
        run.status == gpumem_model::recording::Status::OutOfMemory
    };
    let ooms = runs().filter(is_oom).map(|run| OomPlace {
        at: slots.middle(run.idx),
        execution_count: run.execution_count,
    });
    CellChart {
        levels: level::levels(&session, &slots, &rows),
        given_back: level::given_back(&session, &slots),
        ooms: ooms.collect(),
        capacity: session.capacity().map(gpumem_model::units::Bytes::as_f64),
        numbers: runs().map(|run| run.execution_count).collect(),
        is_hatched: runs()
            .next_back()
            .is_some_and(|run| run.ended.is_none() && !marks::has_steps(&session, run.idx)),
        device: session.device_label().to_owned(),
        before: Vec::new(),
        rows,
        slots,
    }
}

/// Of each cell, the worst finding about it on the device.
fn worst_findings<'a>(
    recording: &Recording,
    analysis: &'a Analysis,
    device: DeviceIdx,
) -> Vec<Option<&'a Finding>> {
    let mut worst = vec![None; recording.cells().len()];
    let here = |finding: &&Finding| finding.device == device && finding.withdrawn.is_none();
    for finding in analysis.findings.iter().filter(here) {
        let of_cell = finding.cell.as_ref().map(|cell| cell.idx);
        if let Some(place) = of_cell.and_then(|cell| worst.get_mut(cell.get())) {
            place.get_or_insert(finding);
        }
    }
    worst
}
