//! The recording held against a baseline: what became of each cell that grew.

use gpumem_analyzer::{GrowthChange, GrowthSide, SessionComparison};
use gpumem_model::units::{ByteDelta, Units};
use gpumem_wording as wording;
use web_sys::{Element, HtmlElement};

use crate::dom::{Maker, add, fill, flag, share, write};
use crate::model::ReportModel;

/// The comparison, where there is a baseline.
pub(crate) struct Comparison {
    pub(crate) element: Element,
    heading: Element,
    outcome: Element,
    table: Element,
    rows: Element,
    same: Element,
}

impl Comparison {
    pub(crate) fn build(make: &Maker) -> Self {
        let heading = make.text("h2", &[("dir", "auto")], "");
        let names = make.empty("tr", &[]);
        for name in [
            "change",
            "cell",
            "kept a run or step; each pair has its own length",
            "difference",
        ] {
            add(&names, &make.text("th", &[("scope", "col")], name));
        }
        let head = make.group("thead", &[], &[&names]);
        let rows = make.empty("tbody", &[]);
        let table = make.group("table", &[], &[&head, &rows]);
        let scroll = make.group(
            "div.scroll",
            &[
                ("tabindex", "0"),
                ("role", "group"),
                ("aria-label", "comparison"),
            ],
            &[&table],
        );
        let outcome = make.empty("p.outcome", &[("dir", "auto")]);
        // The page's script shows them.
        let same = make.link("same", "", "");
        let panel = make.group("div.panel.versus", &[], &[&outcome, &scroll, &same]);
        let attributes = [("aria-label", "comparison"), ("hidden", "")];
        let element = make.group("section.comparison", &attributes, &[&heading, &panel]);
        Self {
            element,
            heading,
            outcome,
            table: scroll,
            rows,
            same,
        }
    }

    pub(crate) fn show(&self, make: &Maker, model: &ReportModel) {
        let Some((name, compared, waiting)) = model.compared() else {
            return flag(&self.element, "hidden", true);
        };
        flag(&self.element, "hidden", false);
        write(&self.heading, &format!("Against {name}"));
        let (sign, words) = wording::outcome(compared, waiting, model.units());
        let sign = make.text("span", &[("aria-hidden", "true")], sign.glyph());
        let words = make.prose("span", &[], &words);
        fill(&self.outcome, &[sign, words]);
        flag(&self.table, "hidden", compared.is_empty());
        let rows = compared
            .iter()
            .map(|entry| row(make, entry, model.units()))
            .collect::<Vec<_>>();
        fill(&self.rows, &rows);
        let same = compared.iter().filter(|it| it.change == GrowthChange::Same);
        let n_same = same.count();
        write(&self.same, &format!("{n_same} as before"));
        flag(&self.same, "hidden", n_same == 0);
    }
}

fn rate(side: &GrowthSide) -> f64 {
    side.bytes_per_run.as_f64()
}

fn row(make: &Maker, entry: &SessionComparison, units: Units) -> Element {
    let most = entry.before.as_ref().map_or(1.0, rate);
    let most = most.max(rate(&entry.after)).max(1.0);
    let sign = make.text(
        "span",
        &[("aria-hidden", "true")],
        wording::Sign::from(entry.change).glyph(),
    );
    let word = make.text("span", &[], entry.change.name());
    let change = make.group("td.change", &[], &[&sign, &word]);
    let cell = make.text("code", &[("dir", "auto")], &entry.cell.label);
    let series = make.text("span.muted.series", &[], &place(entry));
    let cell = make.group("th", &[("scope", "row")], &[&cell, &series]);
    let before = bar(make, "before", (entry.before.as_ref(), most), units);
    let after = bar(make, "now", (Some(&entry.after), most), units);
    let bars = make.group("td", &[], &[&before, &after]);
    let off = match entry.uncertainty.get() {
        0 => String::new(),
        _ => format!(" ± {}", units.size(entry.uncertainty)),
    };
    let difference = match entry.difference {
        ByteDelta::ZERO => "none".to_owned(),
        difference => format!("{}{off}", units.change(difference)),
    };
    let difference = make.text("td.number", &[], &difference);
    make.group(
        "tr",
        &[("data-change", entry.change.name())],
        &[&change, &cell, &bars, &difference],
    )
}

/// What of the cell is compared, and where: its runs, or what goes on in them.
fn place(entry: &SessionComparison) -> String {
    let each = if entry.steps { "each step" } else { "each run" };
    let within = entry.path.iter().map(String::as_str);
    let number = entry.cell.execution_count;
    let number = number.map_or(String::new(), |n| format!("In [{n}] "));
    let within = within.chain([each, &*entry.device]);
    number + &within.collect::<Vec<_>>().join(" · ")
}

/// A bar as long as what is kept, and the figure beside it.
fn bar(
    make: &Maker,
    class: &str,
    (side, most): (Option<&GrowthSide>, f64),
    units: Units,
) -> Element {
    let figure = side.map_or_else(
        || "not there".to_owned(),
        |side| units.change(side.bytes_per_run),
    );
    let fill: HtmlElement = make.typed("i", &[]);
    share(&fill, side.map_or(0.0, |side| rate(side).max(0.0) / most));
    let track = make.group("span.share", &[], &[&fill]);
    let figure = make.text("span.figure", &[], &figure);
    make.group("div", &[("class", class)], &[&track, &figure])
}
