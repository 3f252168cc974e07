//! What each cell kept: a row for each, and all of them over time, on one axis of runs.
//!
//! [`cells`] decides once what is known of each cell; the scenes only place it at a width.

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

use super::Measure;
use super::device_view::{DeviceView, by_cell};
use gpumem_analyzer::{Analysis, Finding};
use gpumem_model::recording::{DeviceIdx, Recording, RunIdx};
use gpumem_model::units::{ByteDelta, Units};
use gpumem_scene::Scene;

pub use layout::Layout;
use level::LevelPoint;
pub use order::Rest;
pub use over_time::Band;
pub use reading::ended;
pub use row::CellRow;
pub use slots::Slots;

/// What the cells of a recording kept on one device.
#[derive(Debug, Clone)]
pub struct Cells {
    /// A row for each cell: the worst finding first, then the largest total.
    pub rows: Vec<CellRow>,
    /// Where the runs are on the axis that all charts share.
    pub slots: Slots,
    /// The levels of the device, from left to right.
    levels: Vec<LevelPoint>,
    /// What runs gave back by their ends: place, level after, and the peak above it.
    given_back: Vec<level::GivenBack>,
    /// The runs that ran out of memory.
    ooms: Vec<Oom>,
    /// The smallest limit that applies.
    capacity: Option<f64>,
    /// `In [3]`, of each slot.
    numbers: Vec<Option<u32>>,
    /// The last run goes on, and what it held since it began is not known.
    is_hatched: bool,
    /// The device as people write it.
    device: String,
    /// The levels of the session that this one is held against: from first to last on the same axis.
    before: Vec<(f64, f64)>,
}

/// A run that ran out of memory.
#[derive(Debug, Clone, Copy)]
struct Oom {
    /// Where its slot is on the axis.
    at: f64,
    execution_count: Option<u32>,
}

impl Cells {
    /// The row of a run's cell, with the position of the run among the cell's runs.
    pub fn find(&self, run: RunIdx) -> Option<(&CellRow, usize)> {
        self.rows.iter().find_map(|row| {
            let place = row.runs.binary_search(&run).ok()?;
            Some((row, place))
        })
    }

    /// The largest total: what a bar to scale is measured by.
    pub fn largest(&self) -> ByteDelta {
        let totals = self.rows.iter().map(|row| row.total);
        totals.max().unwrap_or_default().max(ByteDelta::ZERO)
    }

    /// A run ran out of memory.
    pub fn has_oom(&self) -> bool {
        !self.ooms.is_empty()
    }

    /// The last run goes on, and is hatched: what it held since it began is not known.
    pub fn is_hatched(&self) -> bool {
        self.is_hatched
    }

    /// Holds all cells over time against those of another session, from its first run to its last.
    pub fn hold_against(&mut self, before: &Self) {
        let levels = before.levels.iter();
        let levels = levels.filter_map(|point| Some((point.at, point.level?.max(0.0))));
        self.before = levels.collect();
    }

    /// The chart of one row, that many pixels wide.
    pub fn row_scene(&self, row: &CellRow, width: f64, measure: Measure) -> Scene {
        row_scene::scene(self, row, width, measure)
    }

    /// All cells over time, on a sheet as wide as the panel.
    pub fn over_time(&self, layout: Layout, units: Units) -> Scene {
        over_time::scene(self, layout, units)
    }

    /// What fills the device now, from the bottom to the top of the chart over time.
    pub fn bands(&self) -> Vec<Band> {
        over_time::bands(self)
    }
}

/// What each cell kept on a device.
pub fn cells(recording: &Recording, analysis: &Analysis, device: DeviceIdx) -> Cells {
    let session = DeviceView::new(recording, analysis, device);
    let slots = Slots::of(&session);
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
    let ooms = runs().filter(is_oom).map(|run| Oom {
        at: slots.middle(run.idx),
        execution_count: run.execution_count,
    });
    Cells {
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
