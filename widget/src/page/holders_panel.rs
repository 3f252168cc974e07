//! The holders of memory: their map, the path into it, and a list.

use gpumem_analyzer::cell_label;
use gpumem_charts::{Map, Moment};
use gpumem_model::recording::RunIdx;
use web_sys::Element;

use super::controls::{press, segments};
use super::picture::read_out;
use crate::dom::{Maker, add, fill, flag, write};
use crate::holder_list;
use crate::model::ReportModel;
use crate::saved::moment_name;

const MOMENTS: [(&str, &str); 3] = [
    ("before", "before"),
    ("after", "after"),
    ("change", "change"),
];
const HINT: &str = "Point at a field to read it, click or press Enter to go in, Escape to go out.";

/// The map of holders with what belongs to it.
pub(crate) struct HoldersPanel {
    pub(crate) element: Element,
    subtitle: Element,
    moments: Element,
    crumbs: Element,
    figure: Element,
    reading: Element,
    as_list: Element,
    list: Element,
}

impl HoldersPanel {
    pub(crate) fn build(make: &Maker) -> Self {
        let heading = make.text("h2", &[], "Held by");
        let subtitle = make.empty("span.muted", &[("dir", "auto")]);
        let moments = segments(make, "the map shows", "holders", &MOMENTS);
        let tools = make.group("div.tools", &[], &[&moments]);
        let line = make.group("div.line", &[], &[&heading, &subtitle, &tools]);
        let crumbs = make.empty("nav.crumbs", &[("aria-label", "place in the map")]);
        let figure = make.empty("figure.panel", &[]);
        let reading = make.empty("p.reading", &[("dir", "auto")]);
        let list = make.empty("div", &[]);
        let summary = make.text("summary", &[], "as a list");
        let as_list = make.group("details", &[], &[&summary, &list]);
        let label = [("aria-label", "who holds memory")];
        let element = make.group("section.held", &label, &[&line, &crumbs, &figure]);
        Self {
            element,
            subtitle,
            moments,
            crumbs,
            figure,
            reading,
            as_list,
            list,
        }
    }

    /// Inserts the map's canvas.
    pub(crate) fn place(&self, stage: &Element) {
        add(&self.figure, stage);
        add(&self.figure, &self.reading);
        add(&self.figure, &self.as_list);
    }

    /// Shows the path into the map, and its fields as a list.
    pub(crate) fn show(&self, make: &Maker, model: &ReportModel) {
        let map = model.map();
        flag(&self.reading, "hidden", map.is_none());
        flag(&self.as_list, "hidden", map.is_none());
        let choices = map.as_ref().and_then(|map| map.before);
        flag(&self.moments, "hidden", choices.is_none());
        let Some(map) = map else {
            self.subtitle.set_text_content(None);
            return fill(&self.crumbs, &[]);
        };
        write(&self.subtitle, &subtitle(model, &map));
        press(&self.moments, moment_name(map.moment));
        fill(&self.crumbs, &crumbs(make, model, &map));
        fill(
            &self.list,
            &[holder_list::tree(make, &map.fields, None, model.units())],
        );
        self.read(make, model);
    }

    /// Describes the field under the pointer, below the map.
    pub(crate) fn read(&self, make: &Maker, model: &ReportModel) {
        let pointed = model.state().pointed.filter(|it| it.field().is_some());
        let Some(read) = pointed.and_then(|at| read_out(model, at)) else {
            return fill(&self.reading, &[make.text("span", &[], HINT)]);
        };
        let mut parts = vec![make.text("code", &[], &read.name)];
        for (name, figure) in &read.figures {
            let tag = if *name == "path" { "code" } else { "span" };
            parts.push(make.text(tag, &[("dir", "auto")], figure));
        }
        parts.push(make.text("span", &[], &read.place));
        fill(&self.reading, &parts);
    }
}

/// `after losses.append(…) · In [18], against In [17]`.
fn subtitle(model: &ReportModel, map: &Map) -> String {
    let recording = model.recording();
    let number = |run: RunIdx| match recording.run(run).execution_count {
        Some(count) => format!("In [{count}]"),
        None => format!("run {}", run.0 + 1),
    };
    let label = cell_label(recording, recording.run(map.run));
    let run = format!("{label} · {}", number(map.run));
    let moment = match (map.moment, map.before) {
        (Moment::After, _) => format!("after {run}"),
        (Moment::Before, _) => format!("before {run}"),
        (Moment::Change, Some(before)) => format!("{run}, against {}", number(before)),
        (Moment::Change, None) => format!("what grew in {run}"),
    };
    let cut = if map.is_cut {
        " · the look was cut short: there is more"
    } else {
        ""
    };
    format!("{moment}{cut}")
}

/// The fields around the one that is shown, each a way back to it.
fn crumbs(make: &Maker, model: &ReportModel, map: &Map) -> Vec<Element> {
    let device = model.recording().devices().get(model.state().device.get());
    let label = device.map_or("device", |device| &device.label);
    let names = map.inside.iter().map(|field| field.name.as_str());
    let mut crumbs = Vec::new();
    for (depth, name) in std::iter::once(label).chain(names).enumerate() {
        if depth == map.inside.len() {
            let words = format!("{name} · {}", map.total(model.units()));
            let here = [("aria-current", "location"), ("dir", "auto")];
            crumbs.push(make.text("span", &here, &words));
        } else {
            crumbs.push(make.link("inside", &depth.to_string(), name));
            crumbs.push(make.text("span", &[("aria-hidden", "true")], "›"));
        }
    }
    crumbs
}
