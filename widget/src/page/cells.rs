//! What each cell kept: a row for each on one axis of runs, and all of them over time below.

use gpumem_charts::{CellMeasure, CellRow, HiddenRows};
use gpumem_model::recording::{CellIdx, DeviceIdx, RunIdx};
use gpumem_model::severity::Severity;
use gpumem_model::units::ByteDelta;
use gpumem_page_kit::paint::{paint_scene, px};
use gpumem_scene::{Point, Target, Theme};
use gpumem_wording::Sign;
use wasm_bindgen::JsCast;
use web_sys::{Element, HtmlCanvasElement, HtmlElement, HtmlInputElement};

use super::controls::{press, segments};
use super::long_run::LongRunChart;
use super::opened;
use crate::canvas::Faces;
use crate::dom::{
    Maker, add, describe, fill, flag, focus, put, set_attribute, set_bool, set_style, share, write,
};
use crate::full;
use crate::model::ReportModel;
use crate::state::{Chart, Choice, Pointed, cells_with};

/// Further rows are summarised in one line.
const MAX_ROWS: usize = 8;
/// From this number of cells on there is a search field.
const MANY: usize = 20;
const MEASURES: [(&str, &str); 2] = [("total", "total"), ("run", "per run")];

/// What the rows were shown for, besides what is pointed at.
#[derive(Clone, PartialEq)]
struct PaintedRows {
    version: u64,
    device: DeviceIdx,
    width: f64,
    measure: CellMeasure,
    theme: Theme,
    scale: f64,
}

/// A cell in the page.
struct CellElement {
    cell: CellIdx,
    element: Element,
    button: HtmlElement,
    sign: Element,
    name: Element,
    number: Element,
    canvas: HtmlCanvasElement,
    total: Element,
    bar: HtmlElement,
    state: Element,
    opened: Element,
    /// The chart of an open row whose run has a loop.
    long_run: Option<LongRunChart>,
    painted: Option<PaintedRows>,
}

/// The panel of the cells.
pub(crate) struct CellsPanel {
    pub(crate) element: Element,
    title: Element,
    legend: Element,
    measures: Element,
    search: HtmlInputElement,
    found: Element,
    heads: [Element; 2],
    head_line: Element,
    reading: Element,
    list: Element,
    rest: Element,
    rest_words: Element,
    more: Element,
    line: HtmlElement,
    rows: Vec<CellElement>,
}

impl CellsPanel {
    /// The panel around the canvas of all cells over time.
    pub(crate) fn build(make: &Maker, over_time: &Element) -> Self {
        let title = make.text("h2", &[], "What each cell kept");
        let legend = make.empty("span.key", &[]);
        let search: HtmlInputElement = make.typed(
            "input.search",
            &[
                ("type", "search"),
                ("placeholder", "Find a cell  /"),
                ("aria-label", "find cells by their source"),
                ("data-input", "search"),
                ("autocomplete", "off"),
                ("spellcheck", "false"),
                ("dir", "auto"),
            ],
        );
        let found = make.empty("output.muted", &[]);
        let measures = segments(make, "rows show", "measure", &MEASURES);
        let tools = make.group("div.tools", &[], &[&found, &search, &measures]);
        let top = make.group("div.line", &[], &[&title, &legend, &tools]);
        let heads = [
            make.empty("span.of-chart", &[]),
            make.empty("span.of-total", &[]),
        ];
        let scale = make.text("span.of-scale", &[], "to scale");
        let head_line = make.group("div.heads", &[], &[&heads[0], &heads[1], &scale]);
        let reading = make.empty("p.read", &[("dir", "auto"), ("hidden", "")]);
        let head = make.group("div.column-heads", &[], &[&head_line, &reading]);
        let label = [("role", "list"), ("aria-label", "cells")];
        let list = make.empty("div.rows", &label);
        let rest_words = make.empty("span", &[("dir", "auto")]);
        let more = make.link("rows", "", "show all");
        let rest = make.group("p.rest.muted", &[], &[&rest_words, &more]);
        let line: HtmlElement = make.typed("div.pointer", &[("hidden", "")]);
        let below = over_time_words(make);
        let over = make.group("div.over", &[], &[&below, over_time]);
        let charts = make.group("div.charts", &[], &[&list, &rest, &over, &line]);
        let element = make.group(
            "figure.panel.cells",
            &[("aria-label", "what each cell kept")],
            &[&top, &head, &charts],
        );
        Self {
            element,
            title,
            legend,
            measures,
            search,
            found,
            heads,
            head_line,
            reading,
            list,
            rest,
            rest_words,
            more,
            line,
            rows: Vec::new(),
        }
    }

    /// Shows the rows of the model; one that stays is the same element.
    pub(crate) fn show(&mut self, make: &Maker, model: &ReportModel, faces: &Faces) {
        let (state, cells) = (model.state(), model.cells());
        self.show_words(make, model);
        let meant = self.meant(model);
        let is_searching = matches!(state.chosen, Some(Choice::Search(_)));
        let n_shown = if state.all_rows || is_searching {
            meant.len()
        } else {
            meant.len().min(MAX_ROWS)
        };
        let lit = state.chosen_cell(model.analysis());
        let is_shown = |place: usize, row: &CellRow| {
            place < n_shown || lit == Some(row.cell) || state.row == Some(row.cell)
        };
        let mut earlier = std::mem::take(&mut self.rows);
        for (place, row) in meant.iter().enumerate() {
            if !is_shown(place, row) {
                continue;
            }
            let known = earlier.iter().position(|it| it.cell == row.cell);
            let mut view = match known {
                Some(idx) => earlier.swap_remove(idx),
                None => CellElement::build(make, row.cell),
            };
            view.show(make, model, row, lit);
            self.rows.push(view);
        }
        let elements: Vec<Element> = self.rows.iter().map(|row| row.element.clone()).collect();
        put(&self.list, &elements);
        self.repaint(make, model, faces);
        let rest = HiddenRows {
            rows: if is_searching {
                &[]
            } else {
                &cells.rows[n_shown.min(cells.rows.len())..]
            },
            n_cells: cells.rows.len(),
        };
        self.rest_words
            .set_text_content(Some(&rest.describe(state.units)));
        write(
            &self.more,
            if state.all_rows {
                "show fewer"
            } else {
                "show all"
            },
        );
        let is_all = meant.len() <= MAX_ROWS || is_searching;
        flag(&self.rest, "hidden", is_all);
        self.read(make, model);
    }

    /// Paints the rows whose pictures are others.
    pub(crate) fn repaint(&mut self, make: &Maker, model: &ReportModel, faces: &Faces) {
        for row in &mut self.rows {
            let mut rows = model.cells().rows.iter();
            if let Some(of) = rows.find(|of| of.cell == row.cell) {
                row.paint(make, model, of, faces);
            }
        }
    }

    /// The pixels of the page are others.
    pub(crate) fn forget(&mut self) {
        for row in &mut self.rows {
            row.painted = None;
        }
    }

    /// One line through every chart, and its run in place of the heads.
    pub(crate) fn read(&self, make: &Maker, model: &ReportModel) {
        let pointed = model.state().pointed;
        let reading = pointed.and_then(|it| model.reading(it));
        // The chart of one run has its own line.
        let is_inside = pointed.is_some_and(|it| it.chart == Chart::Run);
        let run = pointed.and_then(Pointed::run).filter(|_| !is_inside);
        flag(&self.line, "hidden", run.is_none() || reading.is_none());
        self.show_in_run(model);
        flag(&self.head_line, "hidden", reading.is_some());
        flag(&self.reading, "hidden", reading.is_none());
        let Some(reading) = reading else { return };
        if let Some(run) = run {
            let layout = model.layout();
            let share = model.cells().slots.middle(run);
            let x = layout.chart_left() + share * layout.chart_width();
            set_style(&self.line, "left", &px(x - 0.5));
        }
        let place = make.text("span", &[], &reading.place);
        let name = make.text("code", &[], &reading.name);
        let words = make.text("span", &[], &reading.words);
        fill(&self.reading, &[place, name, words]);
    }

    /// The run under a place of a row's chart, or of the chart over time.
    pub(crate) fn run_at(model: &ReportModel, x: f64, is_row: bool) -> Option<RunIdx> {
        let layout = model.layout();
        let left = if is_row { 0.0 } else { layout.chart_left() };
        let reach = -6.0..=layout.chart_width() + 6.0;
        let x = Some(x - left).filter(|x| reach.contains(x))?;
        model.cells().slots.run_at(x / layout.chart_width())
    }

    /// The chart of the long run in the open row, and its cell.
    fn long_run(&self) -> Option<(&LongRunChart, CellIdx)> {
        let mut rows = self.rows.iter();
        rows.find_map(|row| Some((row.long_run.as_ref()?, row.cell)))
    }

    fn show_in_run(&self, model: &ReportModel) {
        if let Some((chart, cell)) = self.long_run()
            && let Some(run) = model.long_run(cell)
        {
            chart.show_pointed(model, &run);
        }
    }

    /// What is at a point of the chart of the long run.
    pub(crate) fn pointed_in_run(&self, model: &ReportModel, point: Point) -> Option<Pointed> {
        let (chart, cell) = self.long_run()?;
        chart.pointed_at(&model.long_run(cell)?, point)
    }

    /// What the keyboard walks along in the chart of the long run.
    pub(crate) fn targets_in_run(model: &ReportModel) -> Vec<Target> {
        let run = model.state().row.and_then(|cell| model.long_run(cell));
        run.map_or_else(Vec::new, |run| LongRunChart::targets(&run))
    }

    /// The row that the keyboard is on, by its place.
    fn at_keyboard(&self) -> Option<usize> {
        let is_there = |row: &CellElement| row.button.matches(":focus").unwrap_or_default();
        self.rows.iter().position(is_there)
    }

    /// The runs of the row that the keyboard is on.
    pub(crate) fn runs_at_keyboard(&self, model: &ReportModel) -> Vec<RunIdx> {
        let cell = self.at_keyboard().map(|place| self.rows[place].cell);
        let mut rows = model.cells().rows.iter();
        let row = rows.find(|row| Some(row.cell) == cell);
        row.map_or_else(Vec::new, |row| row.runs.clone())
    }

    /// Moves the keyboard focus by some rows; false if there is no such row.
    pub(crate) fn step(&self, by: isize) -> bool {
        let place = self
            .at_keyboard()
            .and_then(|place| place.checked_add_signed(by));
        match place.and_then(|place| self.rows.get(place)) {
            Some(row) => {
                focus(&row.button);
                true
            }
            None => false,
        }
    }

    /// Brings the row that is picked out into view.
    pub(crate) fn reveal(&self, cell: CellIdx) {
        if let Some(row) = self.rows.iter().find(|row| row.cell == cell) {
            row.element.scroll_into_view();
        }
    }

    /// The keyboard goes into the field that finds cells.
    pub(crate) fn focus_search(&self) {
        flag(&self.search, "hidden", false);
        focus(&self.search);
    }

    fn show_words(&self, make: &Maker, model: &ReportModel) {
        let (state, cells) = (model.state(), model.cells());
        let n_accelerators = model.recording().devices().iter();
        let n_accelerators = n_accelerators
            .filter(|device| device.kind.is_accelerator())
            .count();
        let device = model.recording().devices().get(state.device.get());
        let device = device.filter(|_| n_accelerators > 1);
        let on = device.map_or(String::new(), |device| format!(" on {}", device.label));
        write(&self.title, &format!("What each cell kept{on}"));
        fill(&self.legend, &legend(make, model));
        let (pressed, words, total) = match state.measure {
            CellMeasure::Total => (
                "total",
                "kept so far, run by run; each row has its own height",
                "cell total",
            ),
            CellMeasure::PerRun => (
                "run",
                "kept by each run; each row has its own height",
                "last run",
            ),
        };
        press(&self.measures, pressed);
        write(&self.heads[0], words);
        write(&self.heads[1], total);
        let text = match &state.chosen {
            Some(Choice::Search(text)) => text.as_str(),
            _ => "",
        };
        // While the reader types, the field has blanks that the search does not.
        if self.search.value().trim() != text {
            self.search.set_value(text);
        }
        let is_there = cells.rows.len() > MANY || !text.is_empty();
        let is_typing = self.search.matches(":focus").unwrap_or_default();
        flag(&self.search, "hidden", !is_there && !is_typing);
        let found = (!text.is_empty()).then(|| format!("{} found", self.meant(model).len()));
        self.found.set_text_content(found.as_deref());
    }

    /// The rows that match the search. Their order stays during a run and while the pointer is on them.
    fn meant<'a>(&self, model: &'a ReportModel) -> Vec<&'a CellRow> {
        let rows = &model.cells().rows;
        let mut meant: Vec<&CellRow> = match &model.state().chosen {
            Some(Choice::Search(text)) => {
                let found = cells_with(model.recording(), text);
                let is_found = |row: &&CellRow| found.contains(&row.cell);
                rows.iter().filter(is_found).collect()
            }
            _ => rows.iter().collect(),
        };
        let runs = model.recording().runs();
        let goes_on = runs.last().is_some_and(|run| run.ended.is_none());
        if goes_on || model.state().pointed.is_some() {
            let place = |cell: CellIdx| self.rows.iter().position(|row| row.cell == cell);
            meant.sort_by_key(|row| place(row.cell).unwrap_or(usize::MAX));
        }
        meant
    }
}

impl CellElement {
    fn build(make: &Maker, cell: CellIdx) -> Self {
        let idx = cell.0.to_string();
        let sign = make.empty("span.sign", &[]);
        let name = make.empty("code", &[("dir", "auto")]);
        let number = make.empty("span.muted.number", &[]);
        let button = make.group(
            "button.name",
            &[
                ("data-chart", "row"),
                ("data-action", "row"),
                ("data-argument", &idx),
            ],
            &[&sign, &name, &number],
        );
        let canvas: HtmlCanvasElement = make.typed(
            "canvas",
            &[
                ("data-chart", "row"),
                ("data-action", "row"),
                ("data-argument", &idx),
                ("aria-hidden", "true"),
            ],
        );
        let total = make.empty("b.total", &[]);
        let bar: HtmlElement = make.typed("i", &[]);
        let scale = make.group("span.scale", &[], &[&bar]);
        let state = make.empty("span.state.muted", &[]);
        let opened = make.empty("div.opened", &[("hidden", "")]);
        let element = make.group(
            "div.cell",
            &[("role", "listitem")],
            &[&button, &canvas, &total, &scale, &state, &opened],
        );
        Self {
            cell,
            element,
            button: button.unchecked_into(),
            sign,
            name,
            number,
            canvas,
            total,
            bar,
            state,
            opened,
            long_run: None,
            painted: None,
        }
    }

    fn show(&mut self, make: &Maker, model: &ReportModel, row: &CellRow, lit: Option<CellIdx>) {
        let state = model.state();
        let (sign, severity) = row.sign.map_or(("", ""), |(sign, severity)| match sign {
            Sign::Alert => (sign.glyph(), Severity::Critical.name()),
            _ => (sign.glyph(), severity.name()),
        });
        write(&self.sign, sign);
        write(&self.name, &row.name);
        describe(&self.button, "title", &row.name);
        let number = row
            .execution_count
            .map_or(String::new(), |n| format!("In [{n}]"));
        write(&self.number, &number);
        let change = match state.measure {
            CellMeasure::Total => Some(row.total),
            CellMeasure::PerRun => row.last,
        };
        let total = change.map_or_else(|| "?".to_owned(), |it| state.units.change(it));
        write(&self.total, &total);
        flag(
            &self.total,
            "data-none",
            change.unwrap_or_default() == ByteDelta::ZERO,
        );
        let largest = model.cells().largest().as_f64().max(1.0);
        share(&self.bar, (row.total.as_f64() / largest).max(0.0));
        flag(&self.bar, "hidden", row.total <= ByteDelta::ZERO);
        write(&self.state, &row.state);
        set_attribute(&self.element, "data-severity", severity);
        flag(&self.element, "data-leak", row.is_leak);
        flag(&self.element, "data-lit", lit == Some(row.cell));
        let is_open = state.row == Some(row.cell);
        set_bool(&self.button, "aria-expanded", is_open);
        flag(&self.opened, "hidden", !is_open);
        let long_run = is_open.then(|| model.long_run(row.cell)).flatten();
        let mut content = Vec::new();
        self.long_run = long_run.as_ref().map(|run| {
            let known = self.long_run.take();
            let mut chart = known.unwrap_or_else(|| LongRunChart::build(make));
            chart.show(make, run, model.units());
            content.push(chart.element.clone());
            chart
        });
        flag(&self.opened, "data-long", long_run.is_some());
        if is_open {
            self.painted = None;
            content.extend(opened::content(make, model, row, long_run.is_some()));
        }
        put(&self.opened, &content);
    }

    fn paint(&mut self, make: &Maker, model: &ReportModel, row: &CellRow, faces: &Faces) {
        let state = model.state();
        let wanted = PaintedRows {
            version: model.version(),
            device: state.device,
            width: model.layout().chart_width(),
            measure: state.measure,
            theme: model.theme,
            scale: model.scale,
        };
        if self.painted.as_ref() == Some(&wanted) {
            return;
        }
        let scene = model.cells().row_scene(row, wanted.width, wanted.measure);
        paint_scene(&self.canvas, &scene, model.theme, model.scale, faces);
        self.painted = Some(wanted);
        if state.row != Some(row.cell) {
            return;
        }
        if let Some(finding) = opened::finding(model, row) {
            full::draw(make, model, finding, (&self.opened, faces));
        }
        if let Some(chart) = &mut self.long_run
            && let Some(run) = model.long_run(row.cell)
        {
            chart.paint(model, &run, faces);
        }
    }
}

/// The legend of the rows' colours, for the colours in use.
fn legend(make: &Maker, model: &ReportModel) -> Vec<Element> {
    let rows = &model.cells().rows;
    let entries = [
        ("leak", "▲ leak", rows.iter().any(|row| row.is_leak)),
        ("kept", "kept", true),
        (
            "back",
            "given back",
            model.state().measure == CellMeasure::Total,
        ),
        ("oom", "out of memory", model.cells().has_oom()),
        ("running", "still running", model.cells().is_hatched()),
    ];
    let shown = entries.into_iter().filter(|(_, _, is_there)| *is_there);
    let entry = |(class, words, _): (&str, &str, bool)| {
        let swatch = make.text(
            "i",
            &[("class", class)],
            if class == "oom" { "✕" } else { "" },
        );
        let words = make.text("span", &[], words);
        make.group("span", &[], &[&swatch, &words])
    };
    shown.map(entry).collect()
}

/// What stands beside the chart over time, or above it.
fn over_time_words(make: &Maker) -> Element {
    let title = make.text("h3", &[], "All cells, over time");
    let what = make.text("p.muted", &[], "in use after each run");
    let key = make.empty("p.key", &[]);
    for (class, words) in [
        ("back", "given back by its end"),
        ("leak", "▲ leaks"),
        ("area", "kept"),
        ("cache", "cache"),
        ("before", "baseline"),
    ] {
        let swatch = make.empty("i", &[("class", class)]);
        let words = make.text("span", &[], words);
        add(
            &key,
            &make.group("span", &[("class", class)], &[&swatch, &words]),
        );
    }
    make.group("div.beside-chart", &[], &[&title, &what, &key])
}
