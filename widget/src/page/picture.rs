//! A chart in the page: a canvas, and over it what follows the pointer.

use gpumem_charts as charts;
use gpumem_page_kit::paint::{paint_scene, px};
use gpumem_scene::{Point, Scene, Target, Theme};
use wasm_bindgen::JsCast;
use web_sys::{Element, HtmlCanvasElement, HtmlElement};

use super::cells::CellsPanel;
use crate::canvas::Faces;
use crate::dom::{Maker, add, describe, fill, flag, focus, set_style};
use crate::model::ReportModel;
use crate::readout::{self, Readout};
use crate::state::{Chart, Pointed};

/// What a canvas was painted for: as long as it is the same, so is the picture.
#[derive(PartialEq)]
struct PaintedPicture {
    version: u64,
    view: charts::ChartView,
    theme: Theme,
}

/// A chart in the page.
pub(crate) struct Picture {
    pub(crate) chart: Chart,
    /// Canvas and overlays.
    pub(crate) stage: HtmlElement,
    canvas: HtmlCanvasElement,
    /// Over the run that is read out.
    band: HtmlElement,
    /// At the instant that is read out.
    cursor: HtmlElement,
    /// Over the range that is being marked, or on the minimap over what is in view.
    brush: HtmlElement,
    /// Below the chart: what is read out of it.
    reading: Element,
    scene: Scene,
    painted: Option<PaintedPicture>,
    /// What is read out.
    pointed: Option<Pointed>,
}

impl Picture {
    pub(crate) fn build(make: &Maker, chart: Chart) -> Self {
        let canvas: HtmlCanvasElement = make.typed(
            "canvas",
            &[
                ("data-chart", chart.name()),
                ("tabindex", "0"),
                ("role", "application"),
                ("aria-roledescription", "chart"),
            ],
        );
        let overlay = |tag: &str| make.typed::<HtmlElement>(tag, &[("hidden", "")]);
        let (band, cursor, brush) = (
            overlay("div.band"),
            overlay("div.cursor"),
            overlay("div.brush"),
        );
        let reading = make.empty("p.reading", &[("dir", "auto")]);
        let stage = make.group("div.stage", &[], &[&canvas, &band, &cursor, &brush]);
        if chart == Chart::Timeline {
            add(&stage, &reading);
        }
        Self {
            chart,
            stage: stage.unchecked_into(),
            canvas,
            band,
            cursor,
            brush,
            reading,
            scene: Scene::default(),
            painted: None,
            pointed: None,
        }
    }

    /// Shows the model: paints only where the picture is another.
    pub(crate) fn show(&mut self, make: &Maker, model: &ReportModel, faces: &Faces) {
        if self
            .chart
            .fold()
            .is_some_and(|fold| !model.state().is_open(fold))
        {
            return;
        }
        let wanted = PaintedPicture {
            version: model.version(),
            view: model.view(self.chart),
            theme: model.theme,
        };
        let pointed = model.state().pointed;
        let is_another = self.painted.as_ref() != Some(&wanted);
        if is_another {
            self.scene = model.scene(self.chart);
            describe(&self.canvas, "aria-label", &self.scene.description);
            self.paint(model, faces);
            self.painted = Some(wanted);
        }
        if is_another || self.pointed != pointed {
            self.show_pointed(make, model);
            self.pointed = pointed;
        }
        if self.chart == Chart::Minimap {
            self.show_view(model);
        }
    }

    /// The faces or the pixels of the page are others: the next look paints.
    pub(crate) fn forget(&mut self) {
        self.painted = None;
    }

    /// What is at a point, and when.
    pub(crate) fn pointed_at(&self, model: &ReportModel, point: Point) -> Option<Pointed> {
        let target = match self.chart {
            Chart::Cells => Target::Run(CellsPanel::run_at(model, point.x, false)?),
            _ => self.scene.hit(point)?,
        };
        Some(Pointed {
            chart: self.chart,
            target,
            at: (self.chart == Chart::Timeline).then(|| model.time_scale().instant(point.x)),
        })
    }

    /// What answers to the pointer, from left to right.
    pub(crate) fn targets(&self) -> Vec<Target> {
        let mut hits = self.scene.hits.clone();
        if self.chart.has_time() {
            hits.sort_by(|a, b| a.rect.x.total_cmp(&b.rect.x));
        }
        let mut seen: Vec<Target> = Vec::new();
        for hit in hits {
            // A part answers twice: in the bar, and in its legend.
            let is_new = match hit.target {
                Target::Run(_) => seen.last() != Some(&hit.target),
                _ => !seen.contains(&hit.target),
            };
            if is_new {
                seen.push(hit.target);
            }
        }
        seen
    }

    /// The keyboard goes on here.
    pub(crate) fn focus(&self) {
        focus(&self.canvas);
    }

    /// Marks a range; none takes the mark away.
    pub(crate) fn mark(&self, range: Option<(f64, f64)>) {
        flag(&self.brush, "hidden", range.is_none());
        match range {
            None => {}
            Some((left, right)) => place(&self.brush, left, right - left),
        }
    }

    fn show_view(&self, model: &ReportModel) {
        let in_view = model.with_window(|window| {
            let (left, right) = window.places();
            window.span.map(|_| (left, right.max(left + 2.0)))
        });
        self.mark(in_view);
    }

    fn paint(&self, model: &ReportModel, faces: &Faces) {
        paint_scene(&self.canvas, &self.scene, model.theme, model.scale, faces);
    }

    /// The run stands out in every chart; it is read out where it was pointed at.
    fn show_pointed(&self, make: &Maker, model: &ReportModel) {
        let pointed = model.state().pointed;
        let hit = pointed.and_then(|pointed| {
            let mut hits = self.scene.hits.iter();
            hits.find(|hit| hit.target == pointed.target)
        });
        let is_shown = hit.is_some() && self.chart != Chart::Minimap;
        flag(&self.band, "hidden", !is_shown);
        if let Some(hit) = hit.filter(|_| is_shown) {
            place(&self.band, hit.rect.x, hit.rect.width.max(1.0));
            set_style(&self.band, "top", &px(hit.rect.y));
            set_style(&self.band, "height", &px(hit.rect.height));
        }
        let here = pointed.filter(|pointed| pointed.chart == self.chart);
        let at = here.and_then(|here| here.at).filter(|_| hit.is_some());
        let x = at.map(|at| model.time_scale().x(at));
        flag(&self.cursor, "hidden", x.is_none());
        if let Some(x) = x {
            place(&self.cursor, x, 1.0);
        }
        self.read(make, model, here);
    }

    /// What is read out stands below, where it hides nothing.
    fn read(&self, make: &Maker, model: &ReportModel, here: Option<Pointed>) {
        let read = here.filter(|here| here.chart == Chart::Timeline);
        let Some(read) = read.and_then(|here| read_out(model, here)) else {
            return fill(&self.reading, &[]);
        };
        let mut parts = vec![make.text("code", &[], &read.name)];
        parts.push(make.text("span", &[], &read.place));
        for (name, figure) in &read.figures {
            parts.push(make.text("span", &[], &format!("{name} {figure}")));
        }
        fill(&self.reading, &parts);
    }
}

/// The figures of the item under the pointer.
pub(crate) fn read_out(model: &ReportModel, pointed: Pointed) -> Option<Readout> {
    let (recording, device, units) = (model.recording(), model.state().device, model.units());
    match pointed.target {
        Target::Run(run) => {
            let mut read = readout::of_run(model.reading(pointed)?);
            let at = pointed.at.filter(|_| pointed.chart.has_time());
            let now = at.map(|at| readout::at(recording, device, run, at, units));
            read.figures.extend(now.unwrap_or_default());
            Some(read)
        }
        Target::Part(idx) => {
            let parts = model.segments();
            Some(readout::of_part(parts.get(idx)?, &parts, units))
        }
        Target::Field(idx) => {
            let map = model.map()?;
            Some(readout::of_field(map.fields.get(idx)?, &map, units))
        }
        Target::Look(_) => model.reading(pointed).map(readout::of_run),
    }
}

fn place(overlay: &HtmlElement, left: f64, width: f64) {
    set_style(overlay, "left", &px(left));
    set_style(overlay, "width", &px(width));
}
