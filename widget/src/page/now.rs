//! What fills the device now, and how much of it is cache and free.

use gpumem_charts::in_use;
use gpumem_model::units::Bytes;
use web_sys::Element;

use super::idle::Idle;
use super::picture::read_out;
use crate::dom::{Maker, fill, write};
use crate::model::ReportModel;
use crate::state::Chart;

/// The panel of the bar.
pub(crate) struct Now {
    pub(crate) element: Element,
    title: Element,
    words: Element,
    idle: Idle,
}

impl Now {
    /// The panel around the bar's canvas.
    pub(crate) fn build(make: &Maker, bar: &Element) -> Self {
        let title = make.text("h2", &[], "Now");
        let words = make.empty("p.usage", &[("dir", "auto")]);
        let line = make.group("div.line", &[], &[&title, &words]);
        let label = [("aria-label", "what fills the device")];
        let idle = Idle::build(make);
        let element = make.group("figure.panel.now", &label, &[&line, bar, &idle.element]);
        Self {
            element,
            title,
            words,
            idle,
        }
    }

    pub(crate) fn show(&self, make: &Maker, model: &ReportModel) {
        let devices = model.recording().devices();
        let n_accelerators = devices.iter().filter(|it| it.kind.is_accelerator()).count();
        let device = devices.get(model.state().device.get());
        let device = device.filter(|_| n_accelerators > 1);
        let of = device.map_or(String::new(), |device| format!(", {}", device.label));
        write(&self.title, &format!("Now{of}"));
        self.idle.show(make, model);
        self.read(make, model);
    }

    /// What is pointed at, else how full the device is.
    pub(crate) fn read(&self, make: &Maker, model: &ReportModel) {
        let pointed = model.state().pointed.filter(|at| at.chart == Chart::Now);
        if let Some(read) = pointed.and_then(|at| read_out(model, at)) {
            let name = make.text("b", &[], &read.name);
            let size = read.figures.first().map_or("", |(_, size)| size);
            let words = make.text("span", &[], &format!("{size}, {}", read.place));
            return fill(&self.words, &[name, words]);
        }
        let (usage, units) = (in_use(&model.segments()), model.units());
        let words = usage.describe(units);
        let (figure, rest) = split(&words);
        let mut parts = vec![make.text("b", &[], figure), make.text("span", &[], rest)];
        if usage.is_limited {
            for (class, name, size) in [
                ("cache", "cache", usage.cache),
                ("free", "free", usage.free),
            ]
            .into_iter()
            .filter(|(_, _, size)| *size > Bytes::ZERO)
            {
                let swatch = make.empty("i", &[("class", class)]);
                let words = make.text("span", &[], name);
                let size = make.text("b", &[], &units.size(size));
                parts.push(make.group("span.key", &[], &[&swatch, &words, &size]));
            }
        }
        fill(&self.words, &parts);
    }
}

/// The figure at the front: `9.5 GiB` of `9.5 GiB of 16 GiB in use`.
fn split(words: &str) -> (&str, &str) {
    let second = words.match_indices(' ').nth(1);
    second.map_or((words, ""), |(at, _)| words.split_at(at))
}
