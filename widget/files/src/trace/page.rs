//! The elements of the page.

use gpumem_explorer::chart::{ProfilerChart, ProfilerView, instant_words, lanes, profiler_chart};
use gpumem_explorer::formats::{
    torch_trace_conclusion, torch_trace_device, torch_trace_level, torch_trace_owner,
    torch_trace_parts,
};
use gpumem_model::units::ByteDelta;
use gpumem_model::units::count;
use gpumem_page_kit::canvas::Faces;
use gpumem_page_kit::dom::{Maker, add, describe, fill, flag, refill, set_style, write};
use gpumem_page_kit::paint::{faces, paint_scene, px};
use gpumem_readers::chrome_trace::{RangeMemory, RangeRow, TraceDeviceLevels, TraceExplorer};
use gpumem_scene::{Density, Point};
use web_sys::{Element, HtmlCanvasElement, HtmlElement};

use super::known::TraceFacts;
use super::operators::Operators;
use super::state::{CHART, N_ROWS, TraceState};
use crate::UNITS;
use crate::controls::{chart, devices};
use crate::table::{add_row, pager, row, table};

/// The most owners that are listed.
const MAX_OWNERS: usize = 20;
/// How far a range stands from the one around it, in logical pixels.
const INDENT: f64 = 14.0;
const MOST_DEPTH: usize = 12;
const HINT: &str = "Drag over the chart to count only the calls that begin there; click a range to choose it. \
    Point at a row of the table to see its calls here.";

/// What is in the page, and what it was made from.
pub(crate) struct TracePage {
    make: Maker,
    root: Element,
    faces: Faces,
    devices: Element,
    title: Element,
    legend: Element,
    tools: Element,
    canvas: HtmlCanvasElement,
    reading: Element,
    operators: Operators,
    ranges: Element,
    ranges_pager: Element,
    holds: Element,
    owners: Element,
    known: TraceFacts,
    /// The lane of each range.
    lanes: Vec<usize>,
    chart: ProfilerChart,
}

impl TracePage {
    pub(crate) fn build(
        root: &Element,
        explorer: &TraceExplorer,
        ranges: &[RangeRow],
        state: &TraceState,
        name: &str,
    ) -> Self {
        let make = Maker::beside(root);
        let summary = &explorer.summary;
        let devices = make.segments("device");
        let title = make.text("h2", &[], "PyTorch profiler trace");
        let file = make.text("span.muted", &[], name);
        let head = make.group("div.line.name", &[], &[&title, &file, &devices]);

        let verdict = make.empty("section.panel", &[]);
        for (idx, words) in torch_trace_conclusion(summary).iter().enumerate() {
            let tag = if idx == 0 { "p.headline" } else { "p" };
            add(&verdict, &make.prose(tag, &[], words));
        }
        let parts = torch_trace_parts(summary).join(" · ");
        add(&verdict, &make.text("p.muted", &[], &parts));

        let canvas = chart(&make, CHART);
        let title = make.empty("h3", &[]);
        let (legend, tools) = (make.empty("div.legend", &[]), make.empty("div.tools", &[]));
        let line = make.group("div.line", &[], &[&title, &legend, &tools]);
        let figure = make.group("figure", &[], &[canvas.as_ref()]);
        let reading = make.empty("p.reading", &[]);
        let over_time = make.group("section.panel", &[], &[&line, &figure, &reading]);
        let known = TraceFacts::new(explorer, state);
        let has_rows = known.table.n_rows() > 0;
        let is_empty = !has_rows && known.levels.is_none() && summary.ranges.is_empty();
        flag(&over_time, "hidden", is_empty);

        let operators = Operators::build(&make, explorer);
        flag(operators.panel(), "hidden", !has_rows);

        let ranges_title = make.text("h3", &[], "Steps and labelled ranges");
        let ranges_pager = make.empty("div.tools", &[]);
        let line = make.group("div.line", &[], &[&ranges_title, &ranges_pager]);
        let range_table = make.empty("div.scroll", &[]);
        let nested = make.group("section.panel", &[], &[&line, &range_table]);
        flag(&nested, "hidden", summary.ranges.is_empty());

        let holds_title = make.text("h3", &[], "Who holds what, at the peak");
        let owners = make.empty("div.scroll", &[]);
        let holds = make.group("section.panel", &[], &[&holds_title, &owners]);
        for element in [
            &head,
            &verdict,
            &over_time,
            operators.panel(),
            &nested,
            &holds,
        ] {
            add(root, element);
        }
        let mut page = Self {
            faces: faces(root),
            root: root.clone(),
            devices,
            title,
            legend,
            tools,
            canvas,
            reading,
            operators,
            ranges: range_table,
            ranges_pager,
            holds,
            owners,
            known,
            lanes: lanes(&summary.ranges),
            chart: ProfilerChart::default(),
            make,
        };
        page.show(explorer, ranges, state);
        page
    }

    /// Everything in words, and the chart.
    pub(crate) fn show(
        &mut self,
        explorer: &TraceExplorer,
        ranges: &[RangeRow],
        state: &TraceState,
    ) {
        self.known.update(explorer, state);
        self.show_device(explorer, state);
        self.show_tools(state);
        self.operators
            .show(&self.make, explorer, state, &self.known);
        self.show_ranges(explorer, ranges, state);
        self.paint(explorer, state);
    }

    fn show_device(&self, explorer: &TraceExplorer, state: &TraceState) {
        let make = &self.make;
        let all = &explorer.summary.devices;
        let labels = all.iter().map(torch_trace_device);
        refill(&self.devices, &devices(make, labels, state.device));
        flag(&self.devices, "hidden", all.len() < 2);
        let device = all.get(state.device);
        let title = match device {
            Some(device) => format!("Memory over time, on {}", torch_trace_device(device)),
            None => "Over time".to_owned(),
        };
        write(&self.title, &title);
        let has_reserved = self
            .known
            .levels
            .iter()
            .any(|levels| !levels.reserved.is_empty());
        let mut entries = Vec::new();
        for (class, words, is_there) in [
            ("allocated", "allocated", device.is_some()),
            ("reserved", "reserved", has_reserved),
            ("calls", "while a marked call runs", true),
        ] {
            if is_there {
                entries.push(make.legend_entry(class, words));
            }
        }
        fill(&self.legend, &entries);
        let owners = device.and_then(|device| Some((device, device.owners_at_peak.as_ref()?)));
        let owners = owners.filter(|(_, owners)| !owners.is_empty());
        flag(&self.holds, "hidden", owners.is_none());
        let Some((device, owners)) = owners else {
            return;
        };
        let table = table(make, &["Operator", "Memory", "Blocks"]);
        for owner in owners.iter().take(MAX_OWNERS) {
            let figures = [UNITS.size(owner.bytes), owner.n_blocks.to_string()];
            row(make, &table, &torch_trace_owner(owner), &figures);
        }
        let rest = owners.get(MAX_OWNERS..).unwrap_or_default();
        if !rest.is_empty() {
            let bytes = rest.iter().map(|owner| owner.bytes).sum();
            let n_blocks: usize = rest.iter().map(|owner| owner.n_blocks).sum();
            let figures = [UNITS.size(bytes), n_blocks.to_string()];
            row(make, &table, &count(rest.len(), "more operator"), &figures);
        }
        let known: i64 = owners
            .iter()
            .map(|owner| owner.bytes.get().cast_signed())
            .sum();
        let before = device.peak.get().saturating_sub(known);
        if device.is_absolute && before > 0 {
            let figures = [
                UNITS.size(ByteDelta::new(before).magnitude()),
                "–".to_owned(),
            ];
            row(make, &table, "allocated before the trace", &figures);
        }
        fill(&self.owners, &[table]);
    }

    fn show_tools(&self, state: &TraceState) {
        let make = &self.make;
        let mut tools = Vec::new();
        if state.chosen.is_some() {
            tools.push(make.link("clear", "calls", "Count all calls"));
            tools.push(make.link("zoom", "chosen", "Zoom to these"));
        }
        tools.push(make.link("zoom", "in", "Zoom in"));
        tools.push(make.link("zoom", "out", "Zoom out"));
        tools.push(make.link("whole", "time", "All"));
        refill(&self.tools, &tools);
    }

    fn show_ranges(&self, explorer: &TraceExplorer, ranges: &[RangeRow], state: &TraceState) {
        let make = &self.make;
        let device = explorer.summary.devices.get(state.device);
        let has_memory = ranges.iter().any(|range| !range.memory.is_empty());
        let mut heads = vec!["Name", "Count", "Start", "Time"];
        heads.extend(
            has_memory
                .then_some(["Memory", "Peak"])
                .into_iter()
                .flatten(),
        );
        let table = table(make, &heads);
        let shown = ranges.iter().enumerate().skip(state.first_range);
        for (idx, range) in shown.take(N_ROWS) {
            let argument = idx.to_string();
            let extent = (range.extent.0.as_f64(), range.extent.1.as_f64());
            let is_chosen = state.chosen == Some(extent);
            let name: HtmlElement = make.typed(
                "button.operator",
                &[
                    ("data-action", "range"),
                    ("data-argument", &argument),
                    ("aria-pressed", if is_chosen { "true" } else { "false" }),
                ],
            );
            add(&name, &make.text("code", &[], &range.name));
            let indent = range.depth.min(MOST_DEPTH) as f64 * INDENT;
            set_style(&name, "margin-left", &px(indent));
            let mut figures = vec![
                range.n_ranges.to_string(),
                range.extent.0.to_string(),
                range.time.to_string(),
            ];
            if has_memory {
                figures.extend(range_memory(&range.memory, state.device, device));
            }
            let name = make.group("div.called", &[], &[name.as_ref()]);
            let row = add_row(make, &table, &name, &figures);
            flag(&row, "data-chosen", is_chosen);
        }
        refill(&self.ranges, &[table]);
        let pager = pager(make, "ranges", state.first_range, ranges.len(), N_ROWS);
        refill(&self.ranges_pager, &pager);
    }

    /// Paints the chart.
    pub(crate) fn paint(&mut self, explorer: &TraceExplorer, state: &TraceState) {
        self.known.mark(explorer, state);
        self.read(explorer, state);
        if state.width <= 0.0 {
            return;
        }
        let view = ProfilerView {
            width: state.width,
            density: Density(state.scale),
            span: state.span,
            chosen: state.chosen,
            cursor: state.cursor,
            calls: &self.known.calls,
            ranges: &explorer.summary.ranges,
            lanes: &self.lanes,
            units: UNITS,
        };
        self.chart = profiler_chart(self.known.levels.as_ref(), &view);
        let scene = &self.chart.scene;
        describe(&self.canvas, "aria-label", &scene.description);
        paint_scene(&self.canvas, scene, state.theme, state.scale, &self.faces);
    }

    /// Applies a new theme.
    pub(crate) fn restyle(&mut self, explorer: &TraceExplorer, state: &TraceState) {
        self.faces = faces(&self.root);
        self.paint(explorer, state);
    }

    /// Describes what is under the pointer, below the chart.
    pub(crate) fn read(&self, explorer: &TraceExplorer, state: &TraceState) {
        write(&self.reading, &self.reading_text(explorer, state));
    }

    fn reading_text(&self, explorer: &TraceExplorer, state: &TraceState) -> String {
        let pointed = state.pointed;
        let at = pointed.and_then(|point| state.time_at(point.x));
        if let (Some(at), None) = (at.or(state.cursor), state.hovered) {
            let step = (state.span.1 - state.span.0) / 1000.0;
            let mut parts = vec![format!("at {}", instant_words(at, step))];
            let device = explorer.summary.devices.get(state.device);
            if let (Some(levels), Some(device)) = (&self.known.levels, device) {
                let nanos = gpumem_model::units::Nanos::new(at as u64);
                let allocated = torch_trace_level(device, levels.allocated_at(nanos));
                parts.push(format!("allocated {allocated}"));
                let reserved = levels.reserved_at(nanos);
                parts.extend(reserved.map(|it| format!("reserved {}", UNITS.size(it.magnitude()))));
            }
            let range = pointed.and_then(|point| self.chart.at(point));
            if let Some(range) = range.and_then(|idx| explorer.summary.ranges.get(idx)) {
                parts.push(format!("{}: {}", range.name, range.duration));
                if let [kept, peak] = &*range_memory(&range.memory, state.device, device) {
                    parts.push(format!("memory {kept}, peak {peak}"));
                }
            }
            return parts.join(" · ");
        }
        match self.known.marked() {
            Some(row) => {
                let name = self.known.table.name(explorer, row);
                format!("{}: {name}", count(self.known.calls.len(), "call"))
            }
            None => HINT.to_owned(),
        }
    }

    /// The range that is drawn at a point.
    pub(crate) fn range_at(&self, point: Point) -> Option<usize> {
        self.chart.at(point)
    }
}

/// What a range kept, and its peak; dashes if it was not counted.
fn range_memory(
    memory: &[RangeMemory],
    device_idx: usize,
    device: Option<&TraceDeviceLevels>,
) -> Vec<String> {
    let mut memory = memory.iter();
    let memory = memory.find(|memory| memory.device_idx == device_idx);
    match (memory, device) {
        (Some(memory), Some(device)) => {
            vec![
                UNITS.change(memory.kept),
                torch_trace_level(device, memory.peak),
            ]
        }
        _ => vec!["–".to_owned(), "–".to_owned()],
    }
}
