//! A finding as a card: severity by word, sign and colour, then what, how sure,
//! what to do, and the figures behind it.

use gpumem_core::analyze::{Evidence, Finding, SeriesGrowth, Severity};
use gpumem_core::decimal::rounded;
use gpumem_core::recording::RunIdx;
use gpumem_core::units::{ByteDelta, Units};
use gpumem_core::wording::{self, Words};
use wasm_bindgen::JsCast;
use web_sys::{Element, FocusOptions, HtmlElement};

use crate::card_details;
use crate::dom::{Dom, Maker, flag};
use crate::holder_list;
use crate::model::Model;

/// Where the keyboard stops on a card.
const STOPS: &str = "button, summary, [role=option]";

/// The words of such a stop up to the first figure, and the how-manieth it is with these words:
/// figures change with every update.
pub(crate) type Stop = (String, usize);

/// What is pointed at elsewhere.
pub(crate) struct Linked {
    /// A run.
    pub(crate) run: Option<RunIdx>,
    /// A name that holds memory of the device that is shown.
    pub(crate) name: Option<String>,
}

/// The card of a finding that stands.
pub(crate) struct Card {
    finding: Finding,
    units: Units,
    element: Element,
    runs_button: Element,
}

impl Card {
    /// A new card; `device` names the device where there are several.
    pub(crate) fn new(
        make: &Maker,
        model: &Model,
        finding: &Finding,
        device: Option<&str>,
    ) -> Dom<Self> {
        let units = model.units();
        let Words {
            title,
            detail,
            suggestions,
        } = wording::words(model.recording(), finding, units);
        let show = if finding.counts_steps() {
            "show run"
        } else {
            "show runs"
        };
        let runs_button = make.link("runs", &finding.id, show)?;
        let row = row(make, finding, (&title, device), &runs_button)?;
        let label = format!("{}: {}", wording::heading(finding), title.replace('`', ""));
        let element = make.group(
            "article",
            &[
                ("class", "card"),
                ("tabindex", "-1"),
                ("aria-label", &label),
                ("data-severity", finding.severity.name()),
                ("data-finding", &finding.id),
            ],
            &[&row],
        )?;
        let detail = make.prose("p", &[("class", "detail")], &detail)?;
        element.append_child(&detail.into())?;
        // What is only good to know, or goes without saying next to a fix, takes no room
        // before it is asked for.
        let is_aside = finding.severity == Severity::Info || finding.fix.is_some();
        let help = match suggestions.as_slice() {
            [] => None,
            suggestions => Some(self::suggestions(make, suggestions)?),
        };
        for body in card_details::of(make, model, finding)? {
            element.append_child(&body)?;
        }
        let boxes = make.empty("div", &[("class", "boxes")])?;
        if !finding.holders.is_empty() {
            boxes.append_child(&holder_list::holders(make, finding, units)?.into())?;
        }
        if let Some(fix) = &finding.fix {
            boxes.append_child(&holder_list::fix(make, fix)?.into())?;
        }
        if let Some(help) = help.as_ref().filter(|_| !is_aside) {
            boxes.append_child(help)?;
        }
        element.append_child(&boxes)?;
        if !finding.evidence.is_empty() {
            let evidence = evidence(make, model, finding)?;
            if let Some(help) = help.filter(|_| is_aside) {
                evidence.append_child(&help)?;
            }
            element.append_child(&evidence)?;
        }
        Ok(Self {
            finding: finding.clone(),
            units,
            element,
            runs_button,
        })
    }

    /// The element in the page.
    pub(crate) fn element(&self) -> &Element {
        &self.element
    }

    /// The finding that it shows.
    pub(crate) fn finding(&self) -> &Finding {
        &self.finding
    }

    /// Brings the card into view, and the keyboard to it.
    pub(crate) fn reveal(&self) -> Dom<()> {
        let element: &HtmlElement = self.element.unchecked_ref();
        Ok(element.focus()?)
    }

    /// It shows this very finding in these units.
    pub(crate) fn shows(&self, finding: &Finding, units: Units) -> bool {
        self.units == units && self.finding == *finding
    }

    /// It shows an earlier state of this finding.
    pub(crate) fn follows(&self, finding: &Finding) -> bool {
        self.finding.id == finding.id
    }

    /// Opens what was open on the card of the finding's earlier state.
    pub(crate) fn take_over(&self, earlier: &Self) -> Dom<()> {
        let (new, old) = (self.all("details")?, earlier.all("details")?);
        let old = named(&old);
        for (name, new) in named(&new) {
            if let Some((_, old)) = old.iter().find(|(of_old, _)| *of_old == name) {
                flag(new, "open", old.has_attribute("open"))?;
            }
        }
        Ok(())
    }

    /// Which of the card's buttons, summaries and blocks the keyboard is on.
    pub(crate) fn at_keyboard(&self) -> Dom<Option<Stop>> {
        if self.element.query_selector(":focus")?.is_none() {
            return Ok(None);
        }
        let stops = self.all(STOPS)?;
        let mut stops = named(&stops).into_iter();
        let found = stops.find(|(_, stop)| stop.matches(":focus").unwrap_or_default());
        Ok(found.map(|(name, _)| name))
    }

    /// Brings the keyboard back to one of them, or where there are fewer now to the last that has
    /// its words; the page does not move.
    pub(crate) fn focus(&self, (words, nth): &Stop) -> Dom<()> {
        let stops = self.all(STOPS)?;
        let alike = named(&stops)
            .into_iter()
            .filter(|((own, _), _)| own == words);
        let found = alike.take(nth + 1).last();
        let found: &HtmlElement = found
            .map_or(&self.element, |(_, stop)| stop)
            .unchecked_ref();
        let options = FocusOptions::new();
        options.set_prevent_scroll(true);
        Ok(found.focus_with_options(&options)?)
    }

    fn all(&self, selector: &str) -> Dom<Vec<Element>> {
        let found = self.element.query_selector_all(selector)?;
        let nodes = (0..found.length()).filter_map(|idx| found.get(idx));
        Ok(nodes.map(JsCast::unchecked_into).collect())
    }

    /// Marks the card as the chosen one, and as one that is about what is pointed at.
    pub(crate) fn mark(&self, chosen: bool, pointed: &Linked) -> Dom<()> {
        let finding = &self.finding;
        let is_of_run = pointed.run.is_some_and(|run| finding.runs.contains(&run));
        let mut names = finding.holders.iter().map(|holder| &holder.name);
        let is_held = pointed
            .name
            .as_ref()
            .is_some_and(|name| names.any(|it| it == name));
        let linked = is_of_run || is_held;
        self.runs_button
            .set_attribute("aria-pressed", if chosen { "true" } else { "false" })?;
        flag(&self.element, "data-chosen", chosen)?;
        flag(&self.element, "data-linked", linked)
    }
}

/// How much the finding matters, its title, its device where there are several, and what the
/// reader can do with it.
fn row(
    make: &Maker,
    finding: &Finding,
    (title, device): (&str, Option<&str>),
    runs_button: &Element,
) -> Dom<Element> {
    let sign = make.text("span", &[("aria-hidden", "true")], wording::icon(finding))?;
    let word = make.text("span", &[], wording::heading(finding))?;
    let severity = make.group("span", &[("class", "severity")], &[&sign, &word])?;
    let title = make.prose("h3", &[("dir", "auto")], title)?;
    let row = make.group("div", &[("class", "row")], &[&severity, &title])?;
    if let Some(device) = device {
        row.append_child(&make.text("span", &[("class", "device")], device)?.into())?;
    }
    if !finding.runs.is_empty() {
        row.append_child(runs_button)?;
    }
    row.append_child(&make.link("dismiss", &finding.id, "dismiss")?.into())?;
    Ok(row)
}

/// These elements by what tells them apart on any card of the same finding.
fn named(elements: &[Element]) -> Vec<(Stop, &Element)> {
    let mut named: Vec<(Stop, &Element)> = Vec::new();
    for element in elements {
        let text = element.text_content().unwrap_or_default();
        let words = text
            .split(|c: char| c.is_ascii_digit())
            .next()
            .unwrap_or_default();
        let n_before = named.iter().filter(|((known, _), _)| known == words);
        let stop = (words.to_owned(), n_before.count());
        named.push((stop, element));
    }
    named
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
