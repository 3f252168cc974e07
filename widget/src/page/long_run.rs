//! In an open row: the level of a long run over its iterations, and what the looks at its holders found.

use gpumem_charts::{InsideLook, LongRun};
use gpumem_model::units::Units;
use gpumem_page_kit::paint::{paint_scene, px};
use gpumem_scene::{Point, Scene, Target};
use gpumem_wording::{Span, code, prose};
use wasm_bindgen::JsCast;
use web_sys::{Element, HtmlCanvasElement, HtmlElement};

use crate::canvas::Faces;
use crate::dom::{Maker, add, describe, flag, refill, set_bool, set_style, write};
use crate::model::ReportModel;
use crate::state::{Chart, Pointed};

/// The chart of a long run and the list of its looks.
pub(crate) struct LongRunChart {
    pub(crate) element: Element,
    title: Element,
    of: Element,
    now: Element,
    loops: Element,
    stage: HtmlElement,
    canvas: HtmlCanvasElement,
    /// Around the look that is pointed at.
    band: HtmlElement,
    cursor: HtmlElement,
    looks: Element,
    lines: Vec<Element>,
    scene: Scene,
}

impl LongRunChart {
    pub(crate) fn build(make: &Maker) -> Self {
        let (title, of) = (make.empty("h4", &[]), make.empty("span.muted", &[]));
        let look = make.legend_entry("look", "a look at who holds it");
        let now = make.legend_entry("now", "now");
        let key = make.group("span.key", &[], &[&look, &now]);
        let loops = make.segments("iterations of");
        let head = make.group("div.line", &[], &[&title, &of, &key, &loops]);
        let canvas: HtmlCanvasElement = make.typed(
            "canvas",
            &[
                ("data-chart", Chart::Run.name()),
                ("tabindex", "0"),
                ("role", "application"),
                ("aria-roledescription", "chart"),
            ],
        );
        let overlay = |tag: &str| make.typed::<HtmlElement>(tag, &[("hidden", "")]);
        let (band, cursor) = (overlay("div.band"), overlay("div.cursor"));
        let stage = make.group("div.stage", &[], &[&canvas, &band, &cursor]);
        let looks = make.empty("div.looks", &[]);
        Self {
            element: make.group("section.long-run", &[], &[&head, &stage, &looks]),
            title,
            of,
            now,
            loops,
            stage: stage.unchecked_into(),
            canvas,
            band,
            cursor,
            looks,
            lines: Vec::new(),
            scene: Scene::default(),
        }
    }

    /// Shows the words around the chart.
    pub(crate) fn show(&mut self, make: &Maker, run: &LongRun<'_>, units: Units) {
        let (title, of) = run.title();
        write(&self.title, &title);
        write(&self.of, &of);
        flag(&self.now, "hidden", !run.is_running());
        let loops: Vec<Element> = run
            .loops()
            .map(|(idx, name, is_axis)| {
                let button = make.button("loop", &idx.0.to_string(), &name);
                set_bool(&button, "aria-pressed", is_axis);
                button
            })
            .collect();
        flag(&self.loops, "hidden", loops.len() < 2);
        refill(&self.loops, &loops);
        let each = run.looks().iter().enumerate();
        self.lines = each
            .map(|(idx, look)| line(make, run, (idx, look), units))
            .collect();
        let mut content = Vec::new();
        if !self.lines.is_empty() {
            let title = make.text("h4", &[], "What the looks saw");
            let name = the_only_name(run.looks());
            flag(&self.looks, "data-one", name.is_some());
            if let Some(name) = name {
                // Where there is little room, it stands only here.
                add(&title, &make.text("code", &[], name));
            }
            content.push(title);
            content.extend(self.lines.iter().cloned());
        }
        refill(&self.looks, &content);
    }

    /// Paints the chart as wide as its place is.
    pub(crate) fn paint(&mut self, model: &ReportModel, run: &LongRun<'_>, faces: &Faces) {
        let width = f64::from(self.stage.client_width());
        if width == 0.0 {
            return;
        }
        self.scene = run.scene(width, model.units());
        describe(&self.canvas, "aria-label", &self.scene.description);
        paint_scene(&self.canvas, &self.scene, model.theme, model.scale, faces);
        self.show_pointed(model, run);
    }

    /// What is at a point of the chart, and when.
    pub(crate) fn pointed_at(&self, run: &LongRun<'_>, point: Point) -> Option<Pointed> {
        Some(Pointed {
            chart: Chart::Run,
            target: self.scene.hit(point)?,
            at: run.instant_at(point.x, self.scene.width),
        })
    }

    /// What the keyboard walks along: the looks, or the run.
    pub(crate) fn targets(run: &LongRun<'_>) -> Vec<Target> {
        match run.looks().len() {
            0 => vec![Target::Run(run.run())],
            n => (0..n).map(Target::Look).collect(),
        }
    }

    /// A look stands out in the chart and in the list; the rest has a line.
    pub(crate) fn show_pointed(&self, model: &ReportModel, run: &LongRun<'_>) {
        let pointed = model.state().pointed.filter(|it| it.chart == Chart::Run);
        let look = pointed.and_then(|it| match it.target {
            Target::Look(idx) => Some(idx),
            _ => None,
        });
        for (idx, line) in self.lines.iter().enumerate() {
            flag(line, "data-lit", look == Some(idx));
        }
        let mut hits = self.scene.hits.iter();
        let hit = hits.find(|hit| look.is_some_and(|idx| hit.target == Target::Look(idx)));
        flag(&self.band, "hidden", hit.is_none());
        if let Some(hit) = hit {
            let rect = hit.rect;
            let edges = [
                ("left", rect.x),
                ("top", rect.y),
                ("width", rect.width),
                ("height", rect.height),
            ];
            for (name, length) in edges {
                set_style(&self.band, name, &px(length));
            }
        }
        let at = pointed.and_then(|it| it.at).filter(|_| look.is_none());
        flag(&self.cursor, "hidden", at.is_none());
        if let Some(at) = at {
            set_style(&self.cursor, "left", &px(run.x(at, self.scene.width) - 0.5));
        }
    }
}

/// The name of all that the looks found, if it is one.
fn the_only_name(looks: &[InsideLook]) -> Option<&str> {
    let mut names = looks.iter().flat_map(|look| &look.holders);
    let first = &names.next()?.name;
    names.all(|it| it.name == *first).then_some(first)
}

/// A look: when, and who held how much. A click lights its circle.
fn line(
    make: &Maker,
    run: &LongRun<'_>,
    (idx, look): (usize, &InsideLook),
    units: Units,
) -> Element {
    let mark = make.empty("i", &[("class", "look")]);
    let iteration = make.text("span", &[], &format!("{} {}", run.unit(), look.iteration));
    let time = make.text("span.muted.time", &[], &look.after.to_string());
    let found = make.empty("span.found", &[("dir", "auto")]);
    for (idx, holder) in look.holders.iter().enumerate() {
        let between = if idx == 0 { "" } else { "; " };
        let n = match holder.n_shown() {
            n if n.is_empty() => n,
            n => format!("{n}, "),
        };
        let size = units.size(holder.n_bytes);
        let words = prose![between, code(&holder.name), " ", n, Span::Figure(size)];
        add(&found, &make.prose("span", &[], &words));
        if let Some(detail) = holder.detail(units) {
            add(
                &found,
                &make.text("span.detail", &[], &format!(": {detail}")),
            );
        }
    }
    if look.holders.is_empty() {
        add(&found, &make.text("span.muted", &[], "no name had grown"));
    }
    let attributes = [
        ("data-action", "look"),
        ("data-argument", &*idx.to_string()),
    ];
    make.group(
        "button.saw",
        &attributes,
        &[&mark, &iteration, &time, &found],
    )
}
