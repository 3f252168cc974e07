//! A finding as a card: its conclusion, the line to change, why that helps, and all there is to know.

use gpumem_analyzer::{Finding, FindingGroup};
use gpumem_heap::changed;
use gpumem_model::recording::RunIdx;
use gpumem_wording as wording;
use gpumem_wording::{Presentation, Remedy, Sign};
use wasm_bindgen::JsCast;
use web_sys::{Element, FocusOptions, HtmlElement};

use crate::dom::{Maker, add, find, flag, focus, or_throw, set_attribute, set_bool};
use crate::full;
use crate::model::ReportModel;

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

/// How much a card shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// Up to the fix; the rest opens.
    Folded,
    /// All there is, and it folds.
    Unfolded,
    /// All there is.
    Whole,
}

/// The card of a finding that stands.
#[derive(Clone)]
pub(crate) struct Card {
    finding: String,
    element: Element,
    /// The element as it was made, before anything on it was opened, marked or drawn.
    made: String,
}

impl Card {
    /// A new card.
    pub(crate) fn new(
        make: &Maker,
        model: &ReportModel,
        verdict: &FindingGroup<'_>,
        form: Form,
    ) -> Self {
        let finding = verdict.first();
        let shown = wording::present_verdict(model.recording(), verdict, model.units());
        let label = format!("{}: {}", shown.heading, shown.title.plain());
        let attributes = [
            ("tabindex", "-1"),
            ("aria-label", &label),
            ("data-tone", tone(shown.sign)),
            ("data-finding", &finding.id),
        ];
        let head = head(make, finding, &shown);
        let element = make.group("article.card", &attributes, &[&head]);
        flag(&element, "data-known", shown.tag.is_some());
        if let Some(remedy) = &shown.remedy {
            add(&element, &remedy_box(make, remedy));
        }
        add(&element, &ways(make, model, (finding, &shown), form));
        if form != Form::Folded {
            add(&element, &full::body(make, model, finding, (&shown, false)));
        }
        Self {
            finding: finding.id.clone(),
            made: element.outer_html(),
            element,
        }
    }

    /// An earlier card if it shows the same, else a new one in which that is open which was open on it.
    pub(crate) fn following(
        make: &Maker,
        model: &ReportModel,
        verdict: &FindingGroup<'_>,
        (form, earlier): (Form, &[Self]),
    ) -> Self {
        let card = Self::new(make, model, verdict, form);
        let mut earlier = earlier.iter();
        let Some(old) = earlier.find(|old| old.finding == card.finding) else {
            return card;
        };
        if old.made == card.made {
            return old.clone();
        }
        card.take_over(old);
        card
    }

    /// The element in the page.
    pub(crate) fn element(&self) -> &Element {
        &self.element
    }

    /// The id of the finding that it shows.
    pub(crate) fn finding(&self) -> &str {
        &self.finding
    }

    /// Brings the card into view, and the keyboard to it.
    pub(crate) fn reveal(&self) {
        focus(&self.element);
    }

    /// Opens what was open on the card of the finding's earlier state.
    fn take_over(&self, earlier: &Self) {
        let (new, old) = (
            all(&self.element, "details"),
            all(&earlier.element, "details"),
        );
        let old = named(&old);
        for (name, new) in named(&new) {
            if let Some((_, old)) = old.iter().find(|(of_old, _)| *of_old == name) {
                flag(new, "open", old.has_attribute("open"));
            }
        }
    }

    /// Marks the card of this finding as the chosen one, and as one that is about what is pointed at.
    pub(crate) fn mark(&self, finding: &Finding, chosen: bool, pointed: &Linked) {
        let is_of_run = pointed.run.is_some_and(|run| finding.runs.contains(&run));
        let mut names = finding.holders.iter().map(|holder| &holder.name);
        let is_held = pointed
            .name
            .as_ref()
            .is_some_and(|name| names.any(|it| it == name));
        let linked = is_of_run || is_held;
        if let Some(button) = find(&self.element, "[data-action=runs]") {
            set_bool(&button, "aria-pressed", chosen);
        }
        flag(&self.element, "data-chosen", chosen);
        flag(&self.element, "data-linked", linked);
    }
}

fn all(around: &Element, selector: &str) -> Vec<Element> {
    let found = or_throw(around.query_selector_all(selector));
    let nodes = (0..found.length()).filter_map(|idx| found.get(idx));
    nodes.map(JsCast::unchecked_into).collect()
}

/// Which of the buttons, summaries and blocks in an element the keyboard is on.
pub(crate) fn keyboard_in(around: &Element) -> Option<Stop> {
    find(around, ":focus")?;
    let stops = all(around, STOPS);
    let mut stops = named(&stops).into_iter();
    let found = stops.find(|(_, stop)| stop.matches(":focus").unwrap_or_default());
    found.map(|(name, _)| name)
}

/// Brings the keyboard back to one of them, or where there are fewer now to the last that has its
/// words, or else to the first; the page does not move.
pub(crate) fn bring_back(around: &Element, (words, nth): &Stop) {
    let stops = all(around, STOPS);
    let named = named(&stops);
    let alike = named.iter().filter(|((own, _), _)| own == words);
    let found = alike.take(nth + 1).last().or(named.first());
    let Some((_, found)) = found else {
        return;
    };
    let found: &HtmlElement = found.unchecked_ref();
    let options = FocusOptions::new();
    options.set_prevent_scroll(true);
    or_throw(found.focus_with_options(&options));
}

/// These elements by a key that is unique on any card of the same finding.
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

/// What a finding with that sign is drawn in.
pub(crate) fn tone(sign: Sign) -> &'static str {
    match sign {
        Sign::Alert => "leak",
        Sign::Watch => "watch",
        Sign::Fine => "ok",
        Sign::Note => "note",
    }
}

pub(crate) fn sign(make: &Maker, shown: &Presentation) -> Element {
    let sign = make.text("span", &[("aria-hidden", "true")], shown.sign.glyph());
    let heading = make.text("span.unseen", &[], shown.heading);
    make.group("span.sign", &[], &[&sign, &heading])
}

fn head(make: &Maker, finding: &Finding, shown: &Presentation) -> Element {
    let title = make.prose("h3", &[("dir", "auto")], &shown.title);
    let head = make.empty("div.head", &[]);
    if let Some(tag) = &shown.tag {
        add(&head, &make.text("span.tag", &[], tag));
    }
    add(&head, &sign(make, shown));
    add(&head, &title);
    let number = finding.cell.as_ref().and_then(|cell| cell.execution_count);
    if let Some(number) = number {
        // The page's script shows it where it finds the cell.
        let button = make.link("cell", &number.to_string(), "Go to the cell ↑");
        flag(&button, "hidden", true);
        add(&head, &button);
    }
    if !shown.outlook.is_empty() {
        let outlook = shown.outlook.clone().capitalised();
        let outlook = make.prose("p.outlook", &[("dir", "auto")], &outlook);
        add(&head, &outlook);
    }
    head
}

/// Where to change what, with what changes marked, or what to run once.
fn remedy_box(make: &Maker, remedy: &Remedy) -> Element {
    let at = make.empty("div.at", &[]);
    let tag = if remedy.is_here { "b" } else { "span" };
    let line = remedy.line.as_deref().unwrap_or_default();
    for (tag, words) in [(tag, &*remedy.place), ("span", line)] {
        if !words.is_empty() {
            add(&at, &make.text(tag, &[], words));
        }
    }
    let code = make.empty("pre.patch", &[("dir", "ltr")]);
    match &remedy.before {
        None => add(&code, &make.text("code", &[], &remedy.after)),
        Some(before) => {
            let sides = changed(before, &remedy.after);
            for (tag, lines) in ["del", "ins"].into_iter().zip(&sides) {
                for pieces in lines {
                    let line = make.empty(tag, &[]);
                    for (is_changed, text) in pieces {
                        let tag = if *is_changed { "mark" } else { "span" };
                        add(&line, &make.text(tag, &[], text));
                    }
                    add(&code, &line);
                }
            }
        }
    }
    let copy = copy_button(make, &remedy.after);
    make.group("div.fix", &[], &[&at, &code, &copy])
}

fn copy_button(make: &Maker, text: &str) -> Element {
    let attributes = [("data-action", "copy"), ("data-argument", text)];
    make.text("button.primary", &attributes, "Copy fix")
}

/// Why the fix helps, and what else the reader can do.
fn ways(
    make: &Maker,
    model: &ReportModel,
    (finding, shown): (&Finding, &Presentation),
    form: Form,
) -> Element {
    let why = make.prose("p.why", &[], &shown.reason());
    let ways = make.empty("div.acts", &[]);
    let in_row = model.row_about(&finding.id);
    let folds = match form {
        Form::Folded if in_row.is_some() && model.state().row == in_row => {
            Some(("Evidence ▾", "true"))
        }
        Form::Folded => Some(("Evidence ▸", "false")),
        Form::Unfolded => Some(("Evidence ▾", "true")),
        Form::Whole => None,
    };
    if let Some((words, expanded)) = folds {
        let evidence = make.link("evidence", &finding.id, words);
        set_attribute(&evidence, "aria-expanded", expanded);
        add(&ways, &evidence);
    }
    if !finding.runs.is_empty() {
        let words = if finding.counts_steps() {
            "Show its run"
        } else {
            "Show its runs"
        };
        add(&ways, &make.link("runs", &finding.id, words));
    }
    add(&ways, &make.link("dismiss", &finding.id, "Dismiss"));
    if let Some(link) = shown.link {
        let attributes = [("href", link), ("target", "_blank"), ("rel", "noreferrer")];
        add(&ways, &make.text("a.link", &attributes, "Read more ↗"));
    }
    make.group("div.because", &[], &[&why, &ways])
}
