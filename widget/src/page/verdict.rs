//! The conclusion: the worst finding open to its fix, the next ones in a line each, and how many more
//! there are.

use gpumem_analyzer::{FindingGroup, Severity};
use gpumem_charts::ChartView;
use gpumem_scene::Theme;
use gpumem_wording as wording;
use gpumem_wording::{FindingCount, OutputLimits, Sign, prose};
use web_sys::Element;

use crate::canvas::Faces;
use crate::cards::{Card, Form, bring_back, keyboard_in, sign, tone};
use crate::dom::{Maker, add, or_throw, put};
use crate::full;
use crate::model::ReportModel;
use crate::state::{Chart, ViewState};

/// The first panel of the report.
pub(crate) struct Panel {
    pub(crate) element: Element,
    /// The findings in the order in which they were shown last.
    order: Vec<String>,
    open: Option<Card>,
    /// What the charts of that card were drawn for.
    drawn: Option<(u64, ChartView, Theme)>,
}

impl Panel {
    pub(crate) fn build(make: &Maker) -> Self {
        let label = [("aria-label", "verdict")];
        Self {
            element: make.empty("section.verdict", &label),
            order: Vec::new(),
            open: None,
            drawn: None,
        }
    }

    /// Shows what the model concludes; the keyboard stays where it is.
    pub(crate) fn show(&mut self, make: &Maker, model: &ReportModel) {
        let at_keyboard = keyboard_in(&self.element);
        let verdicts = self.ordered(model);
        let shown = ShownVerdicts::new(model, &verdicts);
        let mut parts = Vec::new();
        if !shown.is_urgent {
            parts.push(healthy(make, model));
        }
        let earlier = self.open.take();
        for line in &shown.lines {
            parts.push(match line {
                VerdictLine::Open(verdict) => {
                    // Of growth in a loop, the row of its cell shows all.
                    let in_row = model.row_about(&verdict.first().id).is_some();
                    let form = if model.state().in_full && !in_row {
                        Form::Unfolded
                    } else {
                        Form::Folded
                    };
                    let card = Card::following(make, model, verdict, (form, earlier.as_slice()));
                    let element = card.element().clone();
                    self.open = Some(card);
                    element
                }
                VerdictLine::Row(verdict) => row(make, model, verdict),
                VerdictLine::Undo(verdict) => undo(make, model, verdict),
            });
        }
        if !model.recording().runs().is_empty() {
            parts.push(tallies(make, model, &shown));
        }
        put(&self.element, &parts);
        self.drawn = None;
        self.order = verdicts.iter().map(|it| it.first().id.clone()).collect();
        if let Some(stop) = at_keyboard {
            bring_back(&self.element, &stop);
        }
    }

    /// Draws the charts of the card that is open, if they are not drawn yet.
    pub(crate) fn draw(&mut self, make: &Maker, model: &ReportModel, faces: &Faces) {
        let drawn = (model.version(), model.view(Chart::Minimap), model.theme);
        let Some(card) = &self.open else {
            return;
        };
        if self.drawn.as_ref() != Some(&drawn)
            && let Some(finding) = model.analysis().finding(card.finding())
        {
            full::draw(make, model, finding, (card.element(), faces));
            self.drawn = Some(drawn);
        }
    }

    /// What is drawn is to be drawn again.
    pub(crate) fn forget(&mut self) {
        self.drawn = None;
    }

    /// The card that is open.
    pub(crate) fn card(&self) -> Option<&Card> {
        self.open.as_ref()
    }

    /// The verdicts; in the order of before, while a run goes on or the pointer is among them.
    fn ordered<'a>(&self, model: &'a ReportModel) -> Vec<FindingGroup<'a>> {
        let mut verdicts = model.analysis().verdicts();
        let mut runs = model.recording().runs().iter();
        if runs.any(|run| run.ended.is_none()) || or_throw(self.element.matches(":hover")) {
            let place = |verdict: &FindingGroup<'_>| {
                let mut known = self.order.iter();
                let place = known.position(|id| *id == verdict.first().id);
                place.unwrap_or(usize::MAX)
            };
            verdicts.sort_by_key(place);
        }
        verdicts
    }
}

/// The panel shows another thing in this state than in the one before.
pub(crate) fn is_another(before: &ViewState, state: &ViewState) -> bool {
    let seen = |state: &ViewState| {
        let ViewState {
            opened,
            in_full,
            listed,
            undo,
            dismissed,
            device,
            row,
            ..
        } = state.clone();
        (opened, in_full, listed, undo, dismissed, device, row)
    };
    seen(before) != seen(state)
}

/// One line of the panel.
enum VerdictLine<'a> {
    Open(&'a FindingGroup<'a>),
    Row(&'a FindingGroup<'a>),
    /// A verdict dismissed a moment ago.
    Undo(&'a FindingGroup<'a>),
}

/// The verdicts as the panel shows them.
struct ShownVerdicts<'a> {
    lines: Vec<VerdictLine<'a>>,
    /// Verdicts that only the tally counts.
    rest: Vec<&'a FindingGroup<'a>>,
    /// Whether a verdict needs attention.
    is_urgent: bool,
}

impl<'a> ShownVerdicts<'a> {
    fn new(model: &ReportModel, verdicts: &'a [FindingGroup<'a>]) -> Self {
        let state = model.state();
        let is_in = |ids: &[String], verdict: &FindingGroup<'_>| {
            let mut findings = verdict.findings().iter();
            findings.all(|finding| ids.contains(&finding.id))
        };
        let standing = || {
            let verdicts = verdicts.iter();
            verdicts.filter(|verdict| !is_in(&state.dismissed, verdict))
        };
        let is_urgent = standing().any(|it| it.first().severity > Severity::Info);
        let is_opened =
            |verdict: &FindingGroup<'_>| state.opened.as_ref() == Some(&verdict.first().id);
        let opened = standing().find(|verdict| is_opened(verdict));
        let opened = opened.or_else(|| standing().next().filter(|_| is_urgent));
        let opened = opened.map(|verdict| &verdict.first().id);
        let (mut lines, mut rest) = (Vec::new(), Vec::new());
        let mut n_rows = 0;
        for verdict in verdicts {
            let first = verdict.first();
            if is_in(&state.undo, verdict) && is_in(&state.dismissed, verdict) {
                lines.push(VerdictLine::Undo(verdict));
            } else if is_in(&state.dismissed, verdict) {
            } else if Some(&first.id) == opened {
                lines.push(VerdictLine::Open(verdict));
            } else if n_rows < OutputLimits::PAGE.n_rows {
                n_rows += 1;
                lines.push(VerdictLine::Row(verdict));
            } else {
                rest.push(verdict);
                let sign = Sign::from(first).glyph();
                if state.listed.as_deref() == Some(sign) {
                    lines.push(VerdictLine::Row(verdict));
                }
            }
        }
        Self {
            lines,
            rest,
            is_urgent,
        }
    }
}

/// A finding in a line, which opens it.
fn row(make: &Maker, model: &ReportModel, verdict: &FindingGroup<'_>) -> Element {
    let shown = wording::present_verdict(model.recording(), verdict, model.units());
    let said = make.prose("span.said", &[("dir", "auto")], &shown.row);
    let attributes = [
        ("data-action", "open"),
        ("data-argument", &verdict.first().id),
        ("data-tone", tone(shown.sign)),
        ("aria-expanded", "false"),
    ];
    let line = make.group("button.entry", &attributes, &[&sign(make, &shown), &said]);
    let short = shown.remedy.map(|it| it.short);
    if let Some(short) = short.filter(|short| !short.is_empty()) {
        let fix = make.prose("span.short", &[], &prose!["fix: ", short]);
        add(&line, &fix);
    }
    if let Some(place) = shown.place {
        add(&line, &make.text("span.place", &[], &place));
    }
    let arrow = make.text("span.arrow", &[("aria-hidden", "true")], "▸");
    add(&line, &arrow);
    line
}

/// The line with an undo button in place of a dismissed finding.
fn undo(make: &Maker, model: &ReportModel, verdict: &FindingGroup<'_>) -> Element {
    let shown = wording::present_verdict(model.recording(), verdict, model.units());
    let words = make.prose("span.said", &[], &prose!["Dismissed: ", shown.title]);
    let undo = make.link("undo", "", "Undo");
    make.group("div.entry.gone", &[], &[&words, &undo])
}

/// What is said where nothing needs a change.
fn healthy(make: &Maker, model: &ReportModel) -> Element {
    let (recording, device) = (model.recording(), model.state().device);
    let calm = wording::healthy(recording, model.analysis(), device, model.units());
    let mark = make.text("span.sign", &[("aria-hidden", "true")], calm.sign.glyph());
    let title = make.prose("h3", &[], &calm.title);
    let outlook = make.prose("p.outlook", &[], &calm.outlook);
    let head = make.group("div.head", &[], &[&mark, &title, &outlook]);
    make.group(
        "article.card.empty",
        &[("data-tone", tone(calm.sign))],
        &[&head],
    )
}

/// How many findings are not shown yet; a click lists those of a sign.
fn tallies(make: &Maker, model: &ReportModel, shown: &ShownVerdicts<'_>) -> Element {
    let bar = make.empty("div.tally", &[]);
    let (recording, device) = (model.recording(), model.state().device);
    for tally in wording::tally(recording, model.analysis(), device, &shown.rest) {
        let FindingCount { sign, words, .. } = tally;
        let glyph = sign.glyph();
        let mark = make.text("span", &[("aria-hidden", "true")], glyph);
        let words = make.text("span", &[], &words);
        if !tally.is_of_findings {
            add(
                &bar,
                &make.group("span", &[("data-sign", glyph)], &[&mark, &words]),
            );
            continue;
        }
        let is_listed = model.state().listed.as_deref() == Some(glyph);
        let attributes = [
            ("data-action", "list"),
            ("data-argument", glyph),
            ("data-sign", glyph),
            ("aria-expanded", if is_listed { "true" } else { "false" }),
        ];
        add(
            &bar,
            &make.group("button.chip", &attributes, &[&mark, &words]),
        );
    }
    bar
}
