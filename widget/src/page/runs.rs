//! Runs in a table, which can be sorted.

use std::cmp::Ordering;

use gpumem_analyzer::{Peak, RunRow};
use gpumem_model::recording::{Run, RunIdx};
use gpumem_model::units::{ByteDelta, Bytes, Nanos};
use gpumem_wording::{others, together};
use web_sys::Element;

use crate::dom::{Maker, add, set_attribute};
use crate::model::ReportModel;
use crate::readout;
use crate::state::Order;

/// More runs than this are counted: the export has all of them.
const MOST: usize = 200;
const COLUMNS: [&str; 7] = [
    "run",
    "cell",
    "kept",
    "in use after",
    "peak",
    "took",
    "ended",
];
/// Where the columns of figures begin and end.
const FIGURES: std::ops::RangeInclusive<usize> = 2..=5;

/// A run of the table.
struct RunLine {
    run: RunIdx,
    number: String,
    cell: String,
    kept: Option<ByteDelta>,
    after: Option<Bytes>,
    peak: Option<Bytes>,
    took: Option<Nanos>,
    /// How it ended, if not well, and what it kept together with others.
    ended: String,
}

/// The table of all runs, sorted as the reader wants it.
pub(crate) fn all(make: &Maker, model: &ReportModel) -> Vec<Element> {
    let order = model.state().order;
    let runs = model.cells().slots.runs();
    let mut lines: Vec<RunLine> = lines(model, runs);
    lines.sort_by(|a, b| {
        let ordering = compare(a, b, order.column);
        if order.is_rising {
            ordering
        } else {
            ordering.reverse()
        }
    });
    let n_more = lines.len().saturating_sub(MOST);
    lines.truncate(MOST);
    let mut content = vec![build(make, model, &lines, Some(order))];
    if n_more > 0 {
        let words = format!("{n_more} more: Export, Runs (CSV) has all");
        content.push(make.text("p.muted", &[], &words));
    }
    content
}

/// A table of these runs.
pub(crate) fn table(make: &Maker, model: &ReportModel, runs: &[RunIdx]) -> Element {
    build(make, model, &lines(model, runs), None)
}

fn lines(model: &ReportModel, runs: &[RunIdx]) -> Vec<RunLine> {
    let (recording, rows) = (model.recording(), &model.analysis().rows);
    let device = model.state().device;
    let line = |run: &RunIdx| {
        let first = rows.partition_point(|row| row.run < *run);
        let mut of_run = rows[first..].iter().take_while(|row| row.run == *run);
        let row = of_run.find(|row| row.device == device);
        let run = recording.run(*run);
        let mut cells = model.cells().rows.iter();
        let cell = cells.find(|row| row.cell == run.cell);
        let name = cell.map_or(String::new(), |row| row.name.clone());
        run_line(model, run, row, name)
    };
    runs.iter().map(line).collect()
}

fn run_line(model: &ReportModel, run: &Run, row: Option<&RunRow>, cell: String) -> RunLine {
    let number = match run.execution_count {
        Some(n) => format!("In [{n}]"),
        None => format!("{}", run.idx.0 + 1),
    };
    RunLine {
        run: run.idx,
        number,
        cell,
        kept: row.and_then(RunRow::kept_alone),
        after: row.and_then(|row| row.after.or(row.so_far)),
        peak: row.and_then(|row| row.peak).map(Peak::low),
        took: run.ended.map(|ended| ended.since(run.started)),
        ended: ended(model, run, row),
    }
}

fn ended(model: &ReportModel, run: &Run, row: Option<&RunRow>) -> String {
    let unusual = readout::unusual(run.status).map(str::to_owned);
    let overlap = row.and_then(|row| row.overlap);
    let others = overlap.map(|it| {
        let others = others(model.recording(), run);
        together(it.moved, &others, model.units())
    });
    let parts = unusual.into_iter().chain(others);
    parts.collect::<Vec<_>>().join("; ")
}

fn compare(a: &RunLine, b: &RunLine, column: usize) -> Ordering {
    match column {
        1 => a.cell.cmp(&b.cell).reverse(),
        2 => a.kept.cmp(&b.kept),
        3 => a.after.cmp(&b.after),
        4 => a.peak.cmp(&b.peak),
        5 => a.took.cmp(&b.took),
        6 => a.ended.cmp(&b.ended),
        _ => a.run.cmp(&b.run),
    }
}

fn build(make: &Maker, model: &ReportModel, lines: &[RunLine], order: Option<Order>) -> Element {
    let units = model.units();
    let names = make.empty("tr", &[]);
    for (place, name) in COLUMNS.into_iter().enumerate() {
        let tag = if FIGURES.contains(&place) {
            "th.figure"
        } else {
            "th"
        };
        let head = make.empty(tag, &[("scope", "col")]);
        match order {
            None => head.set_text_content(Some(name)),
            Some(order) => {
                add(&head, &make.link("sort", &place.to_string(), name));
                let sorted = if order.is_rising {
                    "ascending"
                } else {
                    "descending"
                };
                if order.column == place {
                    set_attribute(&head, "aria-sort", sorted);
                }
            }
        }
        add(&names, &head);
    }
    let head = make.group("thead", &[], &[&names]);
    let body = make.empty("tbody", &[]);
    for line in lines {
        let size = |size: Option<Bytes>| size.map_or(String::new(), |size| units.size(size));
        let figures = [
            line.kept.map_or(String::new(), |kept| units.change(kept)),
            size(line.after),
            size(line.peak),
            line.took.map_or(String::new(), |took| took.to_string()),
        ];
        let row = make.empty("tr", &[]);
        add(&row, &make.text("th", &[("scope", "row")], &line.number));
        let name = make.text("code", &[("dir", "auto")], &line.cell);
        add(&row, &make.group("td", &[], &[&name]));
        for figure in &figures {
            add(&row, &make.text("td.figure", &[], figure));
        }
        add(&row, &make.text("td", &[], &line.ended));
        add(&body, &row);
    }
    let table = make.group("table", &[], &[&head, &body]);
    let label = [("tabindex", "0"), ("role", "group"), ("aria-label", "runs")];
    make.group("div.scroll", &label, &[&table])
}
