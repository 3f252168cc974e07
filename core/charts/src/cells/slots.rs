//! The axis that all charts of cells share: one slot for each run, in the order begun.

use super::super::device_view::DeviceView;
use super::marks;
use gpumem_model::recording::{Run, RunIdx};

/// What a run with steps takes.
const WITH_STEPS: f64 = 8.0;
/// What a run that goes on takes at least, as a share of all others: it must be seen.
const RUNNING: f64 = 0.05;

/// Where runs are on the axis, from 0 to 1.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Slots {
    runs: Vec<RunIdx>,
    /// Where each begins, and where the last ends, in slots.
    edges: Vec<f64>,
}

impl Slots {
    pub(super) fn new(session: &DeviceView<'_>) -> Self {
        let mut slots = Self::default();
        let mut end = 0.0;
        slots.edges.push(end);
        for run in session.runs() {
            end += width(session, run, end);
            slots.runs.push(run.idx);
            slots.edges.push(end);
        }
        slots
    }

    /// The runs, from left to right.
    pub fn runs(&self) -> &[RunIdx] {
        &self.runs
    }

    /// The run at a share of the axis.
    pub fn run_at(&self, share: f64) -> Option<RunIdx> {
        let at = share * self.total();
        let place = self.edges.partition_point(|edge| *edge <= at);
        let place = place
            .saturating_sub(1)
            .min(self.runs.len().saturating_sub(1));
        self.runs.get(place).copied()
    }

    /// Where a run's slot begins and ends; both at the end if it has none.
    pub fn extent(&self, run: RunIdx) -> (f64, f64) {
        let place = self.place(run).unwrap_or(self.runs.len());
        let edge = |idx: usize| self.edges.get(idx).copied().unwrap_or(self.total());
        (edge(place) / self.total(), edge(place + 1) / self.total())
    }

    /// The middle of a run's slot, where what it kept is drawn.
    pub fn middle(&self, run: RunIdx) -> f64 {
        let (left, right) = self.extent(run);
        f64::midpoint(left, right)
    }

    pub(super) fn place(&self, run: RunIdx) -> Option<usize> {
        self.runs.binary_search(&run).ok()
    }

    fn total(&self) -> f64 {
        self.edges.last().copied().unwrap_or_default().max(1.0)
    }
}

fn width(session: &DeviceView<'_>, run: &Run, before: f64) -> f64 {
    let least = if marks::has_steps(session, run.idx) {
        WITH_STEPS
    } else {
        1.0
    };
    if run.ended.is_none() {
        least.max(RUNNING * before)
    } else {
        least
    }
}
