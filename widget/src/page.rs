//! The report's elements, and what must change in them when the model does.

use gpumem_core::analyze::{Finding, cell_label};
use gpumem_core::chart::{self, Point, Scene, Target};
use gpumem_core::recording::{CellIdx, RunIdx};
use gpumem_core::report;
use wasm_bindgen::JsCast;
use web_sys::{Element, HtmlCanvasElement, HtmlElement, HtmlInputElement};

use crate::canvas::{Canvas, Faces};
use crate::cards::Card;
use crate::dom::{Dom, Maker, fill, flag};
use crate::model::Model;
use crate::readout::{self, Readout};
use crate::state::{Chart, Choice, State};
use crate::threshold;

/// A chart in the page.
struct Picture {
    chart: Chart,
    figure: HtmlElement,
    canvas: HtmlCanvasElement,
    tip: HtmlElement,
    scene: Scene,
}

/// The report in the page.
pub(crate) struct Page {
    make: Maker,
    root: Element,
    faces: Faces,
    subtitle: Element,
    devices: Element,
    pictures: Vec<Picture>,
    slider: HtmlInputElement,
    slider_value: Element,
    slider_mark: HtmlElement,
    reset: Element,
    list: Element,
    cards: Vec<Card>,
    notes: Element,
    table: Element,
    live: Element,
}

impl Page {
    /// Builds the report under `root` and shows the model.
    pub(crate) fn build(root: &Element, model: &Model) -> Dom<Self> {
        let make = Maker::beside(root)?;
        let subtitle = make.empty("span", &[("class", "muted")])?;
        let devices = make.empty(
            "div",
            &[
                ("class", "segments"),
                ("role", "group"),
                ("aria-label", "device"),
            ],
        )?;
        let name = make.text("h3", &[], "GPU memory")?;
        let header = make.group("header", &[], &[&name, &subtitle, &devices])?;
        let pictures = Chart::ALL
            .into_iter()
            .map(|chart| Picture::build(&make, chart))
            .collect::<Dom<Vec<_>>>()?;
        let slider: HtmlInputElement = make.typed(
            "input",
            &[
                ("type", "range"),
                ("min", "0"),
                ("max", &threshold::LAST.to_string()),
                ("step", "1"),
                ("aria-label", "smallest growth that counts"),
                ("data-input", "threshold"),
            ],
        )?;
        let slider_mark: HtmlElement = make.typed("span", &[("class", "mark")])?;
        let slider_value = make.empty("output", &[])?;
        let reset = make.text(
            "button",
            &[
                ("class", "link"),
                ("type", "button"),
                ("data-action", "default"),
            ],
            "default",
        )?;
        let track = make.group("span", &[("class", "track")], &[&slider, &slider_mark])?;
        let label = make.text("span", &[], "Smallest growth that counts")?;
        let control = make.group(
            "label",
            &[("class", "control")],
            &[&label, &track, &slider_value],
        )?;
        let heading = make.text("h3", &[], "Findings")?;
        let bar = make.group("div", &[("class", "bar")], &[&heading, &control, &reset])?;
        let list = make.empty("div", &[("class", "cards")])?;
        let notes = make.empty("div", &[("class", "notes")])?;
        let table = make.empty("table", &[])?;
        let tables = make.group("div", &[("class", "unseen")], &[&table])?;
        let live = make.empty("div", &[("class", "unseen"), ("aria-live", "polite")])?;
        root.append_child(&header)?;
        for picture in &pictures {
            root.append_child(&picture.figure)?;
        }
        for part in [&bar, &list, &notes, &tables, &live] {
            root.append_child(part)?;
        }
        let mut page = Self {
            make,
            root: root.clone(),
            faces: faces(root)?,
            subtitle,
            devices,
            pictures,
            slider,
            slider_value,
            slider_mark,
            reset,
            list,
            cards: Vec::new(),
            notes,
            table,
            live,
        };
        page.show(model)?;
        Ok(page)
    }

    /// Shows the model from top to bottom.
    pub(crate) fn show(&mut self, model: &Model) -> Dom<()> {
        self.show_header(model)?;
        self.show_threshold(model)?;
        self.show_findings(model)?;
        self.show_pictures(model)
    }

    /// Shows what differs from the state `before`.
    pub(crate) fn update(&mut self, before: &State, model: &Model) -> Dom<()> {
        let state = model.state();
        if before == state {
            return Ok(());
        }
        if before.device != state.device {
            self.show_header(model)?;
            self.show_threshold(model)?;
        }
        self.mark_cards(model)?;
        self.show_pictures(model)
    }

    /// Shows the findings under a threshold that was moved.
    pub(crate) fn judge(&mut self, model: &Model) -> Dom<()> {
        self.show_threshold(model)?;
        self.show_findings(model)?;
        self.show_pictures(model)?;
        let n_findings = model.analysis().findings.len();
        self.say(&format!("findings: {n_findings}"));
        Ok(())
    }

    /// The run at a point of a chart, in logical pixels.
    pub(crate) fn run_at(&self, chart: Chart, point: Point) -> Option<RunIdx> {
        let picture = self
            .pictures
            .iter()
            .find(|picture| picture.chart == chart)?;
        picture.scene.hit(point).and_then(run_of)
    }

    /// The runs of a chart from left to right.
    pub(crate) fn runs_along(&self, chart: Chart) -> Vec<RunIdx> {
        let picture = self.pictures.iter().find(|picture| picture.chart == chart);
        let mut hits = picture.map_or_else(Vec::new, |picture| picture.scene.hits.clone());
        hits.sort_by(|a, b| a.rect.x.total_cmp(&b.rect.x));
        let mut runs: Vec<RunIdx> = hits.iter().filter_map(|hit| run_of(hit.target)).collect();
        runs.dedup();
        runs
    }

    /// Tells those who do not see the page.
    pub(crate) fn say(&self, words: &str) {
        self.live.set_text_content(Some(words));
    }

    /// Reads the run under the keyboard to those who do not see the page.
    pub(crate) fn say_run(&self, model: &Model) {
        if let Some(read) = hovered(model) {
            self.say(&read.sentence());
        }
    }

    /// Reads the page's style anew, and paints both charts.
    pub(crate) fn restyle(&mut self, model: &Model) -> Dom<()> {
        self.faces = faces(&self.root)?;
        self.show_pictures(model)
    }

    fn show_pictures(&mut self, model: &Model) -> Dom<()> {
        for picture in &mut self.pictures {
            picture.show(&self.make, model, &self.faces)?;
        }
        Ok(())
    }

    fn show_header(&self, model: &Model) -> Dom<()> {
        let recording = model.recording();
        flag(&self.root, "data-empty", recording.runs().is_empty())?;
        let device = recording.devices().get(model.state().device.get());
        let label = device.map_or_else(String::new, |device| format!(" · {}", device.label));
        let subtitle = format!("{}{label}", report::counts(recording));
        self.subtitle.set_text_content(Some(&subtitle));
        let mut buttons = Vec::new();
        for device in recording.devices() {
            let pressed = device.idx == model.state().device;
            let button = self.make.text(
                "button",
                &[
                    ("type", "button"),
                    ("data-action", "device"),
                    ("data-argument", &device.idx.0.to_string()),
                    ("aria-pressed", if pressed { "true" } else { "false" }),
                    ("title", &device.name),
                ],
                &device.label,
            )?;
            buttons.push(button);
        }
        flag(&self.devices, "hidden", buttons.len() < 2)?;
        fill(&self.devices, &buttons)
    }

    fn show_threshold(&self, model: &Model) -> Dom<()> {
        let size = model.threshold();
        let usual = model.default_threshold();
        let (position, usual_position) =
            (threshold::position_of(size), threshold::position_of(usual));
        self.slider.set_value(&position.to_string());
        self.slider
            .set_attribute("aria-valuetext", &size.to_string())?;
        self.slider_value.set_text_content(Some(&size.to_string()));
        let share = f64::from(usual_position) / f64::from(threshold::LAST);
        self.slider_mark
            .style()
            .set_property("--at", &format!("{share:.4}"))?;
        self.slider_mark.set_title(&format!("default: {usual}"));
        self.reset
            .set_text_content(Some(&format!("default {usual}")));
        flag(&self.reset, "disabled", size == usual)
    }

    fn show_findings(&mut self, model: &Model) -> Dom<()> {
        let mut earlier = std::mem::take(&mut self.cards);
        for finding in &model.analysis().findings {
            let card = match earlier.iter().position(|card| card.shows(finding)) {
                Some(idx) => earlier.swap_remove(idx),
                None => self.new_card(model, finding, &earlier)?,
            };
            self.cards.push(card);
        }
        let mut elements: Vec<Element> = self
            .cards
            .iter()
            .map(|card| card.element().clone())
            .collect();
        if elements.is_empty() {
            elements.push(self.nothing_found(model)?);
        }
        fill(&self.list, &elements)?;
        let notes = model
            .analysis()
            .warnings
            .iter()
            .map(|warning| self.make.text("p", &[], warning))
            .collect::<Dom<Vec<_>>>()?;
        fill(&self.notes, &notes)?;
        self.show_table(model)?;
        self.mark_cards(model)
    }

    fn new_card(&self, model: &Model, finding: &Finding, earlier: &[Card]) -> Dom<Card> {
        let devices = model.recording().devices();
        let device = devices.get(finding.device.get());
        let label = device
            .filter(|_| devices.len() > 1)
            .map(|device| device.label.as_str());
        let card = Card::new(&self.make, finding, label)?;
        if let Some(old) = earlier.iter().find(|card| card.follows(finding)) {
            card.take_over(old)?;
        }
        Ok(card)
    }

    fn nothing_found(&self, model: &Model) -> Dom<Element> {
        let recording = model.recording();
        if recording.runs().is_empty() {
            return self.make.prose(
                "p",
                &[("class", "empty")],
                "Nothing is recorded yet: put `%%gpumem` above a cell, or run `%gpumem on`.",
            );
        }
        let devices: Vec<&str> = recording
            .devices()
            .iter()
            .map(|d| d.label.as_str())
            .collect();
        let checked = format!(
            "✓ Nothing found. {} on {} checked for memory that stays after each run, \
             and for memory that is free only in pieces; growth below {} does not count.",
            report::counts(recording),
            devices.join(" and "),
            model.threshold(),
        );
        self.make.text("p", &[("class", "empty")], &checked)
    }

    fn mark_cards(&self, model: &Model) -> Dom<()> {
        let state = model.state();
        let hovered = state.hovered.map(|(_, run)| run);
        let findings = &model.analysis().findings;
        for (card, finding) in self.cards.iter().zip(findings) {
            let chosen = match &state.chosen {
                None => false,
                Some(Choice::Finding(id)) => *id == finding.id,
                Some(Choice::Cell(cell)) => finding
                    .cell
                    .as_ref()
                    .is_some_and(|found| found.idx == *cell),
            };
            card.mark(chosen, hovered)?;
        }
        Ok(())
    }

    fn show_table(&self, model: &Model) -> Dom<()> {
        let caption = self
            .make
            .text("caption", &[], "Cells and what was found in them")?;
        let head = self.make.empty("tr", &[])?;
        for name in ["cell", "runs", "last run", "findings"] {
            head.append_child(&self.make.text("th", &[("scope", "col")], name)?.into())?;
        }
        let mut rows = vec![caption, head];
        for cell in model.recording().cells() {
            rows.push(self.cell_row(model, cell.idx)?);
        }
        fill(&self.table, &rows)
    }

    fn cell_row(&self, model: &Model, cell: CellIdx) -> Dom<Element> {
        let recording = model.recording();
        let runs = || recording.runs().iter().filter(|run| run.cell == cell);
        let device = model.state().device;
        let last = runs().next_back().map(|run| {
            let read = readout::of_run(recording, model.analysis(), device, run.idx);
            (cell_label(recording, run), read.sentence())
        });
        let (name, last) = last.unwrap_or_default();
        let is_of_cell =
            |finding: &&Finding| finding.cell.as_ref().is_some_and(|found| found.idx == cell);
        let findings = model.analysis().findings.iter();
        let found: Vec<&str> = findings.filter(is_of_cell).map(report::word).collect();
        self.make.group(
            "tr",
            &[],
            &[
                &self.make.text("th", &[("scope", "row")], &name)?,
                &self.make.text("td", &[], &runs().count().to_string())?,
                &self.make.text("td", &[], &last)?,
                &self.make.text("td", &[], &found.join(", "))?,
            ],
        )
    }
}

impl Picture {
    fn build(make: &Maker, chart: Chart) -> Dom<Self> {
        let canvas: HtmlCanvasElement = make.typed(
            "canvas",
            &[
                ("data-chart", chart.name()),
                ("tabindex", "0"),
                ("role", "application"),
                ("aria-roledescription", "chart"),
            ],
        )?;
        let tip: HtmlElement = make.typed("div", &[("class", "tip"), ("hidden", "")])?;
        let figure = make.group("figure", &[("class", "panel")], &[&canvas, &tip])?;
        Ok(Self {
            chart,
            figure: figure.dyn_into()?,
            canvas,
            tip,
            scene: Scene::default(),
        })
    }

    fn show(&mut self, make: &Maker, model: &Model, faces: &Faces) -> Dom<()> {
        self.scene = model.scene(self.chart);
        self.canvas
            .set_attribute("aria-label", &self.scene.description)?;
        self.paint(model, faces)?;
        self.show_tip(make, model)
    }

    fn paint(&self, model: &Model, faces: &Faces) -> Dom<()> {
        let style = self.canvas.style();
        style.set_property("width", &format!("{}px", self.scene.width))?;
        style.set_property("height", &format!("{}px", self.scene.height))?;
        let canvas = Canvas::of(&self.canvas, self.scene.device_size(model.scale), faces);
        let mut canvas = canvas.ok_or("the page gives no drawing context")?;
        chart::paint(&self.scene, model.theme, model.scale, &mut canvas)
            .map_err(|error| error.to_string().into())
    }

    /// The read-out stands beside its run, on the side where there is room.
    fn show_tip(&self, make: &Maker, model: &Model) -> Dom<()> {
        let here = model
            .state()
            .hovered
            .filter(|(chart, _)| *chart == self.chart);
        let read = here.and_then(|_| hovered(model));
        flag(&self.tip, "hidden", read.is_none())?;
        let (Some((_, run)), Some(read)) = (here, read) else {
            return Ok(());
        };
        fill(&self.tip, &tip_content(make, &read)?)?;
        let hit = self
            .scene
            .hits
            .iter()
            .find(|hit| run_of(hit.target) == Some(run));
        let (left, right) = hit.map_or((0.0, 0.0), |hit| (hit.rect.x, hit.rect.x + hit.rect.width));
        let width = f64::from(self.tip.offset_width());
        let gap = 8.0;
        let x = if right + gap + width <= self.scene.width {
            right + gap
        } else {
            (left - gap - width).max(0.0)
        };
        self.tip
            .style()
            .set_property("transform", &format!("translate({x:.1}px, 0)"))
    }
}

fn tip_content(make: &Maker, read: &Readout) -> Dom<Vec<Element>> {
    let list = make.empty("dl", &[])?;
    for (name, figure) in &read.figures {
        list.append_child(&make.text("dt", &[], name)?.into())?;
        list.append_child(&make.text("dd", &[], figure)?.into())?;
    }
    Ok(vec![
        make.text("b", &[], &read.name)?,
        make.text("span", &[("class", "muted")], &read.place)?,
        list,
    ])
}

fn hovered(model: &Model) -> Option<Readout> {
    let (_, run) = model.state().hovered?;
    let device = model.state().device;
    Some(readout::of_run(
        model.recording(),
        model.analysis(),
        device,
        run,
    ))
}

fn run_of(target: Target) -> Option<RunIdx> {
    match target {
        Target::Run(run) => Some(run),
        _ => None,
    }
}

/// The faces that the report's style gives text and code.
fn faces(root: &Element) -> Dom<Faces> {
    let window = web_sys::window().ok_or("no window")?;
    let style = window.get_computed_style(root)?.ok_or("no style")?;
    let face = |name: &str, otherwise: &str| {
        let found = style.get_property_value(name).unwrap_or_default();
        if found.trim().is_empty() {
            otherwise.to_owned()
        } else {
            found
        }
    };
    Ok(Faces {
        sans: face("font-family", "sans-serif"),
        mono: face("--mono", "monospace"),
    })
}
