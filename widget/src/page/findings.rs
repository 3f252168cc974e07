//! The cards, what they leave out, and what is said where there is none.

use gpumem_analyzer::{Finding, FindingGroup};
use gpumem_wording as wording;
use web_sys::Element;

use crate::cards::{Card, Form, Linked, bring_back, keyboard_in};
use crate::dom::{Maker, fill, put};
use crate::model::ReportModel;
use crate::settings::ThresholdSetting;
use crate::state::{Choice, Fold, Pointed};

/// The findings of the report.
pub(crate) struct Findings {
    pub(crate) list: Element,
    cards: Vec<Card>,
    /// What the analysis could not read.
    pub(crate) notes: Element,
}

impl Findings {
    pub(crate) fn build(make: &Maker) -> Self {
        Self {
            list: make.empty("section.findings", &[("aria-label", "findings")]),
            cards: Vec::new(),
            notes: make.empty("div.notes", &[]),
        }
    }

    /// Shows the findings of the model while somebody wants to see them; a card that stays is the same
    /// element.
    pub(crate) fn show(&mut self, make: &Maker, model: &ReportModel) {
        let notes = model
            .analysis()
            .warnings
            .iter()
            .map(|it| make.text("p", &[], &wording::warning(model.recording(), it)))
            .collect::<Vec<_>>();
        fill(&self.notes, &notes);
        if !model.state().is_open(Fold::Findings) {
            self.cards.clear();
            return fill(&self.list, &[]);
        }
        let at_keyboard = keyboard_in(&self.list);
        let earlier = std::mem::take(&mut self.cards);
        for verdict in shown(model) {
            let form = (Form::Whole, &*earlier);
            self.cards
                .push(Card::following(make, model, &verdict, form));
        }
        let mut elements: Vec<Element> = self
            .cards
            .iter()
            .map(|card| card.element().clone())
            .collect();
        if model.analysis().findings.is_empty() && !model.recording().runs().is_empty() {
            elements.push(nothing_found(make, model));
        }
        elements.extend(dismissed(make, model));
        put(&self.list, &elements);
        if let Some(stop) = at_keyboard {
            bring_back(&self.list, &stop);
        }
    }

    /// Marks the chosen cards, and those that are about what is pointed at.
    pub(crate) fn mark(&self, model: &ReportModel, open: Option<&Card>) {
        let state = model.state();
        let pointed = Linked {
            run: state.pointed.and_then(Pointed::run),
            name: model.pointed_name(),
        };
        for card in self.cards.iter().chain(open) {
            let Some(finding) = model.analysis().finding(card.finding()) else {
                continue;
            };
            let is_chosen = match &state.chosen {
                None | Some(Choice::Search(_)) => false,
                Some(Choice::Finding(id)) => *id == finding.id,
                Some(Choice::Cell(cell)) => finding
                    .cell
                    .as_ref()
                    .is_some_and(|found| found.idx == *cell),
            };
            card.mark(finding, is_chosen, &pointed);
        }
    }

    /// Brings the card of a finding into view, and the keyboard to it.
    pub(crate) fn reveal(&self, finding: &str) {
        if let Some(card) = self.cards.iter().find(|card| card.finding() == finding) {
            card.reveal();
        }
    }
}

fn shown(model: &ReportModel) -> Vec<FindingGroup<'_>> {
    let dismissed = &model.state().dismissed;
    let mut verdicts = model.analysis().verdicts();
    let stands = |finding: &Finding| !dismissed.contains(&finding.id);
    verdicts.retain(|verdict| verdict.findings().iter().any(|it| stands(it)));
    verdicts
}

/// How many findings the reader is done with, and the way back to them.
fn dismissed(make: &Maker, model: &ReportModel) -> Option<Element> {
    let words = match model.analysis().verdicts().len() - shown(model).len() {
        0 => return None,
        1 => "1 finding dismissed".to_owned(),
        n => format!("{n} findings dismissed"),
    };
    let words = make.text("span.muted", &[], &words);
    let undo = make.link("restore", "", "undo");
    Some(make.group("div.dismissed", &[], &[&words, &undo]))
}

fn nothing_found(make: &Maker, model: &ReportModel) -> Element {
    let below = ThresholdSetting::shown(model.growth_setting(), model.rules(), model.units());
    let checked = wording::nothing_found(model.recording(), &below);
    make.text("p.checked", &[], &checked)
}
