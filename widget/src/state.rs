//! What the reader looks at, and how events change it. Pure: no page, no clock.

use std::collections::HashSet;

use gpumem_analyzer::Analysis;
use gpumem_charts::{Layers, Measure, Moment, Pace, default_device};
use gpumem_model::named;
use gpumem_model::recording::{CellIdx, DeviceIdx, LoopIdx, Recording, RunIdx};
use gpumem_model::units::{Nanos, Units};
use gpumem_scene::Target;

named! {
    /// One of the pictures, or a row of them.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub(crate) enum Chart {
        /// What one cell kept.
        Row = "row",
        /// What one run held, over its iterations.
        Run = "run",
        /// What all cells kept, over time.
        Cells = "cells",
        /// What fills the device.
        Now = "now",
        /// Levels over time, as they were sampled.
        Timeline = "timeline",
        /// The whole session, and the part of it that is looked at.
        Minimap = "minimap",
        /// Who holds what.
        Holders = "holders",
    }
}

impl Chart {
    /// It has time to zoom into.
    pub(crate) const fn has_time(self) -> bool {
        matches!(self, Self::Timeline | Self::Minimap)
    }

    /// Where the runs of this chart are found again.
    pub(crate) const fn other(self) -> Self {
        match self {
            Self::Timeline | Self::Minimap => Self::Cells,
            _ => Self::Timeline,
        }
    }

    /// The fold that it is in.
    pub(crate) const fn fold(self) -> Option<Fold> {
        match self {
            Self::Timeline | Self::Minimap => Some(Fold::Settings),
            Self::Holders => Some(Fold::Map),
            _ => None,
        }
    }
}

named! {
    /// What is closed until somebody opens it.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub(crate) enum Fold {
        /// Who holds what.
        Map = "map",
        /// Every finding in full.
        Findings = "findings",
        /// Every run in a line.
        Runs = "runs",
        /// Units, thresholds, and the samples over time.
        Settings = "settings",
    }
}

/// What is pointed at, and in which chart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Pointed {
    /// Where the pointer or the keyboard is.
    pub(crate) chart: Chart,
    /// What is there.
    pub(crate) target: Target,
    /// The instant under the pointer, where the chart has time.
    pub(crate) at: Option<Nanos>,
}

impl Pointed {
    /// The run that is pointed at.
    pub(crate) fn run(self) -> Option<RunIdx> {
        match self.target {
            Target::Run(run) => Some(run),
            _ => None,
        }
    }

    /// The place of the field of the map that is pointed at.
    pub(crate) fn field(self) -> Option<usize> {
        match self.target {
            Target::Field(idx) => Some(idx),
            _ => None,
        }
    }
}

/// What the reader has picked out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Choice {
    /// The runs that the finding of this id rests on.
    Finding(String),
    /// The runs of a cell.
    Cell(CellIdx),
    /// The runs of the cells whose source holds this text.
    Search(String),
}

/// From when to when.
pub(crate) type Span = (Nanos, Nanos);

named! {
    /// One of the things that the timeline draws.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub(crate) enum Layer {
        /// The use of every process.
        Device = "device",
        /// This process's use.
        Process = "process",
        /// What growth is judged on.
        Held = "allocated",
        /// Peaks.
        Peaks = "peaks",
    }
}

impl Layer {
    /// As people read it.
    pub(crate) const fn words(self) -> &'static str {
        match self {
            Self::Device => "the device, sampled",
            Self::Process => "this process, sampled",
            Self::Held => "allocated",
            Self::Peaks => "peaks",
        }
    }

    /// Whether it is drawn.
    pub(crate) fn of(self, layers: &mut Layers) -> &mut bool {
        match self {
            Self::Device => &mut layers.device,
            Self::Process => &mut layers.process,
            Self::Held => &mut layers.held,
            Self::Peaks => &mut layers.peaks,
        }
    }
}

/// What the reader looks at.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct State {
    /// Of the charts, in logical pixels.
    pub(crate) width: f64,
    /// The device that the charts show.
    pub(crate) device: DeviceIdx,
    /// What is read out.
    pub(crate) pointed: Option<Pointed>,
    /// What is picked out in the charts and cards.
    pub(crate) chosen: Option<Choice>,
    /// The part of the time that is looked at; `None` for all.
    pub(crate) span: Option<Span>,
    /// What the rows show.
    pub(crate) measure: Measure,
    /// The folds that are open.
    pub(crate) folds: Vec<Fold>,
    /// Every row is shown, not only the first.
    pub(crate) all_rows: bool,
    /// The row that is open.
    pub(crate) row: Option<CellIdx>,
    /// The loop whose iterations are the axis of its long run; `None` for the one that tells most.
    pub(crate) in_loop: Option<LoopIdx>,
    /// How the runs are sorted.
    pub(crate) order: Order,
    /// How the timeline deals with pauses.
    pub(crate) pace: Pace,
    /// What the timeline draws.
    pub(crate) layers: Layers,
    /// Of what the map of holders tells.
    pub(crate) moment: Moment,
    /// The fields that the map of holders is inside of, outermost first.
    pub(crate) inside: Vec<String>,
    /// How sizes are shown.
    pub(crate) units: Units,
    /// The ids of the findings that the reader is done with.
    pub(crate) dismissed: Vec<String>,
    /// The first of the findings that the verdict opens; `None` for the worst.
    pub(crate) opened: Option<String>,
    /// It is opened in full.
    pub(crate) in_full: bool,
    /// The sign of the findings that are listed below the verdict's first lines.
    pub(crate) listed: Option<String>,
    /// What was dismissed last, and can be taken back in its place.
    pub(crate) undo: Vec<String>,
    /// The list of keys is shown.
    pub(crate) help: bool,
}

/// How the table of runs is sorted: by the column of that place, and whether the largest is first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Order {
    /// From the left, from 0; the first is the order in which they ran.
    pub(crate) column: usize,
    /// From the smallest.
    pub(crate) is_rising: bool,
}

/// Where the keyboard goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// To the one before.
    Back,
    /// To the one after.
    Forward,
    /// To the first.
    First,
    /// To the last.
    Last,
}

/// What the reader did.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Event {
    /// Pointed at something, or at nothing.
    Pointed(Option<Pointed>),
    /// Clicked a run, or beside the runs.
    Clicked(Option<RunIdx>),
    /// Moved along what a chart shows, which is given in its order.
    Stepped(Chart, Step, Vec<Target>),
    /// Went to the place of the run in the other chart.
    Crossed,
    /// Pressed Escape.
    Cleared,
    /// Asked for the runs of a finding, or took that back.
    Toggled(String),
    /// Is done with these findings.
    Dismissed(Vec<String>),
    /// Wants those back that were dismissed last.
    Undone,
    /// Opened a finding of the verdict, in full or to its fix.
    Opened(String, bool),
    /// Lists the findings of a sign, or no longer.
    Listed(String),
    /// Wants the dismissed findings back.
    Restored,
    /// Looks for cells whose source holds a text.
    Searched(String),
    /// Chose a device.
    Switched(DeviceIdx),
    /// Looks at a part of the time, or at all of it.
    Zoomed(Option<Span>),
    /// Chose what the rows show.
    Measured(Measure),
    /// Opened or closed a fold.
    Folded(Fold),
    /// Opened a row, or closed it.
    OpenedRow(CellIdx),
    /// Chose the loop whose iterations are shown.
    ChoseLoop(LoopIdx),
    /// Wants every row, or only the first.
    ShowedRows,
    /// Sorts the runs by a column, or the other way round.
    Sorted(usize),
    /// Chose how time runs.
    Paced(Pace),
    /// Chose of what the map of holders tells.
    Looked(Moment),
    /// Went into a field of the map, or out of one, and points at the field of that place.
    Entered(Vec<String>, Option<usize>),
    /// Shows or hides a layer.
    Drew(Layer, bool),
    /// Asked for the list of keys, or has read it.
    Helped(bool),
    /// Gave the charts another width, in logical pixels.
    Resized(f64),
}

impl State {
    /// The first look: the device of the worst finding, else the one that charts show first.
    pub(crate) fn new(recording: &Recording, analysis: &Analysis) -> Self {
        Self {
            width: 860.0,
            device: default_device(recording, analysis).unwrap_or_default(),
            pointed: None,
            chosen: None,
            span: None,
            measure: Measure::default(),
            folds: Vec::new(),
            all_rows: false,
            row: None,
            in_loop: None,
            order: Order::default(),
            pace: Pace::default(),
            layers: Layers::default(),
            moment: Moment::default(),
            inside: Vec::new(),
            units: Units::default(),
            dismissed: Vec::new(),
            opened: None,
            in_full: false,
            listed: None,
            undo: Vec::new(),
            help: false,
        }
    }

    /// The state after `event`.
    #[must_use]
    pub(crate) fn after(&self, event: Event, recording: &Recording, analysis: &Analysis) -> Self {
        let mut next = self.clone();
        match event {
            Event::Pointed(at) => next.pointed = at,
            Event::Clicked(run) => {
                let cell = run.map(|run| Choice::Cell(recording.run(run).cell));
                next.chosen = cell.filter(|cell| self.chosen.as_ref() != Some(cell));
            }
            Event::Stepped(chart, step, targets) => {
                next.pointed = self.stepped(step, &targets).map(|target| Pointed {
                    chart,
                    target,
                    at: None,
                });
            }
            Event::Crossed => {
                if let Some(pointed) = &mut next.pointed {
                    pointed.chart = pointed.chart.other();
                    pointed.at = None;
                    let fold = pointed.chart.fold();
                    next.unfold(fold);
                }
            }
            Event::Cleared => {
                next.pointed = None;
                next.chosen = None;
                next.row = None;
                next.help = false;
            }
            Event::Toggled(id) => {
                next.device = analysis
                    .finding(&id)
                    .map_or(self.device, |finding| finding.device);
                let choice = Choice::Finding(id);
                next.chosen = (self.chosen.as_ref() != Some(&choice)).then_some(choice);
            }
            Event::Dismissed(ids) => {
                let is_chosen =
                    |choice: &Choice| matches!(choice, Choice::Finding(id) if ids.contains(id));
                next.chosen = self.chosen.clone().filter(|choice| !is_chosen(choice));
                if self.opened.as_ref().is_some_and(|id| ids.contains(id)) {
                    (next.opened, next.in_full) = (None, false);
                }
                next.dismissed.extend(ids.iter().cloned());
                next.undo = ids;
            }
            Event::Undone => {
                next.dismissed.retain(|id| !self.undo.contains(id));
                next.undo.clear();
            }
            Event::Restored => {
                next.dismissed.clear();
                next.undo.clear();
            }
            Event::Opened(id, in_full) => (next.opened, next.in_full) = (Some(id), in_full),
            Event::Listed(sign) => {
                next.listed = (self.listed.as_ref() != Some(&sign)).then_some(sign);
            }
            Event::Searched(text) => {
                let text = text.trim().to_owned();
                next.chosen = (!text.is_empty()).then_some(Choice::Search(text));
            }
            Event::Switched(device) => {
                next.device = device;
                next.pointed = None;
                next.inside.clear();
            }
            Event::Zoomed(span) => next.span = span.filter(|(from, to)| from < to),
            Event::Measured(measure) => next.measure = measure,
            Event::Folded(fold) if self.is_open(fold) => next.folds.retain(|open| *open != fold),
            Event::Folded(fold) => next.unfold(Some(fold)),
            Event::OpenedRow(cell) => {
                next.row = (self.row != Some(cell)).then_some(cell);
                next.in_loop = None;
            }
            Event::ChoseLoop(idx) => next.in_loop = Some(idx),
            Event::ShowedRows => next.all_rows = !self.all_rows,
            Event::Sorted(column) => {
                let is_rising = self.order.column == column && !self.order.is_rising;
                next.order = Order { column, is_rising };
            }
            Event::Paced(pace) => next.pace = pace,
            Event::Looked(moment) => {
                next.moment = moment;
                next.inside.clear();
                next.pointed = self.pointed.filter(|pointed| pointed.field().is_none());
            }
            Event::Entered(inside, field) => {
                next.inside = inside;
                next.unfold(Some(Fold::Map));
                next.pointed = field.map(|field| Pointed {
                    chart: Chart::Holders,
                    target: Target::Field(field),
                    at: None,
                });
            }
            Event::Drew(layer, on) => *layer.of(&mut next.layers) = on,
            Event::Helped(on) => next.help = on,
            Event::Resized(width) => next.width = width,
        }
        next
    }

    /// Somebody opened it.
    pub(crate) fn is_open(&self, fold: Fold) -> bool {
        self.folds.contains(&fold)
    }

    fn unfold(&mut self, fold: Option<Fold>) {
        self.folds.extend(fold.filter(|fold| !self.is_open(*fold)));
    }

    /// The cell that is picked out, or whose finding is.
    pub(crate) fn chosen_cell(&self, analysis: &Analysis) -> Option<CellIdx> {
        match self.chosen.as_ref()? {
            Choice::Cell(cell) => Some(*cell),
            Choice::Finding(id) => {
                let cell = analysis.finding(id)?.cell.as_ref();
                cell.map(|cell| cell.idx)
            }
            Choice::Search(_) => None,
        }
    }

    /// The runs that are picked out, in order; empty when nothing is.
    pub(crate) fn selected(&self, recording: &Recording, analysis: &Analysis) -> Vec<RunIdx> {
        let of_cells = |is_meant: &dyn Fn(CellIdx) -> bool| {
            let runs = recording.runs().iter();
            runs.filter(|run| is_meant(run.cell))
                .map(|run| run.idx)
                .collect()
        };
        match &self.chosen {
            None => Vec::new(),
            Some(Choice::Finding(id)) => {
                let found = analysis.finding(id);
                let mut runs = found.map_or_else(Vec::new, |finding| finding.runs.clone());
                runs.sort_unstable();
                runs
            }
            Some(Choice::Cell(cell)) => of_cells(&|of| of == *cell),
            Some(Choice::Search(text)) => {
                let found = cells_with(recording, text);
                of_cells(&|of| found.contains(&of))
            }
        }
    }

    fn stepped(&self, step: Step, targets: &[Target]) -> Option<Target> {
        let last = targets.len().checked_sub(1)?;
        let at = self
            .pointed
            .and_then(|pointed| targets.iter().position(|target| *target == pointed.target));
        let idx = match (step, at) {
            (Step::First, _) | (Step::Forward, None) => 0,
            (Step::Last, _) | (Step::Back, None) => last,
            (Step::Back, Some(at)) => at.saturating_sub(1),
            (Step::Forward, Some(at)) => (at + 1).min(last),
        };
        Some(targets[idx])
    }
}

/// The cells of which any text that was kept, or a label of a run, holds `text`;
/// capitals do not matter.
pub(crate) fn cells_with(recording: &Recording, text: &str) -> HashSet<CellIdx> {
    let wanted = text.to_lowercase();
    let holds = |text: &str| text.to_lowercase().contains(&wanted);
    let of_text = recording.cells().iter().filter(|cell| {
        let mut texts = cell
            .revisions
            .iter()
            .filter_map(|known| known.text.as_ref());
        texts.any(|text| holds(text))
    });
    let of_label = recording
        .runs()
        .iter()
        .filter(|run| run.label.as_ref().is_some_and(|label| holds(label)));
    let found = of_text.map(|cell| cell.idx);
    found.chain(of_label.map(|run| run.cell)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::recording_of_runs;

    const RUNS: [Target; 3] = [
        Target::Run(RunIdx(4)),
        Target::Run(RunIdx(0)),
        Target::Run(RunIdx(2)),
    ];

    fn at(chart: Chart, run: u32) -> Pointed {
        Pointed {
            chart,
            target: Target::Run(RunIdx(run)),
            at: None,
        }
    }

    fn looking_at(run: Option<u32>) -> State {
        let recording = recording_of_runs(&[0, 1, 0]);
        State {
            pointed: run.map(|run| at(Chart::Cells, run)),
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
        assert_eq!(stepped.pointed, Some(at(Chart::Timeline, expected)));
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
        let event = Event::Stepped(Chart::Cells, Step::Forward, Vec::new());
        assert_eq!(after(&looking_at(None), event).pointed, None);
    }

    #[test]
    fn a_run_is_found_again_in_the_other_chart() {
        let crossed = after(&looking_at(Some(2)), Event::Crossed);
        assert_eq!(crossed.pointed, Some(at(Chart::Timeline, 2)));
        let back = after(&crossed, Event::Crossed);
        assert_eq!(back.pointed, Some(at(Chart::Cells, 2)));
    }

    #[track_caller]
    fn check_selected(event: Event, expected: &[u32]) {
        let recording = recording_of_runs(&[0, 1, 0]);
        let chosen = after(&looking_at(None), event);
        let selected = chosen.selected(&recording, &Analysis::default());
        let selected: Vec<u32> = selected.into_iter().map(|run| run.0).collect();
        assert_eq!(selected, expected);
    }

    #[test]
    fn the_timeline_is_unfolded_to_go_there() {
        let crossed = after(&looking_at(Some(2)), Event::Crossed);
        assert!(crossed.is_open(Fold::Settings));
        let closed = after(&crossed, Event::Folded(Fold::Settings));
        assert!(!closed.is_open(Fold::Settings));
    }

    #[test]
    fn a_row_opens_closes_and_gives_way_to_escape() {
        let row = Event::OpenedRow(CellIdx(1));
        let open = after(&looking_at(None), row.clone());
        assert_eq!(open.row, Some(CellIdx(1)));
        assert_eq!(after(&open, row).row, None);
        assert_eq!(after(&open, Event::Cleared).row, None);
    }

    #[test]
    fn a_second_sort_by_a_column_turns_it_round() {
        let sorted = after(&looking_at(None), Event::Sorted(2));
        let turned = after(&sorted, Event::Sorted(2));
        assert_eq!(
            (sorted.order.is_rising, turned.order.is_rising),
            (false, true)
        );
    }

    #[test]
    fn a_click_picks_the_runs_of_the_cell() {
        check_selected(Event::Clicked(Some(RunIdx(2))), &[0, 2]);
        check_selected(Event::Clicked(None), &[]);
    }

    #[test]
    fn a_search_picks_the_runs_whose_source_holds_the_text() {
        check_selected(Event::Searched("STEP1".into()), &[1]);
        check_selected(Event::Searched(" model ".into()), &[0, 1, 2]);
        check_selected(Event::Searched("nowhere".into()), &[]);
    }

    #[test]
    fn a_second_click_drops_what_the_first_picked() {
        let clicked = after(&looking_at(None), Event::Clicked(Some(RunIdx(2))));
        let again = Event::Clicked(Some(RunIdx(0)));
        assert_eq!(after(&clicked, again).chosen, None);
    }

    #[test]
    fn a_finding_that_is_withdrawn_selects_nothing() {
        check_selected(Event::Toggled("gone".into()), &[]);
    }

    #[test]
    fn a_dismissed_finding_is_not_chosen_any_more() {
        let chosen = after(&looking_at(None), Event::Toggled("a".into()));
        let dismissed = after(&chosen, Event::Dismissed(vec!["a".into()]));
        assert_eq!(dismissed.chosen, None);
        assert_eq!(dismissed.dismissed, ["a"]);
        assert!(after(&dismissed, Event::Restored).dismissed.is_empty());
    }

    #[test]
    fn escape_clears_what_is_read_out_and_what_is_picked() {
        let chosen = after(&looking_at(Some(0)), Event::Toggled("a".into()));
        let cleared = after(&chosen, Event::Cleared);
        assert_eq!((cleared.pointed, cleared.chosen), (None, None));
    }
}
