//! The report's elements, and what must change in them when the model does.

mod cells;
mod compare;
mod controls;
mod findings;
mod folds;
mod holders_panel;
mod idle;
mod long_run;
mod now;
mod opened;
mod picture;
mod runs;
mod tiles;
mod verdict;

use gpumem_charts::PictureExtent;
use gpumem_model::recording::CellIdx;
use gpumem_scene::{Point, Target};
use web_sys::{Element, HtmlCanvasElement};

use cells::CellsPanel;
use compare::Comparison;
use controls::{PageHeader, Settings};
use findings::Findings;
use folds::Folds;
use gpumem_page_kit::paint::{faces, paint_scene};
use holders_panel::HoldersPanel;
use now::Now;
use picture::Picture;
use tiles::Tiles;
use verdict::Panel;

use crate::canvas::Faces;
use crate::dom::{Maker, add, flag, set_attribute, write};
use crate::gesture::Gesture;
use crate::model::ReportModel;
use crate::state::{Chart, Pointed, ViewState};

/// The report in the page.
pub(crate) struct ReportPage {
    make: Maker,
    root: Element,
    faces: Faces,
    header: PageHeader,
    verdict: Panel,
    tiles: Tiles,
    cells: CellsPanel,
    now: Now,
    pictures: Vec<Picture>,
    held: HoldersPanel,
    settings: Settings,
    folds: Folds,
    comparison: Comparison,
    findings: Findings,
    live: Element,
}

/// The charts that are a picture of their own; each row has one besides.
const PICTURES: [Chart; 5] = [
    Chart::Cells,
    Chart::Now,
    Chart::Timeline,
    Chart::Minimap,
    Chart::Holders,
];

impl ReportPage {
    /// Builds the report under `root`, with charts that are not painted yet.
    pub(crate) fn build(root: &Element, model: &ReportModel) -> Self {
        let make = Maker::beside(root);
        let pictures = PICTURES
            .into_iter()
            .map(|chart| Picture::build(&make, chart))
            .collect::<Vec<_>>();
        let [over_time, bar, timeline, minimap, map] =
            [0, 1, 2, 3, 4].map(|idx| &*pictures[idx].stage);
        let held = HoldersPanel::build(&make);
        held.place(map);
        let settings = Settings::build(&make, timeline, minimap);
        let findings = Findings::build(&make);
        let mut page = Self {
            header: PageHeader::build(&make),
            tiles: Tiles::build(&make),
            cells: CellsPanel::build(&make, over_time),
            now: Now::build(&make, bar),
            folds: Folds::build(&make, (&held.element, &findings, &settings.element)),
            comparison: Comparison::build(&make),
            findings,
            live: make.empty("div.unseen", &[("role", "status")]),
            held,
            settings,
            pictures,
            faces: faces(root),
            verdict: Panel::build(&make),
            make,
            root: root.clone(),
        };
        for part in [
            &page.header.element,
            &page.comparison.element,
            &page.verdict.element,
            &page.tiles.element,
            &page.cells.element,
            &page.now.element,
            &page.folds.element,
            &page.live,
        ] {
            add(root, part);
        }
        page.show_words(model);
        page
    }

    /// Shows the model from top to bottom.
    pub(crate) fn show(&mut self, model: &ReportModel) {
        self.show_words(model);
        self.show_pictures(model);
    }

    /// Shows all of it but the charts.
    fn show_words(&mut self, model: &ReportModel) {
        flag(
            &self.root,
            "data-empty",
            model.recording().runs().is_empty(),
        );
        set_attribute(&self.root, "data-layout", model.layout().name());
        self.comparison.show(&self.make, model);
        // What is waited for stands above.
        let is_waiting = model.compared().is_some() && model.recording().runs().is_empty();
        flag(&self.verdict.element, "hidden", is_waiting);
        self.verdict.show(&self.make, model);
        self.findings.show(&self.make, model);
        self.findings.mark(model, self.verdict.card());
        self.show_charts(model);
    }

    /// The words around the charts, and the rows.
    fn show_charts(&mut self, model: &ReportModel) {
        self.header.show(&self.make, model);
        self.tiles.show(&self.make, model);
        self.cells.show(&self.make, model, &self.faces);
        self.now.show(&self.make, model);
        self.folds.show(&self.make, model);
        self.settings.show(model);
        self.held.show(&self.make, model);
    }

    /// Shows what differs from the state `before`.
    pub(crate) fn update(&mut self, before: &ViewState, model: &ReportModel) {
        let state = model.state();
        if before == state {
            return;
        }
        let is_zooming = ViewState {
            span: state.span,
            ..before.clone()
        } == *state;
        if is_zooming {
            // Some sixty times a second: no word but these is another.
            self.settings.show(model);
            return self.show_pictures(model);
        }
        let is_pointing = ViewState {
            pointed: state.pointed,
            ..before.clone()
        } == *state;
        if is_pointing {
            self.cells.read(&self.make, model);
            self.now.read(&self.make, model);
        } else {
            self.show_charts(model);
        }
        self.held.read(&self.make, model);
        if before.dismissed != state.dismissed
            || before.device != state.device
            || before.folds != state.folds
        {
            self.findings.show(&self.make, model);
        }
        if verdict::is_another(before, state) {
            self.verdict.show(&self.make, model);
        }
        self.findings.mark(model, self.verdict.card());
        self.show_pictures(model);
    }

    /// Shows the findings under a threshold that was moved.
    pub(crate) fn judge(&mut self, model: &ReportModel) {
        self.comparison.show(&self.make, model);
        self.verdict.show(&self.make, model);
        self.findings.show(&self.make, model);
        self.findings.mark(model, self.verdict.card());
        self.show_charts(model);
        self.show_pictures(model);
        let n_findings = model.analysis().findings.len();
        self.say(&format!("findings: {n_findings}"));
    }

    /// What is at a point of a chart, in logical pixels.
    pub(crate) fn pointed_at(
        &self,
        model: &ReportModel,
        chart: Chart,
        point: Point,
    ) -> Option<Pointed> {
        if chart == Chart::Row {
            let run = CellsPanel::run_at(model, point.x, true)?;
            return Some(Pointed {
                chart,
                target: Target::Run(run),
                at: None,
            });
        }
        if chart == Chart::Run {
            return self.cells.pointed_in_run(model, point);
        }
        self.picture(chart)?.pointed_at(model, point)
    }

    /// What a chart shows, from left to right.
    pub(crate) fn targets(&self, model: &ReportModel, chart: Chart) -> Vec<Target> {
        let runs = match chart {
            Chart::Run => return CellsPanel::targets_in_run(model),
            Chart::Row => self.cells.runs_at_keyboard(model),
            Chart::Cells => model.cells().slots.runs().to_vec(),
            _ => {
                return self
                    .picture(chart)
                    .map(Picture::targets)
                    .unwrap_or_default();
            }
        };
        runs.into_iter().map(Target::Run).collect()
    }

    /// Shows what a pointer that is held down marks.
    pub(crate) fn mark(&self, gesture: &Gesture) {
        if let Some(picture) = self.picture(gesture.chart) {
            picture.mark(gesture.range());
        }
    }

    /// The pointer was let go: nothing is being marked.
    pub(crate) fn unmark(&mut self, gesture: &Gesture, model: &ReportModel) {
        if let Some(picture) = self.picture(gesture.chart) {
            picture.mark(None);
        }
        self.show_pictures(model);
    }

    /// The keyboard goes on at a chart.
    pub(crate) fn focus(&self, chart: Chart) {
        if let Some(picture) = self.picture(chart) {
            picture.focus();
        }
    }

    /// The keyboard goes to another row; says whether there is one.
    pub(crate) fn step_row(&self, by: isize) -> bool {
        self.cells.step(by)
    }

    /// Brings the row of a cell into view.
    pub(crate) fn reveal_row(&self, cell: CellIdx) {
        self.cells.reveal(cell);
    }

    /// The keyboard goes into the search field.
    pub(crate) fn focus_search(&self) {
        self.cells.focus_search();
    }

    /// Brings the card of a finding into view.
    pub(crate) fn reveal(&self, finding: &str) {
        self.findings.reveal(finding);
    }

    /// Tells those who do not see the page.
    pub(crate) fn say(&self, words: &str) {
        write(&self.live, words);
    }

    /// Reads what is under the keyboard to those who do not see the page.
    pub(crate) fn say_pointed(&self, model: &ReportModel) {
        let read = model
            .state()
            .pointed
            .and_then(|at| picture::read_out(model, at));
        if let Some(read) = read {
            self.say(&read.sentence());
        }
    }

    /// Reads the page's style anew, and paints the charts whose picture is another by it.
    pub(crate) fn restyle(&mut self, model: &ReportModel) {
        let faces = faces(&self.root);
        if self.faces != faces {
            self.faces = faces;
            self.forget_pictures();
        }
        set_attribute(&self.root, "data-layout", model.layout().name());
        self.cells.repaint(&self.make, model, &self.faces);
        self.cells.read(&self.make, model);
        self.show_pictures(model);
    }

    /// Paints every chart.
    pub(crate) fn repaint(&mut self, model: &ReportModel) {
        self.forget_pictures();
        self.restyle(model);
    }

    fn forget_pictures(&mut self) {
        for picture in &mut self.pictures {
            picture.forget();
        }
        self.cells.forget();
        self.verdict.forget();
    }

    /// Paints the report as one picture.
    pub(crate) fn paint_report(
        &self,
        canvas: &HtmlCanvasElement,
        model: &ReportModel,
        extent: PictureExtent,
    ) {
        let (scene, scale) = (model.picture(extent), model.scale_of_picture(extent));
        paint_scene(canvas, &scene, model.theme, scale, &self.faces);
    }

    fn picture(&self, chart: Chart) -> Option<&Picture> {
        self.pictures.iter().find(|picture| picture.chart == chart)
    }

    fn show_pictures(&mut self, model: &ReportModel) {
        for picture in &mut self.pictures {
            picture.show(&self.make, model, &self.faces);
        }
        self.verdict.draw(&self.make, model, &self.faces);
    }
}
