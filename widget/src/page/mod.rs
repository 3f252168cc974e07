//! The report's elements, and what must change in them when the model does.

mod compare;
mod controls;
mod findings;
mod held;
mod picture;
mod table;
mod verdict;

use gpumem_core::chart::{Point, Target};
use gpumem_core::recording::RunIdx;
use web_sys::{Element, HtmlCanvasElement};

use compare::Comparison;
use controls::{Header, Tools};
use findings::Findings;
use held::Held;
use picture::Picture;
pub(crate) use picture::{paint_scene, px};
use verdict::Panel;

use crate::canvas::Faces;
use crate::dom::{Dom, Maker, fill, flag, write};
use crate::gesture::Gesture;
use crate::model::Model;
use crate::state::{Chart, Pointed, State};

/// The report in the page.
pub(crate) struct Page {
    make: Maker,
    root: Element,
    faces: Faces,
    header: Header,
    verdict: Panel,
    tools: Tools,
    pictures: Vec<Picture>,
    held: Held,
    comparison: Comparison,
    findings: Findings,
    table: Element,
    live: Element,
}

impl Page {
    /// Builds the report under `root`, with charts that are not painted yet.
    pub(crate) fn build(root: &Element, model: &Model) -> Dom<Self> {
        let make = Maker::beside(root)?;
        let header = Header::build(&make)?;
        let verdict = Panel::build(&make)?;
        let tools = Tools::build(&make)?;
        let findings = Findings::build(&make)?;
        let comparison = Comparison::build(&make)?;
        let held = Held::build(&make)?;
        let pictures = Chart::ALL
            .into_iter()
            .map(|chart| Picture::build(&make, chart))
            .collect::<Dom<Vec<_>>>()?;
        let table = make.empty("table", &[])?;
        let tables = make.group("div", &[("class", "unseen")], &[&table])?;
        let live = make.empty("div", &[("class", "unseen"), ("role", "status")])?;
        root.append_child(&header.element)?;
        root.append_child(&verdict.element)?;
        for panel in panels(&make, &pictures, &tools)? {
            root.append_child(&panel)?;
        }
        let map = pictures.iter().find(|it| it.chart == Chart::Holders);
        held.place(map.map(|it| &*it.stage).ok_or("no map")?)?;
        for part in [
            &held.element,
            &comparison.element,
            &findings.element,
            &tables,
            &live,
        ] {
            root.append_child(part)?;
        }
        let mut page = Self {
            faces: faces(root)?,
            make,
            root: root.clone(),
            header,
            verdict,
            tools,
            pictures,
            held,
            comparison,
            findings,
            table,
            live,
        };
        page.show_words(model)?;
        Ok(page)
    }

    /// Shows the model from top to bottom.
    pub(crate) fn show(&mut self, model: &Model) -> Dom<()> {
        self.show_words(model)?;
        self.show_pictures(model)
    }

    /// Shows all of it but the charts.
    fn show_words(&mut self, model: &Model) -> Dom<()> {
        flag(
            &self.root,
            "data-empty",
            model.recording().runs().is_empty(),
        )?;
        self.header.show(&self.make, model)?;
        self.verdict.show(&self.make, model)?;
        self.tools.show(model)?;
        self.held.show(&self.make, model)?;
        self.comparison.show(&self.make, model)?;
        self.findings.show(&self.make, model)?;
        fill(&self.table, &table::rows(&self.make, model)?)
    }

    /// Shows what differs from the state `before`.
    pub(crate) fn update(&mut self, before: &State, model: &Model) -> Dom<()> {
        let state = model.state();
        if before == state {
            return Ok(());
        }
        let is_zooming = State {
            span: state.span,
            ..before.clone()
        } == *state;
        if is_zooming {
            // Some sixty times a second: no word but these is another.
            self.tools.show(model)?;
            return self.show_pictures(model);
        }
        let is_pointing = State {
            pointed: state.pointed,
            ..before.clone()
        } == *state;
        if !is_pointing {
            self.header.show(&self.make, model)?;
            self.tools.show(model)?;
            self.held.show(&self.make, model)?;
        }
        self.held.read(&self.make, model)?;
        if before.dismissed != state.dismissed || before.device != state.device {
            self.findings.show(&self.make, model)?;
        }
        if verdict::is_another(before, state) {
            self.verdict.show(&self.make, model)?;
        }
        self.findings.mark(model, self.verdict.card())?;
        self.show_pictures(model)
    }

    /// Shows the findings under a threshold that was moved.
    pub(crate) fn judge(&mut self, model: &Model) -> Dom<()> {
        self.comparison.show(&self.make, model)?;
        self.verdict.show(&self.make, model)?;
        self.findings.show(&self.make, model)?;
        self.show_pictures(model)?;
        let n_findings = model.analysis().findings.len();
        self.say(&format!("findings: {n_findings}"));
        Ok(())
    }

    /// What is at a point of a chart, in logical pixels.
    pub(crate) fn pointed_at(&self, model: &Model, chart: Chart, point: Point) -> Option<Pointed> {
        self.picture(chart).pointed_at(model, point)
    }

    /// What a chart shows, from left to right.
    pub(crate) fn targets(&self, chart: Chart) -> Vec<Target> {
        self.picture(chart).targets()
    }

    /// The runs between two places of a chart.
    pub(crate) fn runs_between(&self, chart: Chart, (left, right): (f64, f64)) -> Vec<RunIdx> {
        self.picture(chart).runs_between(left, right)
    }

    /// Shows what a pointer that is held down marks.
    pub(crate) fn mark(&self, gesture: &Gesture) -> Dom<()> {
        self.picture(gesture.chart).mark(gesture.range())
    }

    /// The pointer was let go: nothing is being marked.
    pub(crate) fn unmark(&mut self, gesture: &Gesture, model: &Model) -> Dom<()> {
        self.picture(gesture.chart).mark(None)?;
        self.show_pictures(model)
    }

    /// Brings a chart into view; the keyboard stays where it is.
    pub(crate) fn bring(&self, chart: Chart) {
        self.picture(chart).stage.scroll_into_view_with_bool(false);
    }

    /// The keyboard goes on at a chart.
    pub(crate) fn focus(&self, chart: Chart) -> Dom<()> {
        self.picture(chart).focus()
    }

    /// The keyboard goes into the search field.
    pub(crate) fn focus_search(&self) -> Dom<()> {
        self.tools.focus_search()
    }

    /// Brings the card of a finding into view; says whether there is one.
    pub(crate) fn reveal(&self, finding: &str) -> Dom<bool> {
        self.findings.reveal(finding)
    }

    /// Tells those who do not see the page.
    pub(crate) fn say(&self, words: &str) {
        write(&self.live, words);
    }

    /// Reads what is under the keyboard to those who do not see the page.
    pub(crate) fn say_pointed(&self, model: &Model) {
        let read = model
            .state()
            .pointed
            .and_then(|at| picture::read_out(model, at));
        if let Some(read) = read {
            self.say(&read.sentence());
        }
    }

    /// Reads the page's style anew, and paints the charts whose picture is another by it.
    pub(crate) fn restyle(&mut self, model: &Model) -> Dom<()> {
        let faces = faces(&self.root)?;
        if self.faces != faces {
            self.faces = faces;
            self.forget_pictures();
        }
        self.show_pictures(model)
    }

    /// Paints every chart.
    pub(crate) fn repaint(&mut self, model: &Model) -> Dom<()> {
        self.forget_pictures();
        self.restyle(model)
    }

    fn forget_pictures(&mut self) {
        for picture in &mut self.pictures {
            picture.forget();
        }
        self.verdict.forget();
    }

    /// Paints the whole report as one picture.
    pub(crate) fn paint_report(&self, canvas: &HtmlCanvasElement, model: &Model) -> Dom<()> {
        let scale = model.scale_of_picture();
        picture::paint_scene(canvas, &model.picture(), model.theme, scale, &self.faces)
    }

    fn picture(&self, chart: Chart) -> &Picture {
        let mut pictures = self.pictures.iter();
        let picture = pictures.find(|picture| picture.chart == chart);
        picture.expect("the page has every chart")
    }

    fn show_pictures(&mut self, model: &Model) -> Dom<()> {
        for picture in &mut self.pictures {
            picture.show(&self.make, model, &self.faces)?;
        }
        self.verdict.draw(&self.make, model, &self.faces)
    }
}

/// The framed sheets that the charts lie on.
fn panels(make: &Maker, pictures: &[Picture], tools: &Tools) -> Dom<Vec<Element>> {
    let panel = |charts: &[Chart]| -> Dom<Element> {
        let figure = make.empty("figure", &[("class", "panel")])?;
        for picture in pictures
            .iter()
            .filter(|picture| charts.contains(&picture.chart))
        {
            figure.append_child(&picture.stage)?;
        }
        Ok(figure)
    };
    Ok(vec![
        panel(&[Chart::Composition])?,
        panel(&[Chart::Growth])?,
        tools.element.clone(),
        panel(&[Chart::Timeline, Chart::Minimap])?,
    ])
}

/// The faces that the report's style gives text and code.
fn faces(root: &Element) -> Dom<Faces> {
    let window = web_sys::window().ok_or("no window")?;
    let style = window.get_computed_style(root)?.ok_or("no style")?;
    let face = |name: &str, otherwise: &str| {
        let found = style.get_property_value(name).unwrap_or_default();
        if found.trim().is_empty() {
            otherwise.to_owned()
        } else {
            found
        }
    };
    Ok(Faces {
        sans: face("font-family", "sans-serif"),
        mono: face("--mono", "monospace"),
    })
}
