//! A finding in full: what grew and where that leads, who holds it, what to do, and the figures.

use gpumem_analyzer::{Evidence, Finding, FindingDetails};
use gpumem_charts as charts;
use gpumem_charts::LongRun;
use gpumem_model::units::{ByteDelta, Units};
use gpumem_page_kit::paint::paint_scene;
use gpumem_scene::Density;
use gpumem_wording::{Presentation, Prose, code, prose};
use web_sys::{Element, HtmlCanvasElement};

use crate::canvas::Faces;
use crate::card_details;
use crate::dom::{Maker, add, fill, find, or_throw};
use crate::holder_list;
use crate::model::ReportModel;

/// From here on, two charts stand beside each other.
const TWO_CHARTS: f64 = 560.0;
/// The space between them.
const BETWEEN: f64 = 24.0;

/// What a card opens: its drawings, who holds it, what to do, what it is not, and the figures.
/// What `is_drawn` elsewhere is not drawn again.
pub(crate) fn body(
    make: &Maker,
    model: &ReportModel,
    finding: &Finding,
    (shown, is_drawn): (&Presentation, bool),
) -> Element {
    let body = make.empty("div.full", &[]);
    if !shown.facts.is_empty() {
        add(&body, &make.prose("p.detail", &[], &shown.detail()));
    }
    if let Some(cures) = card_details::cures(make, finding, &shown.cures, model.units()) {
        add(&body, &cures);
    }
    if (finding.growth().is_some() && !is_drawn) || finding.ran_out() {
        add(&body, &make.empty("div.courses", &[]));
    }
    for part in card_details::bodies(make, model, finding) {
        add(&body, &part);
    }
    // Of what lives on, the path says who holds it.
    let is_said = matches!(&finding.details, FindingDetails::Outlived(it) if it.kind.is_named());
    if !finding.holders.is_empty() && !is_said {
        add(&body, &holder_list::holders(make, finding, model.units()));
    }
    let boxes = make.empty("div.boxes", &[]);
    if !shown.advice.is_empty() {
        let advice = shown.advice.iter().cloned().map(Prose::sentence);
        let advice = advice.map(|it| make.prose("li", &[], &it));
        add(&boxes, &listed(make, "What to do", "ol", advice));
    }
    if !shown.ruled_out.is_empty() {
        let ruled_out = shown.ruled_out.iter().map(|(what, why)| {
            let entry = make.prose("li", &[], why);
            or_throw(entry.prepend_with_node_1(&make.text("b", &[], what).into()));
            entry
        });
        add(&boxes, &listed(make, "Ruled out", "ul", ruled_out));
    }
    add(&body, &boxes);
    if let Some(facts) = facts(make, shown) {
        add(&body, &facts);
    }
    if !finding.evidence.is_empty() {
        add(&body, &evidence(make, model, finding, shown));
    }
    body
}

/// What is known of it beside this session: the catalogue's facts, and its fingerprint.
fn facts(make: &Maker, shown: &Presentation) -> Option<Element> {
    let fingerprint = shown.fingerprint.map(|it| {
        let check = code("jupyter gpumem check --allow");
        ("fingerprint", prose![code(&it.to_string()), " for ", check])
    });
    let facts: Vec<_> = shown.known.iter().cloned().chain(fingerprint).collect();
    let list = make.empty("dl.facts", &[]);
    for (name, words) in &facts {
        add(&list, &make.text("dt", &[], name));
        add(&list, &make.prose("dd", &[], words));
    }
    (!facts.is_empty()).then_some(list)
}

/// Draws what grew and where that leads, where a card has the place for it.
pub(crate) fn draw(
    make: &Maker,
    model: &ReportModel,
    finding: &Finding,
    (card, faces): (&Element, &Faces),
) {
    let Some(place) = find(card, ".courses") else {
        return;
    };
    let room = f64::from(place.client_width());
    if room == 0.0 {
        return;
    }
    let (recording, analysis) = (model.recording(), model.analysis());
    let long_run = LongRun::of_finding(recording, analysis, finding);
    let is_one = finding.ran_out() || long_run.is_some();
    let width = if room < TWO_CHARTS || is_one {
        room
    } else {
        (room - BETWEEN) / 2.0
    };
    let view = charts::ChartView {
        width,
        density: Density(model.scale),
        units: model.units(),
        ..charts::ChartView::default()
    };
    let scenes = [
        (
            "Who held it when it ran out",
            charts::oom(recording, analysis, finding, &view),
        ),
        (
            "Level over iterations",
            long_run.as_ref().map(|it| it.scene(width, view.units)),
        ),
        (
            "After each run",
            charts::course(finding, &view).filter(|_| long_run.is_none()),
        ),
        (
            "If it goes on",
            charts::outlook(finding, &view).filter(|_| long_run.is_none()),
        ),
    ];
    let mut drawn = Vec::new();
    for (title, scene) in scenes {
        let Some(scene) = scene else { continue };
        let title = if finding.counts_steps() && drawn.is_empty() && !is_one {
            "After each step"
        } else {
            title
        };
        let canvas: HtmlCanvasElement = make.typed(
            "canvas",
            &[("role", "img"), ("aria-label", &scene.description)],
        );
        paint_scene(&canvas, &scene, model.theme, model.scale, faces);
        let title = make.text("h4", &[], title);
        drawn.push(make.group("div", &[], &[&title, &canvas]));
    }
    fill(&place, &drawn);
}

/// A list under a heading.
fn listed(make: &Maker, label: &str, tag: &str, entries: impl Iterator<Item = Element>) -> Element {
    let list = make.empty(tag, &[]);
    for entry in entries {
        add(&list, &entry);
    }
    let label = make.text("h4", &[], label);
    make.group("div", &[], &[&label, &list])
}

fn evidence(make: &Maker, model: &ReportModel, finding: &Finding, shown: &Presentation) -> Element {
    let summary = make.text(
        "summary",
        &[],
        &format!("Figures and thresholds ({})", finding.evidence.len()),
    );
    let table = make.empty("table", &[]);
    let names = make.empty("tr", &[]);
    for name in ["figure", "value", "threshold", "holds"] {
        add(&names, &make.text("th", &[("scope", "col")], name));
    }
    add(&table, &make.group("thead", &[], &[&names]));
    let rows = make.empty("tbody", &[]);
    for (figure, words) in finding.evidence.iter().zip(&shown.evidence) {
        add(&rows, &figure_row(make, figure, words, model.units()));
    }
    add(&table, &rows);
    let scroll = make.group("div.scroll", &[], &[&table]);
    make.group("details", &[], &[&summary, &scroll])
}

fn figure_row(make: &Maker, figure: &Evidence, words: &str, units: Units) -> Element {
    let (sign, word) = if figure.holds {
        ("✓", "yes")
    } else {
        ("–", "no")
    };
    let shown = |value: f64| {
        if figure.statistic.is_size() {
            units.change(ByteDelta::from_f64(value))
        } else {
            number(value)
        }
    };
    let threshold = figure.threshold.map(shown).unwrap_or_default();
    make.group(
        "tr",
        &[("title", figure.statistic.name())],
        &[
            &make.text("td", &[], words),
            &make.text("td.number", &[], &shown(figure.value)),
            &make.text("td.number", &[], &threshold),
            &make.text("td", &[("aria-label", word)], sign),
        ],
    )
}

/// A statistic with as many digits as help.
fn number(value: f64) -> String {
    let n_digits = match value.abs() {
        f64::INFINITY if value > 0.0 => return "∞".to_owned(),
        f64::INFINITY => return "−∞".to_owned(),
        n if n >= 1000.0 || n.fract() == 0.0 => 0,
        n if n >= 0.01 => 2,
        n if n >= 0.0001 => 4,
        _ => return "≈ 0".to_owned(),
    };
    // There is no −0.
    format!("{:.n_digits$}", value + 0.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_number(value: f64, shown: &str) {
        assert_eq!(number(value), shown);
    }

    #[test]
    fn statistics_have_as_many_digits_as_help() {
        check_number(12.345, "12.35");
        check_number(9.0, "9");
        check_number(0.0, "0");
        check_number(4_404_019.2, "4404019");
        check_number(0.0012, "0.0012");
        check_number(-3e-9, "≈ 0");
        check_number(f64::INFINITY, "∞");
        check_number(f64::NEG_INFINITY, "−∞");
    }
}
