//! The elements of the page.

use gpumem_analyzer::Severity;
use gpumem_explorer::process_page::{PageAxis, PageCause, ProcessPage, middle};
use gpumem_model::units::Nanos;
use gpumem_page_kit::canvas::Faces;
use gpumem_page_kit::dom::{Maker, add, fill, flag, refill, set_attribute, write};
use gpumem_page_kit::paint::faces;
use gpumem_scene::Point;
use gpumem_wording::Sign;
use gpumem_wording::capitalised;
use web_sys::Element;

use super::ProcessesModel;
use super::multiples::Grid;
use super::rows::ProcessesTable;
use super::state::{N_FIRST, ProcessesState};
use crate::UNITS;

const HINT: &str =
    "Point at a chart to read all of them at that instant; click one to find it in the table.";

/// What is in the page.
pub(crate) struct ProcessesPage {
    make: Maker,
    root: Element,
    faces: Faces,
    causes: Element,
    grid: Grid,
    reading: Element,
    more: Element,
    rows: ProcessesTable,
}

impl ProcessesPage {
    pub(crate) fn build(
        root: &Element,
        known: &ProcessesModel,
        state: &ProcessesState,
        name: &str,
    ) -> Self {
        let make = Maker::beside(root);
        let shown = &known.page;
        let title = make.text("h2", &[], &capitalised(&shown.title));
        let file = make.text("span.muted", &[], name);
        let head = make.group("div.line.name", &[], &[&title, &file]);
        let causes = make.empty("section.verdict.causes", &[]);

        let title = match shown.axis {
            PageAxis::Time => "Memory over time",
            PageAxis::Steps => "Memory over steps",
        };
        let charts_title = make.text("h3", &[], title);
        let legend = legend(&make, known);
        let line = make.group("div.line", &[], &[&charts_title, &legend]);
        let reading = make.empty("p.reading", &[("role", "status")]);
        let grid = Grid::build(&make);
        let more = make.empty("div.more", &[]);
        let children = [&line, &reading, grid.element(), &more];
        let charts = make.group("section.panel.multiples", &[], &children);
        flag(&charts, "hidden", shown.rows.is_empty());

        let rows = ProcessesTable::build(&make, shown);
        flag(rows.panel(), "hidden", shown.rows.is_empty());
        let notes = make.empty("div.notes", &[]);
        for note in &shown.notes {
            add(&notes, &make.text("p.muted", &[], note));
        }
        for element in [&head, &causes, &charts, rows.panel(), &notes] {
            add(root, element);
        }
        let mut page = Self {
            faces: faces(root),
            root: root.clone(),
            causes,
            grid,
            reading,
            more,
            rows,
            make,
        };
        page.show(known, state);
        page
    }

    /// Everything in words, and the charts.
    pub(crate) fn show(&mut self, known: &ProcessesModel, state: &ProcessesState) {
        self.show_causes(&known.page, state);
        self.show_more(&known.page, state);
        self.show_rows(known, state);
        self.write_reading(known, state);
        self.paint(known, state);
    }

    pub(crate) fn show_rows(&mut self, known: &ProcessesModel, state: &ProcessesState) {
        self.rows.show(&self.make, &known.page, state);
    }

    /// The conclusion: the worst cause is the headline.
    fn show_causes(&self, page: &ProcessPage, state: &ProcessesState) {
        let make = &self.make;
        if page.causes.is_empty() {
            let sign = if page.rows.is_empty() {
                Sign::Note
            } else {
                Sign::Fine
            };
            let tone = sign.glyph();
            let words = if page.rows.is_empty() {
                "Nothing was recorded here."
            } else {
                &page.healthy
            };
            let sign = make.text("span.sign", &[("data-sign", tone)], tone);
            let words = make.text("p.headline", &[], words);
            let line = make.group("div.cause", &[], &[&sign, &words]);
            return fill(&self.causes, &[line]);
        }
        let lines = page.causes.iter().enumerate();
        let lines = lines.map(|(idx, cause)| self.cause(idx, cause, page, state));
        refill(&self.causes, &lines.collect::<Vec<_>>());
    }

    fn cause(
        &self,
        idx: usize,
        cause: &PageCause,
        page: &ProcessPage,
        state: &ProcessesState,
    ) -> Element {
        let make = &self.make;
        let sign = Sign::from(cause.severity).glyph();
        let mark = make.text("span.sign", &[("data-sign", sign)], sign);
        let words = if cause.words.starts_with(&page.noun) {
            capitalised(&cause.words)
        } else {
            // It may begin with a process's own name.
            cause.words.clone()
        };
        let tag = if idx == 0 { "p.headline" } else { "p" };
        let words = make.text(tag, &[], &words);
        let argument = idx.to_string();
        let is_chosen = state.row.is_none() && state.cause == Some(idx);
        let rows = make.text(
            "button.link",
            &[
                ("data-action", "cause"),
                ("data-argument", &argument),
                ("aria-pressed", if is_chosen { "true" } else { "false" }),
            ],
            &match cause.rows.len() {
                1 => "Show it".to_owned(),
                n => format!("Show all {n}"),
            },
        );
        let line = make.group("div.cause", &[], &[&mark, &words, &rows]);
        if idx == 0 && cause.severity == Severity::Critical {
            set_attribute(&line, "data-tone", "leak");
        }
        // One command is enough: it is for the worst cause.
        if idx == 0 && !cause.command.is_empty() {
            let code = make.text("code", &[], &cause.command);
            let words = make.text(
                "span.muted",
                &[],
                "Its own report, with holders and fixes: ",
            );
            add(&line, &make.group("p.command", &[], &[&words, &code]));
        }
        line
    }

    /// `… and 488 more alike`
    fn show_more(&self, page: &ProcessPage, state: &ProcessesState) {
        let n_more = page.rows.len().saturating_sub(N_FIRST);
        flag(&self.more, "hidden", n_more == 0);
        let link = if state.is_open {
            self.make.link("charts", "few", "Show only the first ones")
        } else {
            let alike = if page.n_outliers() <= N_FIRST {
                " alike"
            } else {
                ""
            };
            let words = format!("… and {n_more} more{alike}");
            self.make.link("charts", "all", &words)
        };
        refill(&self.more, &[link]);
    }

    pub(crate) fn paint(&mut self, known: &ProcessesModel, state: &ProcessesState) {
        self.grid.fit(&self.make, known, state);
        if state.width > 0.0 {
            self.grid.paint(known, state, &self.faces);
        }
    }

    /// The theme is another one.
    pub(crate) fn restyle(&mut self, known: &ProcessesModel, state: &ProcessesState) {
        self.faces = faces(&self.root);
        self.paint(known, state);
    }

    /// What is pointed at, in all charts and in words.
    pub(crate) fn read(&mut self, known: &ProcessesModel, state: &ProcessesState) {
        self.write_reading(known, state);
        if state.width > 0.0 {
            self.grid.follow(known, state, &self.faces);
        }
    }

    fn write_reading(&self, known: &ProcessesModel, state: &ProcessesState) {
        let words = state
            .place()
            .and_then(|(row, at)| reading(&known.page, row, at));
        write(&self.reading, words.as_deref().unwrap_or(HINT));
    }

    pub(crate) fn place(&self, chart: &str, at: Point, span: Nanos) -> Option<(usize, Nanos)> {
        self.grid.place(chart, at, span)
    }

    pub(crate) fn has_chart(&self, chart: &str) -> bool {
        self.grid.has(chart)
    }
}

/// `At 12.3 s: rank 2 holds 31 GiB · all: median 12 GiB, middle half 11.9 GiB to 12.1 GiB`
fn reading(page: &ProcessPage, row: usize, at: Nanos) -> Option<String> {
    let row = page.rows.get(row)?;
    let level = match (row.level_at(at), page.axis) {
        (Some(level), PageAxis::Time) => format!("holds {}", UNITS.size(level)),
        (Some(level), PageAxis::Steps) => format!("has +{}", UNITS.size(level)),
        (None, _) if at > row.until => "has ended".to_owned(),
        (None, _) => "is not known".to_owned(),
    };
    let place = page.place_words(at);
    let mut words = format!("At {place}: {} {level}", row.name);
    if let Some(band) = middle(page, at) {
        let [low, median, high] = [band.low, band.median, band.high].map(|it| UNITS.size(it));
        words = format!("{words} · median {median}, middle half {low} to {high}");
    }
    Some(words)
}

/// What the charts share: their scale, and what is behind each.
fn legend(make: &Maker, known: &ProcessesModel) -> Element {
    let page = &known.page;
    let legend = make.empty("div.legend", &[]);
    let scale = page.scale_words(UNITS);
    add(&legend, &make.text("span.muted", &[], &scale));
    if !known.bands.is_empty() {
        for (class, words) in [("median", "median of all"), ("middle", "middle half")] {
            add(&legend, &make.legend_entry(class, words));
        }
    }
    let ended = page.rows.iter().filter(|row| row.end.is_some()).count();
    if ended > 0 {
        let words = format!("✕ {ended} ended badly");
        add(&legend, &make.text("span", &[], &words));
    }
    legend
}
