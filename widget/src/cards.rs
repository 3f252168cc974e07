//! A finding as a card: severity by word, sign and colour, then what, how sure,
//! what to do, and the figures behind it.

use gpumem_core::analyze::Finding;
use gpumem_core::recording::RunIdx;
use gpumem_core::units::Units;
use gpumem_core::wording;
use wasm_bindgen::JsCast;
use web_sys::{Element, FocusOptions, HtmlElement};

use crate::dom::{Dom, Maker, flag};
use crate::full;
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
        let words = wording::words(model.recording(), finding, units);
        let title = &words.title;
        let show = if finding.counts_steps() {
            "show run"
        } else {
            "show runs"
        };
        let runs_button = make.link("runs", &finding.id, show)?;
        let row = row(make, finding, (title, device), &runs_button)?;
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
        let facts = full::facts(&words);
        if !facts.is_empty() {
            let detail = make.prose("p", &[("class", "detail")], &facts)?;
            element.append_child(&detail.into())?;
        }
        for part in full::parts(make, model, finding, &words)? {
            element.append_child(&part)?;
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
        element.focus()
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
        found.focus_with_options(&options)
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
