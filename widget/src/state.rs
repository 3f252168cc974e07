//! What the reader looks at, and how events change it. Pure: no page, no clock.

use std::collections::HashSet;

use gpumem_analyzer::Analysis;
use gpumem_charts::{CellMeasure, Layers, Moment, Pace, default_device};
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
    /// The folds of the page.
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
pub(crate) type TimeRange = (Nanos, Nanos);

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
    /// Its label in the page.
    pub(crate) const fn label(self) -> &'static str {
        match self {
            Self::Device => "the device, sampled",
            Self::Process => "this process, sampled",
            Self::Held => "allocated",
            Self::Peaks => "peaks",
        }
    }

    /// Its flag: whether it is drawn.
    pub(crate) fn flag_mut(self, layers: &mut Layers) -> &mut bool {
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
pub(crate) struct ViewState {
    /// The width of the charts, in logical pixels.
    pub(crate) width: f64,
    /// The device that the charts show.
    pub(crate) device: DeviceIdx,
    /// What is read out.
    pub(crate) pointed: Option<Pointed>,
    /// What is picked out in the charts and cards.
    pub(crate) chosen: Option<Choice>,
    /// The part of the time that is looked at; `None` for all.
    pub(crate) span: Option<TimeRange>,
    /// What the rows show.
    pub(crate) measure: CellMeasure,
    /// The folds that are open.
    pub(crate) folds: Vec<Fold>,
    /// Every row is shown, not only the first.
    pub(crate) all_rows: bool,
    /// The row that is open.
    pub(crate) row: Option<CellIdx>,
    /// The loop whose iterations are the axis of its long run; `None` for the default one.
    pub(crate) in_loop: Option<LoopIdx>,
    /// How the runs are sorted.
    pub(crate) order: Order,
    /// How the timeline deals with pauses.
    pub(crate) pace: Pace,
    /// What the timeline draws.
    pub(crate) layers: Layers,
    /// The moment that the map of holders shows.
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
pub(crate) enum Movement {
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
pub(crate) enum UiEvent {
    /// Pointed at something, or at nothing.
    Pointed(Option<Pointed>),
    /// Clicked a run, or beside the runs.
    Clicked(Option<RunIdx>),
    /// Moved along the targets of a chart, which are in its order.
    Stepped(Chart, Movement, Vec<Target>),
    /// Went to the place of the run in the other chart.
    Crossed,
    /// Pressed Escape.
    Cleared,
    /// Opened or closed the runs of a finding.
    Toggled(String),
    /// Dismissed these findings.
    Dismissed(Vec<String>),
    /// Restored the findings that were dismissed last.
    Undone,
    /// Opened a finding of the verdict, in full or to its fix.
    Opened(String, bool),
    /// Opened or closed the list of findings of a sign.
    Listed(String),
    /// Restored all dismissed findings.
    Restored,
    /// Searched for cells whose source contains a text.
    Searched(String),
    /// Chose a device.
    Switched(DeviceIdx),
    /// Zoomed to a part of the time, or to all of it.
    Zoomed(Option<TimeRange>),
    /// Chose what the rows show.
    Measured(CellMeasure),
    /// Opened or closed a fold.
    Folded(Fold),
    /// Opened a row, or closed it.
    OpenedRow(CellIdx),
    /// Chose the loop whose iterations are shown.
    ChoseLoop(LoopIdx),
    /// Showed all rows, or only the first ones.
    ShowedRows,
    /// Sorted the runs by a column, or reversed the order.
    Sorted(usize),
    /// Chose how time runs.
    Paced(Pace),
    /// Chose the moment that the map of holders shows.
    Looked(Moment),
    /// Entered or left a field of the map, and points at the field of that place.
    Entered(Vec<String>, Option<usize>),
    /// Showed or hid a layer.
    Drew(Layer, bool),
    /// Opened or closed the list of keys.
    Helped(bool),
    /// Gave the charts another width, in logical pixels.
    Resized(f64),
}

impl ViewState {
    /// The first look: the device of the worst finding, else the one that charts show first.
    pub(crate) fn new(recording: &Recording, analysis: &Analysis) -> Self {
        Self {
            width: 860.0,
            device: default_device(recording, analysis).unwrap_or_default(),
            pointed: None,
            chosen: None,
            span: None,
            measure: CellMeasure::default(),
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
    pub(crate) fn after(&self, event: UiEvent, recording: &Recording, analysis: &Analysis) -> Self {
        let mut next = self.clone();
        match event {
            UiEvent::Pointed(at) => next.pointed = at,
            UiEvent::Clicked(run) => {
                let cell = run.map(|run| Choice::Cell(recording.run(run).cell));
                next.chosen = cell.filter(|cell| self.chosen.as_ref() != Some(cell));
            }
            UiEvent::Stepped(chart, step, targets) => {
                next.pointed = self.stepped(step, &targets).map(|target| Pointed {
                    chart,
                    target,
                    at: None,
                });
            }
            UiEvent::Crossed => {
                if let Some(pointed) = &mut next.pointed {
                    pointed.chart = pointed.chart.other();
                    pointed.at = None;
                    let fold = pointed.chart.fold();
                    next.unfold(fold);
                }
            }
            UiEvent::Cleared => {
                next.pointed = None;
                next.chosen = None;
                next.row = None;
                next.help = false;
            }
            UiEvent::Toggled(id) => {
                next.device = analysis
                    .finding(&id)
                    .map_or(self.device, |finding| finding.device);
                let choice = Choice::Finding(id);
                next.chosen = (self.chosen.as_ref() != Some(&choice)).then_some(choice);
            }
            UiEvent::Dismissed(ids) => {
                let is_chosen =
                    |choice: &Choice| matches!(choice, Choice::Finding(id) if ids.contains(id));
                next.chosen = self.chosen.clone().filter(|choice| !is_chosen(choice));
                if self.opened.as_ref().is_some_and(|id| ids.contains(id)) {
                    (next.opened, next.in_full) = (None, false);
                }
                next.dismissed.extend(ids.iter().cloned());
                next.undo = ids;
            }
            UiEvent::Undone => {
                next.dismissed.retain(|id| !self.undo.contains(id));
                next.undo.clear();
            }
            UiEvent::Restored => {
                next.dismissed.clear();
                next.undo.clear();
            }
            UiEvent::Opened(id, in_full) => (next.opened, next.in_full) = (Some(id), in_full),
            UiEvent::Listed(sign) => {
                next.listed = (self.listed.as_ref() != Some(&sign)).then_some(sign);
            }
            UiEvent::Searched(text) => {
                let text = text.trim().to_owned();
                next.chosen = (!text.is_empty()).then_some(Choice::Search(text));
            }
            UiEvent::Switched(device) => {
                next.device = device;
                next.pointed = None;
                next.inside.clear();
            }
            UiEvent::Zoomed(span) => next.span = span.filter(|(from, to)| from < to),
            UiEvent::Measured(measure) => next.measure = measure,
            UiEvent::Folded(fold) if self.is_open(fold) => next.folds.retain(|open| *open != fold),
            UiEvent::Folded(fold) => next.unfold(Some(fold)),
            UiEvent::OpenedRow(cell) => {
                next.row = (self.row != Some(cell)).then_some(cell);
                next.in_loop = None;
            }
            UiEvent::ChoseLoop(idx) => next.in_loop = Some(idx),
            UiEvent::ShowedRows => next.all_rows = !self.all_rows,
            UiEvent::Sorted(column) => {
                let is_rising = self.order.column == column && !self.order.is_rising;
                next.order = Order { column, is_rising };
            }
            UiEvent::Paced(pace) => next.pace = pace,
            UiEvent::Looked(moment) => {
                next.moment = moment;
                next.inside.clear();
                next.pointed = self.pointed.filter(|pointed| pointed.field().is_none());
            }
            UiEvent::Entered(inside, field) => {
                next.inside = inside;
                next.unfold(Some(Fold::Map));
                next.pointed = field.map(|field| Pointed {
                    chart: Chart::Holders,
                    target: Target::Field(field),
                    at: None,
                });
            }
            UiEvent::Drew(layer, on) => *layer.flag_mut(&mut next.layers) = on,
            UiEvent::Helped(on) => next.help = on,
            UiEvent::Resized(width) => next.width = width,
        }
        next
    }

    /// Opened by the reader.
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

    fn stepped(&self, step: Movement, targets: &[Target]) -> Option<Target> {
        let last = targets.len().checked_sub(1)?;
        let at = self
            .pointed
            .and_then(|pointed| targets.iter().position(|target| *target == pointed.target));
        let idx = match (step, at) {
            (Movement::First, _) | (Movement::Forward, None) => 0,
            (Movement::Last, _) | (Movement::Back, None) => last,
            (Movement::Back, Some(at)) => at.saturating_sub(1),
            (Movement::Forward, Some(at)) => (at + 1).min(last),
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

    fn looking_at(run: Option<u32>) -> ViewState {
        let recording = recording_of_runs(&[0, 1, 0]);
        ViewState {
            pointed: run.map(|run| at(Chart::Cells, run)),
            ..ViewState::new(&recording, &Analysis::default())
        }
    }

    fn after(state: &ViewState, event: UiEvent) -> ViewState {
        state.after(event, &recording_of_runs(&[0, 1, 0]), &Analysis::default())
    }

    #[track_caller]
    fn check_step(from: Option<u32>, step: Movement, expected: u32) {
        let stepped = after(
            &looking_at(from),
            UiEvent::Stepped(Chart::Timeline, step, RUNS.to_vec()),
        );
        assert_eq!(stepped.pointed, Some(at(Chart::Timeline, expected)));
    }

    #[test]
    fn keys_move_in_the_order_of_the_chart_and_stay_inside() {
        check_step(None, Movement::Forward, 4);
        check_step(None, Movement::Back, 2);
        check_step(Some(4), Movement::Forward, 0);
        check_step(Some(2), Movement::Forward, 2);
        check_step(Some(0), Movement::Back, 4);
        check_step(Some(4), Movement::Back, 4);
        check_step(Some(0), Movement::First, 4);
        check_step(Some(0), Movement::Last, 2);
        check_step(Some(9), Movement::Forward, 4);
    }

    #[test]
    fn a_chart_without_runs_has_nothing_to_step_to() {
        let event = UiEvent::Stepped(Chart::Cells, Movement::Forward, Vec::new());
        assert_eq!(after(&looking_at(None), event).pointed, None);
    }

    #[test]
    fn a_run_is_found_again_in_the_other_chart() {
        let crossed = after(&looking_at(Some(2)), UiEvent::Crossed);
        assert_eq!(crossed.pointed, Some(at(Chart::Timeline, 2)));
        let back = after(&crossed, UiEvent::Crossed);
        assert_eq!(back.pointed, Some(at(Chart::Cells, 2)));
    }

    #[track_caller]
    fn check_selected(event: UiEvent, expected: &[u32]) {
        let recording = recording_of_runs(&[0, 1, 0]);
        let chosen = after(&looking_at(None), event);
        let selected = chosen.selected(&recording, &Analysis::default());
        let selected: Vec<u32> = selected.into_iter().map(|run| run.0).collect();
        assert_eq!(selected, expected);
    }

    #[test]
    fn the_timeline_is_unfolded_to_go_there() {
        let crossed = after(&looking_at(Some(2)), UiEvent::Crossed);
        assert!(crossed.is_open(Fold::Settings));
        let closed = after(&crossed, UiEvent::Folded(Fold::Settings));
        assert!(!closed.is_open(Fold::Settings));
    }

    #[test]
    fn a_row_opens_closes_and_gives_way_to_escape() {
        let row = UiEvent::OpenedRow(CellIdx(1));
        let open = after(&looking_at(None), row.clone());
        assert_eq!(open.row, Some(CellIdx(1)));
        assert_eq!(after(&open, row).row, None);
        assert_eq!(after(&open, UiEvent::Cleared).row, None);
    }

    #[test]
    fn a_second_sort_by_a_column_turns_it_round() {
        let sorted = after(&looking_at(None), UiEvent::Sorted(2));
        let turned = after(&sorted, UiEvent::Sorted(2));
        assert_eq!(
            (sorted.order.is_rising, turned.order.is_rising),
            (false, true)
        );
    }

    #[test]
    fn a_click_picks_the_runs_of_the_cell() {
        check_selected(UiEvent::Clicked(Some(RunIdx(2))), &[0, 2]);
        check_selected(UiEvent::Clicked(None), &[]);
    }

    #[test]
    fn a_search_picks_the_runs_whose_source_holds_the_text() {
        check_selected(UiEvent::Searched("STEP1".into()), &[1]);
        check_selected(UiEvent::Searched(" model ".into()), &[0, 1, 2]);
        check_selected(UiEvent::Searched("nowhere".into()), &[]);
    }

    #[test]
    fn a_second_click_drops_what_the_first_picked() {
        let clicked = after(&looking_at(None), UiEvent::Clicked(Some(RunIdx(2))));
        let again = UiEvent::Clicked(Some(RunIdx(0)));
        assert_eq!(after(&clicked, again).chosen, None);
    }

    #[test]
    fn a_finding_that_is_withdrawn_selects_nothing() {
        check_selected(UiEvent::Toggled("gone".into()), &[]);
    }

    #[test]
    fn a_dismissed_finding_is_not_chosen_any_more() {
        let chosen = after(&looking_at(None), UiEvent::Toggled("a".into()));
        let dismissed = after(&chosen, UiEvent::Dismissed(vec!["a".into()]));
        assert_eq!(dismissed.chosen, None);
        assert_eq!(dismissed.dismissed, ["a"]);
        assert!(after(&dismissed, UiEvent::Restored).dismissed.is_empty());
    }

    #[test]
    fn escape_clears_what_is_read_out_and_what_is_picked() {
        let chosen = after(&looking_at(Some(0)), UiEvent::Toggled("a".into()));
        let cleared = after(&chosen, UiEvent::Cleared);
        assert_eq!((cleared.pointed, cleared.chosen), (None, None));
    }
}
