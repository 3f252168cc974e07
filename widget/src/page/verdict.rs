//! The conclusion: the worst finding open to its fix, the next ones in a line each, and how many more
//! there are.

use gpumem_core::analyze::{Finding, FindingKind, Severity, Verdict};
use gpumem_core::holders::{Fix, changed};
use gpumem_core::wording::{self, Tally, Words};
use wasm_bindgen::JsCast;
use web_sys::{Element, FocusOptions, HtmlElement};

use crate::canvas::Faces;
use crate::dom::{Dom, Maker, fill, flag};
use crate::full;
use crate::model::Model;
use crate::state::State;

/// So many findings follow the one that is open.
const N_ROWS: usize = 2;

/// The first panel of the report.
pub(crate) struct Panel {
    pub(crate) element: Element,
    /// The findings in the order in which they were shown last.
    order: Vec<String>,
}

impl Panel {
    pub(crate) fn build(make: &Maker) -> Dom<Self> {
        let label = [("aria-label", "verdict"), ("class", "verdict")];
        Ok(Self {
            element: make.empty("section", &label)?,
            order: Vec::new(),
        })
    }

    /// Shows what the model concludes; the keyboard stays where it is.
    pub(crate) fn show(&mut self, make: &Maker, model: &Model, faces: &Faces) -> Dom<()> {
        let at_keyboard = at_keyboard(&self.element)?;
        let verdicts = self.ordered(model)?;
        let shown = Shown::of(model, &verdicts);
        let mut parts = Vec::new();
        if !shown.is_urgent {
            parts.push(healthy(make, model)?);
        }
        for line in &shown.lines {
            parts.push(match line {
                Line::Open(verdict) => open(make, model, verdict, faces)?,
                Line::Row(verdict) => row(make, model, verdict)?,
                Line::Undo(verdict) => undo(make, model, verdict)?,
            });
        }
        if !model.recording().runs().is_empty() {
            parts.push(tallies(make, model, &shown)?);
        }
        fill(&self.element, &parts)?;
        self.order = verdicts.iter().map(|it| it.first().id.clone()).collect();
        match at_keyboard {
            Some(stop) => focus(&self.element, &stop),
            None => Ok(()),
        }
    }

    /// The verdicts; in the order of before, while a run goes on or the pointer is among them.
    fn ordered<'a>(&self, model: &'a Model) -> Dom<Vec<Verdict<'a>>> {
        let mut verdicts = model.analysis().verdicts();
        let mut runs = model.recording().runs().iter();
        if runs.any(|run| run.ended.is_none()) || self.element.matches(":hover")? {
            let place = |verdict: &Verdict<'_>| {
                let mut known = self.order.iter();
                let place = known.position(|id| *id == verdict.first().id);
                place.unwrap_or(usize::MAX)
            };
            gpumem_core::sort::sort_by_key(&mut verdicts, place);
        }
        Ok(verdicts)
    }
}

/// The panel shows another thing in this state than in the one before.
pub(crate) fn is_another(before: &State, state: &State) -> bool {
    let seen = |state: &State| {
        let State {
            opened,
            in_full,
            listed,
            undo,
            dismissed,
            device,
            ..
        } = state.clone();
        (opened, in_full, listed, undo, dismissed, device)
    };
    seen(before) != seen(state)
}

/// One line of the panel.
enum Line<'a> {
    Open(&'a Verdict<'a>),
    Row(&'a Verdict<'a>),
    /// It was dismissed a moment ago.
    Undo(&'a Verdict<'a>),
}

/// What the panel shows of the verdicts.
struct Shown<'a> {
    lines: Vec<Line<'a>>,
    /// Those that only the tally counts.
    rest: Vec<&'a Verdict<'a>>,
    /// Something should be looked at.
    is_urgent: bool,
}

impl<'a> Shown<'a> {
    fn of(model: &Model, verdicts: &'a [Verdict<'a>]) -> Self {
        let state = model.state();
        let is_in = |ids: &[String], verdict: &Verdict<'_>| {
            let mut findings = verdict.findings().iter();
            findings.all(|finding| ids.contains(&finding.id))
        };
        let standing = || {
            let verdicts = verdicts.iter();
            verdicts.filter(|verdict| !is_in(&state.dismissed, verdict))
        };
        let is_urgent = standing().any(|it| it.first().severity > Severity::Info);
        let is_opened = |verdict: &Verdict<'_>| state.opened.as_ref() == Some(&verdict.first().id);
        let opened = standing().find(|verdict| is_opened(verdict));
        let opened = opened.or_else(|| standing().next().filter(|_| is_urgent));
        let opened = opened.map(|verdict| &verdict.first().id);
        let (mut lines, mut rest) = (Vec::new(), Vec::new());
        let mut n_rows = 0;
        for verdict in verdicts {
            let first = verdict.first();
            if is_in(&state.undo, verdict) && is_in(&state.dismissed, verdict) {
                lines.push(Line::Undo(verdict));
            } else if is_in(&state.dismissed, verdict) {
            } else if Some(&first.id) == opened {
                lines.push(Line::Open(verdict));
            } else if n_rows < N_ROWS {
                n_rows += 1;
                lines.push(Line::Row(verdict));
            } else {
                rest.push(verdict);
                let sign = wording::icon(first);
                if state.listed.as_deref() == Some(sign) {
                    lines.push(Line::Row(verdict));
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

/// What a finding is drawn in.
fn tone(finding: &Finding) -> &'static str {
    match (wording::icon(finding), finding.kind) {
        ("▲", _) => "leak",
        ("◆", _) => "watch",
        (_, FindingKind::Leak) => "leak",
        _ => "note",
    }
}

fn sign(make: &Maker, finding: &Finding) -> Dom<Element> {
    let sign = make.text("span", &[("aria-hidden", "true")], wording::icon(finding))?;
    let heading = make.text("span", &[("class", "unseen")], wording::heading(finding))?;
    make.group("span", &[("class", "sign")], &[&sign, &heading])
}

/// `In [57]`.
fn place(finding: &Finding) -> Option<String> {
    let number = finding.cell.as_ref()?.execution_count?;
    Some(format!("In [{number}]"))
}

/// The finding with its fix, and all there is to know of it if that is wanted.
fn open(make: &Maker, model: &Model, verdict: &Verdict<'_>, faces: &Faces) -> Dom<Element> {
    let finding = verdict.first();
    let words = wording::verdict_words(model.recording(), verdict, model.units());
    let attributes = [
        ("class", "open"),
        ("data-tone", tone(finding)),
        ("data-finding", &finding.id),
    ];
    let head = head(make, finding, &words)?;
    let article = make.group("article", &attributes, &[&head])?;
    let fix = match (&finding.fix, finding.release()) {
        (Some(fix), _) => Some(self::fix(make, model, finding, fix)?),
        (None, Some(command)) => Some(command_box(make, command)?),
        (None, None) => None,
    };
    if let Some(fix) = fix {
        article.append_child(&fix)?;
    }
    article.append_child(&ways(make, model, finding, &words)?.into())?;
    if model.state().in_full {
        article.append_child(&full::body(make, model, verdict, &words, faces)?.into())?;
    }
    Ok(article)
}

fn head(make: &Maker, finding: &Finding, words: &Words) -> Dom<Element> {
    let title = make.prose("h3", &[("dir", "auto")], &words.title)?;
    let head = make.group(
        "div",
        &[("class", "head")],
        &[&sign(make, finding)?, &title],
    )?;
    let number = finding.cell.as_ref().and_then(|cell| cell.execution_count);
    if let Some(number) = number {
        // The page's script shows it where it finds the cell.
        let button = make.link("cell", &number.to_string(), "Go to the cell ↑")?;
        flag(&button, "hidden", true)?;
        head.append_child(&button)?;
    }
    if !words.outlook.is_empty() {
        let outlook = wording::capitalised(&words.outlook);
        let outlook = make.prose("p", &[("class", "outlook"), ("dir", "auto")], &outlook)?;
        head.append_child(&outlook)?;
    }
    Ok(head)
}

/// Where to change what, with what changes marked.
fn fix(make: &Maker, model: &Model, finding: &Finding, fix: &Fix) -> Dom<Element> {
    let Some(before) = &fix.before else {
        return command_box(make, &fix.after);
    };
    let at = make.empty("div", &[("class", "at")])?;
    let (place, line) = if fix.elsewhere {
        (None, Some("another cell".to_owned()))
    } else {
        let line = finding.fix_line(model.recording());
        (place(finding), line.map(|line| format!("line {line}")))
    };
    for (tag, words) in [("b", place), ("span", line)] {
        if let Some(words) = words {
            at.append_child(&make.text(tag, &[], &words)?.into())?;
        }
    }
    let code = make.empty("pre", &[("class", "patch"), ("dir", "ltr")])?;
    let sides = changed(before, &fix.after);
    for (tag, lines) in ["del", "ins"].into_iter().zip(&sides) {
        for pieces in lines {
            let line = make.empty(tag, &[])?;
            for (is_changed, text) in pieces {
                let tag = if *is_changed { "mark" } else { "span" };
                line.append_child(&make.text(tag, &[], text)?.into())?;
            }
            code.append_child(&line)?;
        }
    }
    let copy = copy_button(make, &fix.after)?;
    make.group("div", &[("class", "fix")], &[&at, &code, &copy])
}

/// What to run once.
fn command_box(make: &Maker, command: &str) -> Dom<Element> {
    let words = make.text("span", &[], "run once")?;
    let at = make.group("div", &[("class", "at")], &[&words])?;
    let command_line = make.text("code", &[], command)?;
    let code = make.group(
        "pre",
        &[("class", "patch"), ("dir", "ltr")],
        &[&command_line],
    )?;
    let copy = copy_button(make, command)?;
    make.group("div", &[("class", "fix")], &[&at, &code, &copy])
}

fn copy_button(make: &Maker, text: &str) -> Dom<Element> {
    let attributes = [
        ("class", "primary"),
        ("type", "button"),
        ("data-action", "copy"),
        ("data-argument", text),
    ];
    make.text("button", &attributes, "Copy fix")
}

/// Why the fix helps, and what else the reader can do.
fn ways(make: &Maker, model: &Model, finding: &Finding, words: &Words) -> Dom<Element> {
    let why = match &finding.fix {
        Some(fix) => wording::sentence(&wording::fix_reason(fix)),
        None => String::new(),
    };
    let why = match (why.as_str(), words.suggestions.first()) {
        ("", Some(advice)) => wording::sentence(advice),
        _ => why,
    };
    let why = make.prose("p", &[("class", "why")], &why)?;
    let (arrow, expanded) = match model.state().in_full {
        true => ("Evidence ▾", "true"),
        false => ("Evidence ▸", "false"),
    };
    let evidence = make.link("evidence", &finding.id, arrow)?;
    evidence.set_attribute("aria-expanded", expanded)?;
    let ways = make.group("div", &[("class", "ways")], &[&evidence])?;
    if !finding.runs.is_empty() {
        let words = if finding.counts_steps() {
            "Show its run"
        } else {
            "Show its runs"
        };
        ways.append_child(&make.link("show", &finding.id, words)?.into())?;
    }
    ways.append_child(&make.link("dismiss", &finding.id, "Dismiss")?.into())?;
    make.group("div", &[("class", "because")], &[&why, &ways])
}

/// A finding in a line, which opens it.
fn row(make: &Maker, model: &Model, verdict: &Verdict<'_>) -> Dom<Element> {
    let finding = verdict.first();
    let words = wording::verdict_words(model.recording(), verdict, model.units());
    let said = make.prose("span", &[("class", "said"), ("dir", "auto")], &words.row)?;
    let attributes = [
        ("type", "button"),
        ("class", "line"),
        ("data-action", "open"),
        ("data-argument", &finding.id),
        ("data-tone", tone(finding)),
        ("aria-expanded", "false"),
    ];
    let line = make.group("button", &attributes, &[&sign(make, finding)?, &said])?;
    let fix = match (&finding.fix, finding.release()) {
        (Some(fix), _) => wording::short_fix(fix),
        (None, Some(command)) => format!("`{command}`"),
        (None, None) => String::new(),
    };
    if !fix.is_empty() {
        let fix = make.prose("span", &[("class", "short")], &format!("fix: {fix}"))?;
        line.append_child(&fix)?;
    }
    if let Some(place) = place(finding) {
        line.append_child(&make.text("span", &[("class", "place")], &place)?.into())?;
    }
    let arrow = make.text("span", &[("aria-hidden", "true"), ("class", "arrow")], "▸")?;
    line.append_child(&arrow)?;
    Ok(line)
}

/// In the place of what was dismissed: the way back.
fn undo(make: &Maker, model: &Model, verdict: &Verdict<'_>) -> Dom<Element> {
    let words = wording::verdict_words(model.recording(), verdict, model.units());
    let words = format!("Dismissed: {}", words.title);
    let words = make.prose("span", &[("class", "said")], &words)?;
    let undo = make.link("undo", "", "Undo")?;
    make.group("div", &[("class", "line gone")], &[&words, &undo])
}

/// What is said where nothing needs a change.
fn healthy(make: &Maker, model: &Model) -> Dom<Element> {
    let (recording, device) = (model.recording(), model.state().device);
    let words = wording::healthy(recording, model.analysis(), device, model.units());
    let mark = if recording.runs().is_empty() {
        "○"
    } else {
        "✓"
    };
    let mark = make.text("span", &[("aria-hidden", "true"), ("class", "sign")], mark)?;
    let title = make.prose("h3", &[], &words.title)?;
    let outlook = make.prose("p", &[("class", "outlook")], &words.outlook)?;
    let head = make.group("div", &[("class", "head")], &[&mark, &title, &outlook])?;
    let attributes = [("class", "open empty"), ("data-tone", "ok")];
    make.group("article", &attributes, &[&head])
}

/// How many findings are not shown yet; a click lists those of a sign.
fn tallies(make: &Maker, model: &Model, shown: &Shown<'_>) -> Dom<Element> {
    let bar = make.empty("div", &[("class", "tally")])?;
    let n_fine = model.analysis().n_fine_cells(model.recording());
    for Tally { sign, words } in wording::tally(&shown.rest, n_fine) {
        let mark = make.text("span", &[("aria-hidden", "true")], sign)?;
        let words = make.text("span", &[], &words)?;
        if sign == "✓" {
            bar.append_child(
                &make
                    .group("span", &[("data-sign", sign)], &[&mark, &words])?
                    .into(),
            )?;
            continue;
        }
        let is_listed = model.state().listed.as_deref() == Some(sign);
        let attributes = [
            ("type", "button"),
            ("class", "chip"),
            ("data-action", "list"),
            ("data-argument", sign),
            ("data-sign", sign),
            ("aria-expanded", if is_listed { "true" } else { "false" }),
        ];
        bar.append_child(&make.group("button", &attributes, &[&mark, &words])?.into())?;
    }
    Ok(bar)
}

/// What the keyboard is on: an action and its argument.
type Stop = (String, String);

fn at_keyboard(panel: &Element) -> Dom<Option<Stop>> {
    let focused = panel.query_selector(":focus")?;
    let attribute = |element: &Element, name: &str| element.get_attribute(name);
    Ok(focused.and_then(|element| {
        let argument = attribute(&element, "data-argument").unwrap_or_default();
        Some((attribute(&element, "data-action")?, argument))
    }))
}

/// Brings the keyboard back to where it was, or to what came of that.
fn focus(panel: &Element, (action, argument): &Stop) -> Dom<()> {
    let found = panel.query_selector_all("button")?;
    let buttons = (0..found.length()).filter_map(|idx| found.get(idx));
    let buttons: Vec<HtmlElement> = buttons.map(JsCast::unchecked_into).collect();
    let is = |button: &&HtmlElement, action: &str, argument: Option<&str>| {
        let has = |name: &str, value: &str| button.get_attribute(name).as_deref() == Some(value);
        has("data-action", action) && argument.is_none_or(|it| has("data-argument", it))
    };
    let same = buttons.iter().find(|it| is(it, action, Some(argument)));
    let next = match action.as_str() {
        "open" => Some(("evidence", Some(&**argument))),
        "dismiss" => Some(("undo", None)),
        "undo" => Some(("dismiss", None)),
        "copy" => Some(("copy", None)),
        _ => None,
    };
    let next =
        next.and_then(|(action, argument)| buttons.iter().find(|it| is(it, action, argument)));
    let Some(button) = same.or(next) else {
        return Ok(());
    };
    let options = FocusOptions::new();
    options.set_prevent_scroll(true);
    button.focus_with_options(&options)
}
