//! The list of names that no cell has read for a while, below the bar.

use gpumem_analyzer::IdleMemory;
use gpumem_wording as wording;
use gpumem_wording::{Sign, code, prose};
use web_sys::Element;

use crate::dom::{Maker, flag, refill};
use crate::model::ReportModel;

/// The list; hidden if there is nothing in it.
pub(crate) struct Idle {
    pub(crate) element: Element,
    list: Element,
}

impl Idle {
    pub(crate) fn build(make: &Maker) -> Self {
        let heading = make.text("h3", &[], wording::IDLE);
        let note = format!("{} {}", Sign::Note, wording::IDLE_NOTE);
        let note = make.text("span.muted", &[], &note);
        let line = make.group("div.line", &[], &[&heading, &note]);
        let list = make.empty("ul", &[]);
        let label = [("aria-label", wording::IDLE), ("hidden", "")];
        let element = make.group("section.idle", &label, &[&line, &list]);
        Self { element, list }
    }

    pub(crate) fn show(&self, make: &Maker, model: &ReportModel) {
        let idle = model.analysis().idle_on(model.state().device);
        let rows: Vec<Element> = idle.map(|it| row(make, model, it)).collect();
        flag(&self.element, "hidden", rows.is_empty());
        refill(&self.list, &rows);
    }
}

/// The names, since when, how much, and the statement that frees it.
fn row(make: &Maker, model: &ReportModel, idle: &IdleMemory) -> Element {
    let sign = make.text("span.sign", &[("aria-hidden", "true")], Sign::Note.glyph());
    let names = make.text("code", &[("dir", "auto")], &idle.names.join(", "));
    let since = wording::idle(model.recording(), idle);
    let since = make.prose("span.since", &[("dir", "auto")], &since);
    let size = make.text("b", &[], &model.units().size(idle.n_bytes));
    let release = idle.release();
    let attributes = [("data-action", "copy"), ("data-argument", &*release)];
    let copy = make.prose("button.link", &attributes, &prose!["copy ", code(&release)]);
    make.group("li", &[], &[&sign, &names, &since, &size, &copy])
}
