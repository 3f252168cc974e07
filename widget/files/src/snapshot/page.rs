//! The elements of the page.

use gpumem_explorer::chart::{
    BandOf, Icicle, IcicleView, TraceBand, TraceChart, TraceView, icicle, part_words, trace_levels,
};
use gpumem_explorer::formats::{
    torch_snapshot_failure, torch_snapshot_headline, torch_snapshot_hint, torch_snapshot_line,
    torch_snapshot_sets, torch_snapshot_totals,
};
use gpumem_model::units::count;
use gpumem_model::units::{Bytes, Nanos};
use gpumem_page_kit::canvas::Faces;
use gpumem_page_kit::dom::{Maker, add, describe, fill, flag, write};
use gpumem_page_kit::paint::{faces, paint_scene};
use gpumem_page_kit::segments;
use gpumem_readers::code_line::CodeLine;
use gpumem_readers::torch_snapshot::{
    Allocation, Explorer, Flame, LineOwner, SnapshotDeviceSummary, SnapshotLevels,
};
use gpumem_scene::{Density, Point, Scene};
use gpumem_wording::Prose;
use web_sys::{Element, HtmlCanvasElement};

use super::state::{SnapshotChart, SnapshotView};
use crate::UNITS;
use crate::controls::{chart, devices, search};
use crate::table::{row, table};

/// The most lines that are listed.
const MAX_OWNERS: usize = 20;
/// The most failed requests that are listed, the latest ones.
const MAX_FAILURES: usize = 5;

/// What is in the page, and what it was made from.
pub(crate) struct SnapshotPage {
    make: Maker,
    root: Element,
    faces: Faces,
    devices: Element,
    headline: Element,
    totals: Element,
    failures: Element,
    trace: Element,
    levels_canvas: HtmlCanvasElement,
    levels_reading: Element,
    moment: Element,
    icicle_canvas: HtmlCanvasElement,
    icicle_reading: Element,
    owners: Element,
    lived: Element,
    lifetimes: Element,
    map: Element,
    known: Option<MomentFacts>,
    chart: TraceChart,
    /// The band that is pointed at.
    pointed: Option<TraceBand>,
    icicle: Icicle,
}

/// What was found out for a moment of a device.
struct MomentFacts {
    device: usize,
    levels: SnapshotLevels,
    allocations: Vec<Allocation>,
    /// After how many events requests failed.
    failures: Vec<usize>,
    moment: usize,
    is_inside: bool,
    flame: Flame,
    owners: Vec<LineOwner>,
}

impl SnapshotPage {
    pub(crate) fn build(
        root: &Element,
        explorer: &Explorer,
        state: &SnapshotView,
        name: &str,
    ) -> Self {
        let make = Maker::beside(root);
        let devices = make.segments("device");
        let title = make.text("h2", &[], "PyTorch memory snapshot");
        let file = make.text("span.muted", &[], name);
        let head = make.group("div.line.name", &[], &[&title, &file, &devices]);

        let headline = make.empty("p.headline", &[]);
        let totals = make.empty("div", &[]);
        let failures = make.empty("div.failures", &[]);
        let verdict = make.group("section.panel", &[], &[&headline, &totals, &failures]);

        let levels_canvas = chart(&make, "levels");
        let levels_reading = make.empty("p.reading", &[]);
        let title = make.text("h3", &[], "Over the trace");
        let legend = legend(&make);
        let tools = make.group(
            "div.tools",
            &[],
            &[
                &make.link("moment", "peak", "Peak"),
                &make.link("moment", "end", "End"),
                &make.link("zoom", "in", "Zoom in"),
                &make.link("zoom", "out", "Zoom out"),
                &make.link("whole", "", "All"),
            ],
        );
        let line = make.group("div.line", &[], &[&title, &legend, &tools]);
        let figure = make.group("figure", &[], &[levels_canvas.as_ref()]);
        let trace = make.group("section.panel", &[], &[&line, &figure, &levels_reading]);

        let moment = make.empty("h3", &[]);
        let search = search(&make, "find a function or file");
        let inside = make.empty("input", &[("type", "checkbox"), ("data-input", "inside")]);
        let words = make.text("span", &[], "allocation sites first");
        let inside = make.group("label", &[], &[&inside, &words]);
        let tools = make.group("div.tools", &[], &[&inside, &search]);
        let line = make.group("div.line", &[], &[&moment, &tools]);
        let icicle_canvas = chart(&make, "icicle");
        let figure = make.group("figure.icicle", &[], &[icicle_canvas.as_ref()]);
        let icicle_reading = make.empty("p.reading", &[]);
        let owners = make.empty("div.scroll", &[]);
        let stacks = make.group(
            "section.panel",
            &[],
            &[&line, &figure, &icicle_reading, &owners],
        );

        let title = make.text("h3", &[], "How long blocks lived");
        let order = "what took most memory for longest first";
        let order = make.text("span.muted", &[], order);
        let line = make.group("div.line", &[], &[&title, &order]);
        let lifetimes = make.empty("div.scroll", &[]);
        let lived = make.group("section.panel", &[], &[&line, &lifetimes]);

        let title = make.text("h3", &[], "Where it lies, at the end");
        let map = make.empty("div.box", &[]);
        let lies = make.group("section.panel", &[], &[&title, &map]);
        for element in [&head, &verdict, &trace, &stacks, &lived, &lies] {
            add(root, element);
        }
        let mut page = Self {
            faces: faces(root),
            make,
            root: root.clone(),
            devices,
            headline,
            totals,
            failures,
            trace,
            levels_canvas,
            levels_reading,
            moment,
            icicle_canvas,
            icicle_reading,
            owners,
            lived,
            lifetimes,
            map,
            known: None,
            chart: TraceChart::default(),
            pointed: None,
            icicle: Icicle::default(),
        };
        page.show(explorer, state);
        page
    }

    /// Everything in words, and the charts.
    pub(crate) fn show(&mut self, explorer: &Explorer, state: &SnapshotView) {
        let is_other = self
            .known
            .as_ref()
            .is_none_or(|it| it.device != state.device);
        self.know(explorer, state);
        if is_other {
            self.pointed = None;
            self.show_device(explorer, state);
        }
        self.show_moment(explorer, state);
        self.paint(explorer, state);
    }

    /// Finds out what is not known of the moment yet.
    fn know(&mut self, explorer: &Explorer, state: &SnapshotView) {
        let (device, moment, is_inside) = (state.device, state.moment, state.is_inside);
        let flame = || explorer.flame(device, moment, state.side());
        match &mut self.known {
            Some(known) if known.device == device => {
                if (known.moment, known.is_inside) != (moment, is_inside) {
                    known.flame = flame();
                    known.owners = explorer.owners(device, moment);
                    (known.moment, known.is_inside) = (moment, is_inside);
                }
            }
            known => {
                *known = Some(MomentFacts {
                    device,
                    levels: explorer.levels(device),
                    allocations: explorer.allocations(device),
                    failures: explorer.failures(device),
                    moment,
                    is_inside,
                    flame: flame(),
                    owners: explorer.owners(device, moment),
                });
            }
        }
    }

    fn show_device(&self, explorer: &Explorer, state: &SnapshotView) {
        let all = &explorer.summary.devices;
        let make = &self.make;
        let labels = all.iter().map(|it| it.device.to_string());
        fill(&self.devices, &devices(make, labels, state.device));
        flag(&self.devices, "hidden", all.len() < 2);
        let Some(device) = all.get(state.device) else {
            write(&self.headline, "It has no memory in it.");
            return;
        };
        write(&self.headline, &torch_snapshot_headline(device));
        let mut totals = Vec::new();
        for parts in torch_snapshot_totals(device) {
            totals.push(make.prose("p", &[], &Prose::joined(&parts, " · ")));
        }
        let sets = device.equal_sets.as_ref().map(torch_snapshot_sets);
        totals.extend(sets.map(|sets| make.text("p", &[], &sets)));
        fill(&self.totals, &totals);
        let mut failures = Vec::new();
        let at = self.known.iter().flat_map(|known| &known.failures);
        let failed: Vec<_> = device.failed.iter().zip(at).collect();
        for (failed, at) in failed.into_iter().rev().take(MAX_FAILURES) {
            let words = format!("✕ after event {at}");
            let link = make.link("moment", &at.to_string(), &words);
            let words = torch_snapshot_failure(failed).join(" · ");
            let words = make.text("span", &[], &words);
            failures.push(make.group("p", &[], &[&link, &words]));
            if let Some(hint) = torch_snapshot_hint(failed, device, &explorer.summary) {
                failures.push(make.prose("p", &[], &hint));
            }
        }
        fill(&self.failures, &failures);
        flag(&self.trace, "hidden", state.n_events == 0);
        flag(&self.lived, "hidden", device.lifetimes.is_empty());
        fill(&self.lifetimes, &[self.lifetimes(device)]);
        let found = explorer.segments(state.device);
        fill(&self.map, &segments::map(make, &found, UNITS));
    }

    fn show_moment(&self, explorer: &Explorer, state: &SnapshotView) {
        let make = &self.make;
        let place = if state.n_events == 0 {
            "in the snapshot".to_owned()
        } else if state.moment == SnapshotView::peak(explorer, state.device) {
            "at the peak".to_owned()
        } else if state.moment == state.n_events {
            "at the end".to_owned()
        } else {
            format!("after event {}", state.moment)
        };
        write(&self.moment, &format!("Who holds what, {place}"));
        let Some(known) = &self.known else {
            return;
        };
        let (owners, all) = (&known.owners, known.flame.nodes[0].bytes);
        let table = table(make, &["line", "bytes", "share", "blocks"]);
        let row = |line: &str, bytes: Bytes, n_blocks: usize| {
            let share = bytes.as_f64() / all.as_f64().max(1.0) * 100.0;
            let share = if share < 1.0 {
                "< 1 %".to_owned()
            } else {
                format!("{share:.0} %")
            };
            let n_blocks = match n_blocks {
                0 => "–".to_owned(),
                n => n.to_string(),
            };
            row(make, &table, line, &[UNITS.size(bytes), share, n_blocks]);
        };
        for owner in owners.iter().take(MAX_OWNERS) {
            row(
                &torch_snapshot_line(owner, owners),
                owner.bytes,
                owner.n_blocks,
            );
        }
        let rest = owners.get(MAX_OWNERS..).unwrap_or_default();
        if !rest.is_empty() {
            let bytes = rest.iter().map(|owner| owner.bytes).sum();
            let n_blocks = rest.iter().map(|owner| owner.n_blocks).sum();
            row(&count(rest.len(), "more line"), bytes, n_blocks);
        }
        let listed = owners.iter().map(|owner| owner.bytes).sum();
        let before = all.saturating_sub(listed);
        if before > Bytes::ZERO {
            row(
                "allocated before the trace: who did is not known",
                before,
                0,
            );
        }
        fill(&self.owners, &[table]);
    }

    /// How long the blocks of each line lived.
    fn lifetimes(&self, device: &SnapshotDeviceSummary) -> Element {
        let make = &self.make;
        let heads = ["line", "bytes", "blocks", "not freed", "median", "longest"];
        let table = table(make, &heads);
        let figures = |n_blocks: usize, bytes: Bytes, left: Bytes| {
            [UNITS.size(bytes), n_blocks.to_string(), UNITS.size(left)]
        };
        for lived in device.lifetimes.iter().take(MAX_OWNERS) {
            let line = lived.line.as_ref().map(CodeLine::short);
            let line = line.unwrap_or_else(|| "no stack was recorded".to_owned());
            let [bytes, n_blocks, left] = figures(lived.n_blocks, lived.bytes, lived.left);
            let (median, longest) = (lived.median.to_string(), lived.longest.to_string());
            let cells = [bytes, n_blocks, left, median, longest];
            row(make, &table, &line, &cells);
        }
        let rest = device.lifetimes.get(MAX_OWNERS..).unwrap_or_default();
        if !rest.is_empty() {
            let n_blocks = rest.iter().map(|it| it.n_blocks).sum();
            let bytes = rest.iter().map(|it| it.bytes).sum();
            let left = rest.iter().map(|it| it.left).sum();
            let cells = figures(n_blocks, bytes, left);
            row(make, &table, &count(rest.len(), "more line"), &cells);
        }
        table
    }

    /// The moment follows the pointer: the levels alone, the rest comes when it is let go.
    pub(crate) fn follow(&mut self, explorer: &Explorer, state: &SnapshotView) {
        self.paint_levels(explorer, state);
        self.read(explorer, state);
    }

    /// Paints the charts.
    pub(crate) fn paint(&mut self, explorer: &Explorer, state: &SnapshotView) {
        self.paint_levels(explorer, state);
        self.paint_icicle(explorer, state);
        self.read(explorer, state);
    }

    /// The theme is another one.
    pub(crate) fn restyle(&mut self, explorer: &Explorer, state: &SnapshotView) {
        self.faces = faces(&self.root);
        self.paint(explorer, state);
    }

    fn paint_levels(&mut self, explorer: &Explorer, state: &SnapshotView) {
        let Some(known) = self.known.as_ref().filter(|_| state.n_events > 0) else {
            return;
        };
        let view = TraceView {
            width: state.width,
            span: state.span,
            moment: state.moment,
            density: Density(state.scale),
            failures: &known.failures,
            allocations: &known.allocations,
            pointed: self.pointed.map(|band| band.of),
            micros: &|event| explorer.micros(state.device, event),
            units: UNITS,
        };
        self.chart = trace_levels(&known.levels, &view);
        self.put(&self.levels_canvas, &self.chart.scene, state);
    }

    fn paint_icicle(&mut self, explorer: &Explorer, state: &SnapshotView) {
        let Some(known) = &self.known else {
            return;
        };
        let view = IcicleView {
            width: state.width,
            root: state.root,
            search: state.search.clone(),
            units: UNITS,
        };
        self.icicle = icicle(&known.flame, explorer.names(), &view);
        self.put(&self.icicle_canvas, &self.icicle.scene, state);
    }

    fn put(&self, canvas: &HtmlCanvasElement, scene: &Scene, state: &SnapshotView) {
        if state.width <= 0.0 {
            return;
        }
        describe(canvas, "aria-label", &scene.description);
        paint_scene(canvas, scene, state.theme, state.scale, &self.faces);
    }

    /// What is pointed at stands out, and is below the charts in words.
    pub(crate) fn point(&mut self, explorer: &Explorer, state: &SnapshotView) {
        let at = state.pointed.filter(|(at, _)| *at == SnapshotChart::Levels);
        let pointed = at.and_then(|(_, point)| self.chart.at(point));
        let of = |band: Option<TraceBand>| band.map(|band| band.of);
        let is_other = of(pointed) != of(self.pointed);
        self.pointed = pointed;
        if is_other {
            self.paint_levels(explorer, state);
        }
        self.read(explorer, state);
    }

    /// What is pointed at, below the charts.
    fn read(&self, explorer: &Explorer, state: &SnapshotView) {
        let here = |chart| state.pointed.filter(|(at, _)| *at == chart).map(|it| it.1);
        let event = here(SnapshotChart::Levels).and_then(|point| state.event_at(point.x));
        let event = event.map_or(state.moment, |event| event.round() as usize);
        write(
            &self.levels_reading,
            &self.levels_words(explorer, state, event),
        );
        let node = here(SnapshotChart::Icicle).and_then(|point| self.icicle.at(point));
        let words = match (node, &self.known) {
            (Some(node), Some(known)) => frame_words(explorer, &known.flame, node),
            _ => "Click a frame to see what is below it; Escape goes back to all.".to_owned(),
        };
        write(&self.icicle_reading, &words);
    }

    fn levels_words(&self, explorer: &Explorer, state: &SnapshotView, event: usize) -> String {
        let Some(known) = &self.known else {
            return String::new();
        };
        let at = |levels: &[Bytes]| levels.get(event).map(|level| UNITS.size(*level));
        let micros = explorer.micros(state.device, event.saturating_sub(1));
        let time = micros.map(|micros| Nanos::new(micros.saturating_mul(1000)).to_string());
        let mut parts = vec![format!("after event {event} of {}", state.n_events)];
        parts.extend(time);
        parts.extend(at(&known.levels.allocated).map(|size| format!("allocated {size}")));
        parts.extend(at(&known.levels.reserved).map(|size| format!("reserved {size}")));
        let pointed = self.pointed;
        parts.extend(pointed.map(|band| band_words(explorer, state.device, known, band)));
        parts.join(" · ")
    }

    /// The frame that is drawn at a point of the chart of the stacks.
    pub(crate) fn node_at(&self, point: Point) -> Option<usize> {
        self.icicle.at(point)
    }
}

/// A band in words: how much, how long, who.
fn band_words(explorer: &Explorer, device: usize, known: &MomentFacts, band: TraceBand) -> String {
    let mut allocations = known.allocations.iter();
    let (block, life) = match band.of {
        BandOf::Block(idx) => {
            let block = allocations.nth(idx);
            (block, block.map(|it| life_words(explorer, device, it)))
        }
        BandOf::Line(owner) => {
            let small = "in small blocks".to_owned();
            (allocations.find(|it| it.owner == owner), Some(small))
        }
    };
    let line = block.and_then(|block| explorer.line(block.stack));
    let line = line.map_or_else(
        || "no stack was recorded".to_owned(),
        |line| format!("by {}", line.short()),
    );
    let bytes = UNITS.size(band.bytes);
    format!("here {bytes} {}, {line}", life.unwrap_or_default())
}

fn life_words(explorer: &Explorer, device: usize, block: &Allocation) -> String {
    let lived = explorer.lived(device, block);
    match (block.from, block.until) {
        (0, None) => "all the time".to_owned(),
        (0, Some(until)) => format!("from before the trace to event {until}"),
        (from, None) => format!("from event {from} to the end, for {lived}"),
        (from, Some(until)) => format!("from event {from} to {until}, for {lived}"),
    }
}

/// A frame in words: what, where, how much.
fn frame_words(explorer: &Explorer, flame: &Flame, node: usize) -> String {
    let of = &flame.nodes[node];
    let frame = of.part.frame().and_then(|it| explorer.frames.get(it));
    let name = match frame {
        Some(frame) => {
            let line = &frame.line;
            let at = line.line.map_or(String::new(), |line| format!(":{line}"));
            format!("{} · {}{at}", line.function, line.file)
        }
        None => part_words(of.part, explorer.names()),
    };
    let all = flame.nodes[0].bytes.as_f64().max(1.0);
    let share = of.bytes.as_f64() / all * 100.0;
    format!(
        "{} in {}, {share:.1} % · {name}",
        UNITS.size(of.bytes),
        count(of.n_blocks, "block")
    )
}

fn legend(make: &Maker) -> Element {
    let legend = make.empty("div.legend", &[]);
    let bands = "allocated: a band for each large block, one for the small ones of a line";
    for (class, words) in [("allocated", bands), ("reserved", "reserved")] {
        add(&legend, &make.legend_entry(class, words));
    }
    legend
}
