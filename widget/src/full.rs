//! A finding in full: what grew and where that leads, who holds it, what to do, and the figures.

use gpumem_core::analyze::{Evidence, Finding, SeriesGrowth};
use gpumem_core::decimal::rounded;
use gpumem_core::units::{ByteDelta, Units};
use gpumem_core::wording::{self, Words};
use web_sys::Element;

use crate::card_details;
use crate::dom::{Dom, Maker};
use crate::holder_list;
use crate::model::Model;

/// What a card opens: its drawings, who holds it, what to do, and the figures it rests on.
pub(crate) fn body(make: &Maker, model: &Model, finding: &Finding, words: &Words) -> Dom<Element> {
    let body = make.empty("div", &[("class", "full")])?;
    if !words.detail.is_empty() {
        let detail = make.prose("p", &[("class", "detail")], &words.detail)?;
        body.append_child(&detail)?;
    }
    for part in card_details::of(make, model, finding)? {
        body.append_child(&part)?;
    }
    let boxes = make.empty("div", &[("class", "boxes")])?;
    if !finding.holders.is_empty() {
        boxes.append_child(&holder_list::holders(make, finding, model.units())?.into())?;
    }
    if !words.suggestions.is_empty() {
        boxes.append_child(&suggestions(make, &words.suggestions)?.into())?;
    }
    body.append_child(&boxes)?;
    if !finding.evidence.is_empty() {
        body.append_child(&evidence(make, model, finding)?.into())?;
    }
    Ok(body)
}

fn suggestions(make: &Maker, suggestions: &[String]) -> Dom<Element> {
    let list = make.empty("ul", &[])?;
    for suggestion in suggestions {
        list.append_child(&make.prose("li", &[], suggestion)?.into())?;
    }
    let label = make.text("div", &[("class", "label")], "What to do")?;
    make.group("div", &[("class", "box")], &[&label, &list])
}

fn evidence(make: &Maker, model: &Model, finding: &Finding) -> Dom<Element> {
    let summary = make.text("summary", &[], "evidence")?;
    let table = make.empty("table", &[])?;
    let names = make.empty("tr", &[])?;
    for name in ["figure", "value", "threshold", "holds"] {
        names.append_child(&make.text("th", &[("scope", "col")], name)?.into())?;
    }
    table.append_child(&make.group("thead", &[], &[&names])?.into())?;
    let rows = make.empty("tbody", &[])?;
    for figure in &finding.evidence {
        let (recording, units) = (model.recording(), model.units());
        let words = wording::evidence(recording, finding, figure, units);
        rows.append_child(&figure_row(make, figure, &words, units)?.into())?;
    }
    table.append_child(&rows)?;
    let scroll = make.group("div", &[("class", "scroll")], &[&table])?;
    let body = make.group("div", &[("class", "columns")], &[&scroll])?;
    let growth = finding.growth();
    if let Some(growth) = growth.filter(|growth| growth.sparkline.len() > 1) {
        body.append_child(&sparkline(make, finding, growth)?.into())?;
    }
    make.group("details", &[], &[&summary, &body])
}

fn figure_row(make: &Maker, figure: &Evidence, words: &str, units: Units) -> Dom<Element> {
    let (sign, word) = if figure.holds {
        ("✓", "yes")
    } else {
        ("–", "no")
    };
    let shown = |value: f64| {
        if figure.name.ends_with("_bytes") {
            units.change(ByteDelta::from_f64(value))
        } else {
            number(value)
        }
    };
    let threshold = figure.threshold.map(shown).unwrap_or_default();
    make.group(
        "tr",
        &[("title", figure.name)],
        &[
            &make.text("td", &[], words)?,
            &make.text("td", &[("class", "number")], &shown(figure.value))?,
            &make.text("td", &[("class", "number")], &threshold)?,
            &make.text("td", &[("aria-label", word)], sign)?,
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
    rounded(value, n_digits)
}

fn sparkline(make: &Maker, finding: &Finding, growth: &SeriesGrowth) -> Dom<Element> {
    let unit = if finding.counts_steps() {
        "step"
    } else {
        "run"
    };
    let label = make.text(
        "div",
        &[("class", "label")],
        &format!("{} after each {unit}", wording::metric(finding.metric)),
    )?;
    let line = make.drawing(
        "polyline",
        &[
            ("points", &points(&growth.sparkline)),
            ("vector-effect", "non-scaling-stroke"),
        ],
    )?;
    let drawing = make.drawing(
        "svg",
        &[
            ("class", "sparkline"),
            ("viewBox", "0 0 100 30"),
            ("preserveAspectRatio", "none"),
            ("aria-hidden", "true"),
        ],
    )?;
    drawing.append_child(&line)?;
    make.group("div", &[("class", "box")], &[&label, &drawing])
}

/// The series in a box of 100 × 30, one unit of air above and below.
fn points(series: &[f64]) -> String {
    let (low, high) = series.iter().fold((f64::MAX, f64::MIN), |(low, high), y| {
        (low.min(*y), high.max(*y))
    });
    let height = if high > low { high - low } else { 1.0 };
    let step = 100.0 / (series.len() - 1) as f64;
    let points: Vec<String> = series
        .iter()
        .enumerate()
        .map(|(idx, y)| {
            let (x, y) = (step * idx as f64, 29.0 - 28.0 * (y - low) / height);
            rounded(x, 2) + "," + &rounded(y, 2)
        })
        .collect();
    points.join(" ")
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

    #[test]
    fn a_sparkline_fills_its_box() {
        assert_eq!(
            points(&[0.0, 5.0, 10.0]),
            "0.00,29.00 50.00,15.00 100.00,1.00"
        );
        assert_eq!(points(&[3.0, 3.0]), "0.00,29.00 100.00,29.00");
    }
}
