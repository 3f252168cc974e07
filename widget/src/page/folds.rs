//! Folds, which are closed at first.

use web_sys::Element;

use super::findings::Findings;
use super::runs;
use crate::dom::{Maker, add, fill, flag, refill, write};
use crate::model::ReportModel;
use crate::state::Fold;

/// The folds below the charts.
pub(crate) struct Folds {
    pub(crate) element: Element,
    /// Each with its summary.
    all: Vec<(Fold, Element, Element)>,
    runs: Element,
}

impl Folds {
    pub(crate) fn build(
        make: &Maker,
        (map, findings, settings): (&Element, &Findings, &Element),
    ) -> Self {
        let runs = make.empty("div.panel.padded", &[]);
        let element = make.group("div.folds", &[], &[&findings.notes]);
        let mut all = Vec::new();
        for fold in Fold::ALL {
            let (words, content) = match fold {
                Fold::Map => ("Map of who holds it", map),
                Fold::Findings => ("", &findings.list),
                Fold::Runs => ("Table of runs", &runs),
                Fold::Settings => ("Settings", settings),
            };
            let attributes = [("data-action", "fold"), ("data-argument", fold.name())];
            let summary = make.text("summary", &attributes, words);
            let details = make.group("details.fold", &[], &[&summary, content]);
            add(&element, &details);
            all.push((fold, details, summary));
        }
        Self { element, all, runs }
    }

    /// Opens and closes what the reader wants; the table of runs is there only while it is open.
    pub(crate) fn show(&self, make: &Maker, model: &ReportModel) {
        let state = model.state();
        for (fold, details, summary) in &self.all {
            if *fold == Fold::Findings {
                let n_findings = model.analysis().findings.len();
                write(summary, &format!("All findings ({n_findings})"));
            }
            flag(details, "open", state.is_open(*fold));
        }
        if !state.is_open(Fold::Runs) {
            return fill(&self.runs, &[]);
        }
        refill(&self.runs, &runs::all(make, model));
    }
}
