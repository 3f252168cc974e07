//! What the reader looks at, and how events change it. Pure: no page, no clock.

use gpumem_core::analyze::Analysis;
use gpumem_core::chart::default_device;
use gpumem_core::recording::{CellIdx, DeviceIdx, Recording, RunIdx};

/// One of the two pictures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Chart {
    /// What each run kept.
    Growth,
    /// Levels over time.
    Timeline,
}

impl Chart {
    /// Both, from top to bottom.
    pub(crate) const ALL: [Self; 2] = [Self::Growth, Self::Timeline];

    /// The name in the page's `data-chart`.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Growth => "growth",
            Self::Timeline => "timeline",
        }
    }

    /// The chart of that name.
    pub(crate) fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|chart| chart.name() == name)
    }
}

/// What the reader has picked out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Choice {
    /// The runs that the finding of this id rests on.
    Finding(String),
    /// The runs of a cell.
    Cell(CellIdx),
}

/// What the reader looks at.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct State {
    /// Of the charts, in logical pixels.
    pub(crate) width: f64,
    /// The device that the charts show.
    pub(crate) device: DeviceIdx,
    /// The run that is read out, and the chart in which it was pointed at.
    pub(crate) hovered: Option<(Chart, RunIdx)>,
    /// What is picked out in the charts and cards.
    pub(crate) chosen: Option<Choice>,
}

/// Where the keyboard goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// To the run before.
    Back,
    /// To the run after.
    Forward,
    /// To the first run.
    First,
    /// To the last run.
    Last,
}

/// What the reader did.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Event {
    /// Pointed at a run of a chart, or at none.
    Pointed(Option<(Chart, RunIdx)>),
    /// Clicked a run, or beside the runs.
    Clicked(Option<RunIdx>),
    /// Moved along the runs of a chart, which are given in its order.
    Stepped(Chart, Step, Vec<RunIdx>),
    /// Pressed Escape.
    Cleared,
    /// Asked for the runs of a finding, or took that back.
    Toggled(String),
    /// Chose a device.
    Switched(DeviceIdx),
    /// Gave the charts another width, in logical pixels.
    Resized(f64),
}

impl State {
    /// The first look: the device of the worst finding, else the one that charts show first.
    pub(crate) fn new(recording: &Recording, analysis: &Analysis) -> Self {
        let worst = analysis.findings.first().map(|finding| finding.device);
        Self {
            width: 860.0,
            device: worst
                .or_else(|| default_device(recording, analysis))
                .unwrap_or_default(),
            hovered: None,
            chosen: None,
        }
    }

    /// The state after `event`.
    #[must_use]
    pub(crate) fn after(&self, event: Event, recording: &Recording, analysis: &Analysis) -> Self {
        let mut next = self.clone();
        match event {
            Event::Pointed(at) => next.hovered = at,
            Event::Clicked(run) => {
                let cell = run.map(|run| Choice::Cell(recording.run(run).cell));
                next.chosen = cell.filter(|cell| self.chosen.as_ref() != Some(cell));
            }
            Event::Stepped(chart, step, runs) => {
                next.hovered = self.stepped(step, &runs).map(|run| (chart, run));
            }
            Event::Cleared => {
                next.hovered = None;
                next.chosen = None;
            }
            Event::Toggled(id) => {
                let device = analysis.findings.iter().find(|finding| finding.id == id);
                next.device = device.map_or(self.device, |finding| finding.device);
                let choice = Choice::Finding(id);
                next.chosen = (self.chosen.as_ref() != Some(&choice)).then_some(choice);
            }
            Event::Switched(device) => {
                next.device = device;
                next.hovered = None;
            }
            Event::Resized(width) => next.width = width,
        }
        next
    }

    /// The runs that are picked out; empty when nothing is.
    pub(crate) fn selected(&self, recording: &Recording, analysis: &Analysis) -> Vec<RunIdx> {
        match &self.chosen {
            None => Vec::new(),
            Some(Choice::Finding(id)) => analysis
                .findings
                .iter()
                .find(|finding| finding.id == *id)
                .map_or_else(Vec::new, |finding| finding.runs.clone()),
            Some(Choice::Cell(cell)) => recording
                .runs()
                .iter()
                .filter(|run| run.cell == *cell)
                .map(|run| run.idx)
                .collect(),
        }
    }

    fn stepped(&self, step: Step, runs: &[RunIdx]) -> Option<RunIdx> {
        let last = runs.len().checked_sub(1)?;
        let at = self
            .hovered
            .and_then(|(_, hovered)| runs.iter().position(|run| *run == hovered));
        let idx = match (step, at) {
            (Step::First, _) | (Step::Forward, None) => 0,
            (Step::Last, _) | (Step::Back, None) => last,
            (Step::Back, Some(at)) => at.saturating_sub(1),
            (Step::Forward, Some(at)) => (at + 1).min(last),
        };
        Some(runs[idx])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::recording_of_runs;

    const RUNS: [RunIdx; 3] = [RunIdx(4), RunIdx(0), RunIdx(2)];

    fn looking_at(hovered: Option<u32>) -> State {
        let recording = recording_of_runs(&[0, 1, 0]);
        State {
            hovered: hovered.map(|run| (Chart::Growth, RunIdx(run))),
            ..State::new(&recording, &Analysis::default())
        }
    }

    fn after(state: &State, event: Event) -> State {
        state.after(event, &recording_of_runs(&[0, 1, 0]), &Analysis::default())
    }

    #[track_caller]
    fn check_step(from: Option<u32>, step: Step, expected: u32) {
        let stepped = after(
            &looking_at(from),
            Event::Stepped(Chart::Timeline, step, RUNS.to_vec()),
        );
        assert_eq!(stepped.hovered, Some((Chart::Timeline, RunIdx(expected))));
    }

    #[test]
    fn keys_move_in_the_order_of_the_chart_and_stay_inside() {
        check_step(None, Step::Forward, 4);
        check_step(None, Step::Back, 2);
        check_step(Some(4), Step::Forward, 0);
        check_step(Some(2), Step::Forward, 2);
        check_step(Some(0), Step::Back, 4);
        check_step(Some(4), Step::Back, 4);
        check_step(Some(0), Step::First, 4);
        check_step(Some(0), Step::Last, 2);
        check_step(Some(9), Step::Forward, 4);
    }

    #[test]
    fn a_chart_without_runs_has_nothing_to_step_to() {
        let event = Event::Stepped(Chart::Growth, Step::Forward, Vec::new());
        assert_eq!(after(&looking_at(None), event).hovered, None);
    }

    #[test]
    fn a_click_picks_the_runs_of_the_cell_and_the_next_one_drops_them() {
        let recording = recording_of_runs(&[0, 1, 0]);
        let clicked = after(&looking_at(None), Event::Clicked(Some(RunIdx(2))));
        let selected = clicked.selected(&recording, &Analysis::default());
        assert_eq!(selected, [RunIdx(0), RunIdx(2)]);
        assert_eq!(
            after(&clicked, Event::Clicked(Some(RunIdx(0)))).chosen,
            None
        );
        assert_eq!(after(&clicked, Event::Clicked(None)).chosen, None);
    }

    #[test]
    fn a_finding_that_is_withdrawn_selects_nothing() {
        let recording = recording_of_runs(&[0]);
        let chosen = after(&looking_at(None), Event::Toggled("gone".into()));
        assert_eq!(chosen.chosen, Some(Choice::Finding("gone".into())));
        assert!(chosen.selected(&recording, &Analysis::default()).is_empty());
    }

    #[test]
    fn escape_clears_what_is_read_out_and_what_is_picked() {
        let chosen = after(&looking_at(Some(0)), Event::Toggled("a".into()));
        let cleared = after(&chosen, Event::Cleared);
        assert_eq!((cleared.hovered, cleared.chosen), (None, None));
    }
}
