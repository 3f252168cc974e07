//! The report in the page: a view that owns a recording, the rules and what the
//! reader looks at.
//!
//! The page's script hands it bytes, sizes and events and catches what it
//! throws; it holds no rule of the domain. [`state`] decides what an event means,
//! [`keys`] and [`gesture`] which event the hands meant, [`model`] what follows
//! from it, [`page`] which elements change; `gpumem-page-kit` makes elements and pixels.
#![forbid(unsafe_code)]

mod card_details;
mod cards;
#[cfg(test)]
mod fixture;
mod full;
mod gesture;
mod holder_list;
mod keys;
mod model;
mod page;
mod python;
mod readout;
mod saved;
mod settings;
mod state;
mod threshold;
mod zoom;

use gpumem_charts as charts;
use gpumem_charts::PictureExtent;
use gpumem_model::recording::{CellIdx, DeviceIdx, LoopIdx};
use gpumem_model::units::Units;
use gpumem_page_kit::{canvas, dom};
use gpumem_report as report;
use gpumem_scene as scene;
use gpumem_scene::{Point, Theme};
use gpumem_wire as wire;
use wasm_bindgen::prelude::{JsError, JsValue, wasm_bindgen};
use web_sys::{Element, HtmlCanvasElement};

use gesture::{Brushed, Gesture};
use keys::KeyAction;
use model::ReportModel;
use page::ReportPage;
use settings::ThresholdSetting;
use state::{Chart, Fold, Layer, Pointed, UiEvent, ViewState};

/// One report in the page.
#[wasm_bindgen]
pub struct View {
    model: ReportModel,
    page: Option<ReportPage>,
    gesture: Option<Gesture>,
}

#[wasm_bindgen]
impl View {
    /// A view of the recording in `bytes`; throws where they are not one.
    #[wasm_bindgen(constructor)]
    pub fn new(bytes: &[u8]) -> Result<View, JsError> {
        #[cfg(feature = "development")]
        console_error_panic_hook::set_once();
        Ok(Self {
            model: ReportModel::new(wire::decode(bytes)?),
            page: None,
            gesture: None,
        })
    }

    /// Holds the recording against the one in `bytes`; throws where they are not one.
    pub fn compare(&mut self, bytes: &[u8], name: &str) -> Result<(), JsValue> {
        let baseline = wire::decode(bytes).map_err(JsError::from)?;
        self.model.set_baseline(name, baseline);
        self.on_page(ReportPage::show);
        Ok(())
    }

    /// Builds the report under `root`; its charts are painted once `resize` sets their size.
    pub fn mount(&mut self, root: &Element) {
        self.page = Some(ReportPage::build(root, &self.model));
    }

    /// Takes in frames that were recorded since; throws where they do not fit.
    pub fn apply(&mut self, frames: &[u8]) -> Result<(), JsValue> {
        let read = self.model.apply(frames);
        self.on_page(ReportPage::show);
        read.map_err(|error| JsError::from(error).into())
    }

    /// Restores the view from the `state` of [`Self::text`].
    pub fn restore(&mut self, state: &str) {
        self.model.restore(state);
        self.on_page(ReportPage::show);
    }

    /// Gives the charts their width in CSS pixels, at `scale` device pixels each.
    pub fn resize(&mut self, width: f64, scale: f64) {
        self.model.scale = scale;
        self.model.handle(UiEvent::Resized(width));
        self.on_page(ReportPage::restyle);
    }

    /// The colours of the charts, by the name of their theme.
    pub fn theme(&mut self, name: &str) {
        self.model.theme = Theme::from_name(name).unwrap_or_default();
        self.on_page(ReportPage::restyle);
    }

    /// Repaints every chart, after the page lost its canvases.
    pub fn repaint(&mut self) {
        self.on_page(ReportPage::repaint);
    }

    /// The pointer moved over a chart to a point in CSS pixels from its top left.
    pub fn point(&mut self, chart: &str, x: f64, y: f64) {
        let at = Chart::from_name(chart).and_then(|chart| {
            let page = self.page.as_ref()?;
            page.pointed_at(&self.model, chart, Point { x, y })
        });
        self.handle(UiEvent::Pointed(at));
    }

    /// The pointer left the charts.
    pub fn leave(&mut self) {
        self.handle(UiEvent::Pointed(None));
    }

    /// A chart was clicked at a point in CSS pixels from its top left.
    pub fn click(&mut self, chart: &str, x: f64, y: f64) {
        let (Some(chart), Some(page)) = (Chart::from_name(chart), &self.page) else {
            return;
        };
        let at = page.pointed_at(&self.model, chart, Point { x, y });
        match at.map(|at| at.target) {
            Some(scene::Target::Part(part)) => self.reveal(part),
            Some(scene::Target::Field(field)) => {
                if let Some(event) = self.model.entering(field, None) {
                    self.handle(event);
                }
            }
            _ if !chart.has_time() && chart != Chart::Cells => {}
            _ => self.handle(UiEvent::Clicked(at.and_then(Pointed::run))),
        }
    }

    /// The pointer was put down on a chart.
    pub fn grab(&mut self, chart: &str, x: f64) {
        let begin = |chart| {
            self.model
                .with_window(|window| Gesture::new(chart, x, window))
        };
        self.gesture = Chart::from_name(chart).and_then(begin);
    }

    /// The pointer that was put down moved; says whether that is more than a click.
    pub fn drag(&mut self, x: f64) -> bool {
        let Some(mut gesture) = self.gesture else {
            return false;
        };
        gesture.move_to(x);
        self.gesture = Some(gesture);
        if let Some(page) = &self.page {
            page.mark(&gesture);
        }
        let brushed = self.model.with_window(|window| gesture.brushed(window));
        if let Some(Brushed(span)) = brushed {
            self.handle(UiEvent::Zoomed(span));
        }
        gesture.is_drag()
    }

    /// The pointer was let go, or the drag broken off.
    pub fn release(&mut self, is_over: bool) {
        let (Some(gesture), Some(page)) = (self.gesture.take(), &mut self.page) else {
            return;
        };
        page.unmark(&gesture, &self.model);
        let (Some((from, to)), true) = (gesture.range(), is_over) else {
            return;
        };
        let span = match gesture.chart {
            Chart::Minimap => self.model.with_window(|window| window.between(from, to)),
            _ => self.model.with_window(|window| window.cut(from, to)),
        };
        if span.is_some() {
            self.handle(UiEvent::Zoomed(span));
        }
    }

    /// The wheel was turned with Ctrl over a chart, or two fingers were spread:
    /// `factor` times the time is in view, or it moves `aside` by a share of it.
    pub fn zoom(&mut self, chart: &str, x: f64, factor: f64, aside: f64) {
        if Chart::from_name(chart).is_none_or(|chart| !chart.has_time()) {
            return;
        }
        // What is not the timeline has no instants: its middle stays where it is.
        let is_timeline = chart == Chart::Timeline.name();
        let span = self.model.with_window(|window| {
            let (left, right) = window.whole.edges();
            let middle = f64::midpoint(left, right);
            window.zoomed(if is_timeline { x } else { middle }, factor)
        });
        self.handle(UiEvent::Zoomed(span));
        if aside == 0.0 {
            return;
        }
        match self.model.with_window(|window| window.panned(aside)) {
            None => {}
            span => self.handle(UiEvent::Zoomed(span)),
        }
    }

    /// A key was pressed on a chart, or elsewhere in the report; says whether it meant anything.
    pub fn press(&mut self, chart: &str, key: &str, shift: bool) -> bool {
        let (Some(key), Some(page)) = (keys::action_for(key, shift), &self.page) else {
            return false;
        };
        let on_chart = Chart::from_name(chart);
        if on_chart.is_none() && !key.is_everywhere() {
            return false;
        }
        if key == KeyAction::Search {
            page.focus_search();
            return true;
        }
        let chart = on_chart.unwrap_or(Chart::Cells);
        if let KeyAction::Row(step) = key {
            let by = if step == state::Movement::Back { -1 } else { 1 };
            return page.step_row(by);
        }
        // A row is a button: the page presses it.
        if (key, chart) == (KeyAction::Choose, Chart::Row) {
            return false;
        }
        if let (KeyAction::Choose, Some(part)) = (key, self.part_at_keyboard()) {
            self.reveal(part);
            return true;
        }
        let Some(event) = self
            .model
            .event_of(key, chart, &page.targets(&self.model, chart))
        else {
            return false;
        };
        let crosses = event == UiEvent::Crossed;
        self.handle(event);
        if let Some(page) = &self.page {
            page.say_pointed(&self.model);
            if crosses {
                page.focus(chart.other());
            }
        }
        true
    }

    /// A button with this `data-action` and `data-argument` was pressed.
    pub fn act(&mut self, action: &str, argument: &str) {
        let event = match action {
            "dismiss" => UiEvent::Dismissed(self.model.together(argument)),
            "undo" => UiEvent::Undone,
            "restore" => UiEvent::Restored,
            "open" => UiEvent::Opened(argument.to_owned(), self.model.is_bare(argument)),
            "evidence" if self.model.row_about(argument).is_some() => {
                return self.show_evidence(argument);
            }
            "evidence" => {
                let in_full = self.model.state().in_full;
                UiEvent::Opened(argument.to_owned(), !in_full)
            }
            "list" => UiEvent::Listed(argument.to_owned()),
            "runs" => return self.show_runs(argument),
            "device" => match argument.parse() {
                Ok(idx) => UiEvent::Switched(DeviceIdx(idx)),
                Err(_) => return,
            },
            "measure" if argument == "run" => UiEvent::Measured(charts::CellMeasure::PerRun),
            "measure" => UiEvent::Measured(charts::CellMeasure::Total),
            "fold" => match Fold::from_name(argument) {
                Some(fold) => UiEvent::Folded(fold),
                None => return,
            },
            "row" => match argument.parse() {
                Ok(idx) => UiEvent::OpenedRow(CellIdx(idx)),
                Err(_) => return,
            },
            "loop" => match argument.parse() {
                Ok(idx) => UiEvent::ChoseLoop(LoopIdx(idx)),
                Err(_) => return,
            },
            "look" => UiEvent::Pointed(argument.parse().ok().map(|idx| Pointed {
                chart: Chart::Run,
                target: scene::Target::Look(idx),
                at: None,
            })),
            "rows" => UiEvent::ShowedRows,
            "sort" => UiEvent::Sorted(argument.parse().unwrap_or_default()),
            "card" => return self.show_card(argument),
            "pace" if argument == "clock" => UiEvent::Paced(charts::Pace::Clock),
            "pace" => UiEvent::Paced(charts::Pace::Runs),
            "whole" if Chart::from_name(argument).is_some_and(|it| !it.has_time()) => return,
            "whole" => UiEvent::Zoomed(None),
            "units" => {
                self.model
                    .set_units(Units::from_name(argument).unwrap_or_default());
                return self.on_page(ReportPage::show);
            }
            "holders" => UiEvent::Looked(saved::moment(argument)),
            "inside" => {
                let depth = argument.parse().unwrap_or_default();
                let inside = self.model.state().inside.iter().take(depth);
                UiEvent::Entered(inside.cloned().collect(), None)
            }
            "hold" => return self.show_name(argument),
            "help" => UiEvent::Helped(!self.model.state().help),
            "reset" => {
                let setting =
                    ThresholdSetting::from_name(argument).unwrap_or(ThresholdSetting::Growth);
                let recorded = setting.position(self.model.recorded_rules());
                return self.set(setting, recorded);
            }
            _ => return,
        };
        self.handle(event);
    }

    /// A field with this `data-input` and `data-argument` has another value.
    pub fn input(&mut self, input: &str, argument: &str, value: &str) {
        match (
            input,
            ThresholdSetting::from_name(argument),
            Layer::from_name(argument),
        ) {
            ("threshold", Some(setting), _) => self.set(setting, value.parse().unwrap_or_default()),
            ("layer", _, Some(layer)) => self.handle(UiEvent::Drew(layer, value == "true")),
            ("search", ..) => self.handle(UiEvent::Searched(value.to_owned())),
            _ => {}
        }
    }

    /// Every figure that a finding rests on, for holding against the extension's own.
    pub fn figures(&self) -> Vec<f64> {
        self.model.figures()
    }

    /// The report as a text: an `svg` document, the conclusion as `markdown`, what the
    /// reader looks at as `python`, or the `state` to keep.
    pub fn text(&self, kind: &str) -> String {
        let model = &self.model;
        let (recording, analysis) = (model.recording(), model.analysis());
        match kind {
            "svg" => scene::svg(&model.picture(PictureExtent::FirstScreen), model.theme),
            "markdown" => report::markdown(recording, analysis, model.state().device),
            "python" => python::code(model),
            _ => model.saved(),
        }
    }

    /// Paints the report's first screen on a canvas, or on one of 1600 × 900.
    pub fn paint(&self, canvas: &HtmlCanvasElement, slide: bool) {
        let extent = if slide {
            PictureExtent::Slide
        } else {
            PictureExtent::FirstScreen
        };
        if let Some(page) = &self.page {
            page.paint_report(canvas, &self.model, extent);
        }
    }

    fn set(&mut self, setting: ThresholdSetting, position: u32) {
        self.model.set(setting, position);
        self.on_page(ReportPage::judge);
    }

    /// Picks out the runs of a finding, and goes to them; or takes that back.
    fn show_runs(&mut self, finding: &str) {
        self.handle(UiEvent::Toggled(finding.to_owned()));
        self.reveal_chosen();
    }

    /// Opens the row of the cell in whose loop the finding is, or closes it.
    fn show_evidence(&mut self, finding: &str) {
        let device = self.model.analysis().finding(finding).map(|it| it.device);
        if let Some(device) = device.filter(|it| *it != self.model.state().device) {
            self.handle(UiEvent::Switched(device));
        }
        if let Some(cell) = self.model.row_about(finding) {
            self.handle(UiEvent::OpenedRow(cell));
            if let (Some(_), Some(page)) = (self.model.state().row, &self.page) {
                page.reveal_row(cell);
            }
        }
    }

    fn part_at_keyboard(&self) -> Option<usize> {
        match self.model.state().pointed?.target {
            scene::Target::Part(part) => Some(part),
            _ => None,
        }
    }

    /// Goes to a field of the whole map of holders.
    fn show_field(&mut self, field: usize) {
        self.handle(UiEvent::Entered(Vec::new(), Some(field)));
        if let Some(page) = &self.page {
            page.say_pointed(&self.model);
            page.focus(Chart::Holders);
        }
    }

    /// Goes to the field of a name on a device: `0:losses`.
    fn show_name(&mut self, place: &str) {
        let (device, name) = place.split_once(':').unwrap_or_default();
        if let Ok(idx) = device.parse() {
            self.handle(UiEvent::Switched(DeviceIdx(idx)));
        }
        self.handle(UiEvent::Looked(charts::Moment::After));
        if let Some(field) = self.model.field_of(name) {
            return self.show_field(field);
        }
        if let Some(page) = &self.page {
            page.say("this name holds nothing any more");
        }
    }

    /// Scrolls the chosen row into view.
    fn reveal_chosen(&self) {
        let cell = self.model.state().chosen_cell(self.model.analysis());
        if let (Some(cell), Some(page)) = (cell, &self.page) {
            page.reveal_row(cell);
        }
    }

    /// Goes to the card of a finding.
    fn show_card(&mut self, finding: &str) {
        if !self.model.state().is_open(Fold::Findings) {
            self.handle(UiEvent::Folded(Fold::Findings));
        }
        if let Some(page) = &self.page {
            page.reveal(finding);
        }
    }

    /// Goes to what holds a part of the device: its field in the map, else the card of a finding.
    fn reveal(&mut self, part: usize) {
        if let Some(field) = self.model.field_about(part) {
            return self.show_field(field);
        }
        let Some(finding) = self.model.finding_about(part).map(str::to_owned) else {
            if let Some(page) = &self.page {
                page.say("nothing was found about this part");
            }
            return;
        };
        if self.model.state().chosen != Some(state::Choice::Finding(finding.clone())) {
            self.handle(UiEvent::Toggled(finding.clone()));
        }
        self.show_card(&finding);
    }

    fn handle(&mut self, event: UiEvent) {
        let before = self.model.handle(event);
        self.update(&before);
    }

    fn update(&mut self, before: &ViewState) {
        if let Some(page) = &mut self.page {
            page.update(before, &self.model);
        }
    }

    fn on_page(&mut self, show: impl FnOnce(&mut ReportPage, &ReportModel)) {
        if let Some(page) = &mut self.page {
            show(page, &self.model);
        }
    }
}
