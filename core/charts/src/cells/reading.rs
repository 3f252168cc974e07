//! The readout of a run under the pointer, in the heads of the columns.

use super::super::reading::RunDescription;
use super::CellChart;
use gpumem_model::recording::{RunIdx, Status};
use gpumem_model::units::{ByteDelta, Units};
use gpumem_wording::together;

impl CellChart {
    /// The readout of a run; `None` if it is not on the axis.
    pub fn reading(&self, run: RunIdx, units: Units) -> Option<RunDescription> {
        let (row, place) = self.find(run)?;
        let mark = &row.marks[place];
        let size = |n_bytes: f64| units.size(ByteDelta::from_f64(n_bytes).magnitude());
        let change = |n_bytes: f64| units.change(ByteDelta::from_f64(n_bytes));
        let of = match row.runs.len() {
            1 => String::new(),
            n => format!("run {} of {n}: ", place + 1),
        };
        let kept = match mark.kept {
            None => "what it kept is not known".to_owned(),
            Some(kept) if place == 0 => format!("kept {}", change(kept)),
            Some(kept) => format!("kept {}, {} so far", change(kept), size(mark.so_far)),
        };
        let mut parts = vec![format!("{of}{kept}")];
        let together = mark
            .overlap
            .map(|it| together(it.moved, "other runs", units));
        parts.extend(together);
        if mark.back > 0.0 {
            parts.push(format!("gave back {}", size(mark.back)));
        }
        let until = self
            .levels
            .partition_point(|point| point.at <= mark.extent.1);
        let level = self.levels[..until].last().and_then(|point| point.level);
        parts.extend(level.map(|level| format!("all cells {}", size(level))));
        parts.extend(ended(mark.status).map(str::to_owned));
        let number = self.slots.place(run).and_then(|place| self.numbers[place]);
        Some(RunDescription {
            place: number.map_or_else(|| format!("run {}", run.0 + 1), |n| format!("In [{n}]")),
            name: row.name.clone(),
            words: parts.join("; "),
        })
    }
}

/// The text about a run that failed or has not ended.
pub const fn ended(status: Status) -> Option<&'static str> {
    match status {
        Status::Ok => None,
        Status::Running => Some("it goes on"),
        Status::Error => Some("it failed"),
        Status::Interrupted => Some("interrupted"),
        Status::OutOfMemory => Some("out of memory"),
        Status::Died => Some("the kernel died"),
    }
}
