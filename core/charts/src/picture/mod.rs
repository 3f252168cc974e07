//! The report as one picture: what a saved notebook shows, and what people share.

mod rows;
mod verdict;

use super::ChartView;
use super::cells::cells;
use super::device_view::default_device;
use gpumem_analyzer::Analysis;
use gpumem_model::recording::{DeviceIdx, DeviceKind, Recording};
use gpumem_scene::label::{LARGE, Label};
use gpumem_scene::plot::sheet;
use gpumem_scene::{Anchor, Face, Point, Rect, Role, Scene};
use gpumem_wording::{counts, title};

const MARGIN: f64 = 16.0;
const HEADER: f64 = 42.0;
const GAP: f64 = 10.0;
const RADIUS: f64 = 8.0;
const MIN_WIDTH: f64 = 320.0;
/// Of a slide, in logical pixels.
const SLIDE: (f64, f64) = (3200.0 / 3.0, 600.0);

/// How much of the report a picture shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PictureExtent {
    /// The verdict with its fix, and what each cell kept.
    FirstScreen,
    /// The first screen on 1600 × 900 pixels at a scale of [`PictureExtent::SLIDE_SCALE`].
    Slide,
}

impl PictureExtent {
    /// Device pixels to one of a slide's logical ones.
    pub const SLIDE_SCALE: f64 = 1.5;
}

/// The first screen on the device of [`default_device`], `width` logical pixels wide: the worst finding with
/// its fix, the next ones, and what each cell kept.
pub fn report(recording: &Recording, analysis: &Analysis, width: f64) -> Scene {
    let view = ChartView {
        width,
        device: default_device(recording, analysis).unwrap_or_default(),
        ..ChartView::default()
    };
    picture(recording, analysis, &view, PictureExtent::FirstScreen)
}

/// The report as the reader sees it: their device, units, and what the rows show.
pub fn picture(
    recording: &Recording,
    analysis: &Analysis,
    view: &ChartView,
    extent: PictureExtent,
) -> Scene {
    let is_slide = extent == PictureExtent::Slide;
    let width = if is_slide { SLIDE.0 } else { view.width };
    let mut scene = sheet(width.max(MIN_WIDTH), HEADER, Role::Background);
    let view = ChartView {
        width: scene.width - 2.0 * MARGIN,
        ..view.clone()
    };
    let head = summary(recording, view.device);
    let (title, note) = title(recording);
    let head = note.map_or_else(|| head.clone(), |note| format!("{note} · {head}"));
    draw_header(&mut scene, title, &head);
    let (verdict, edge) = verdict::draw(recording, analysis, &view);
    let mut description = vec![verdict.description.clone()];
    add_panel(&mut scene, verdict, edge);
    let room = if is_slide {
        SLIDE.1 - MARGIN - scene.height
    } else {
        f64::INFINITY
    };
    let cells = cells(recording, analysis, view.device);
    let rows = rows::draw(&cells, &view, room);
    add_panel(&mut scene, rows, None);
    scene.height = if is_slide {
        SLIDE.1
    } else {
        scene.height + MARGIN - GAP
    };
    description.push(format!("{title}, {head}."));
    scene.description = description.join(" ");
    scene
}

/// `17 runs of 6 cells · sim:0 Simulated`.
fn summary(recording: &Recording, device: DeviceIdx) -> String {
    let device = recording.devices().get(device.get());
    let device = device.map_or(String::new(), |device| match device.kind {
        DeviceKind::Host => format!(" · {}", device.name),
        _ => format!(" · {} {}", device.label, device.name),
    });
    format!("{}{device}", counts(recording))
}

fn draw_header(scene: &mut Scene, title: &str, summary: &str) {
    let at = Point::new(MARGIN + 2.0, 28.0);
    let title = Label::new(title, at)
        .face(Face::Bold)
        .size(LARGE)
        .role(Role::Text);
    let at = Point::new(at.x + title.width() + 12.0, at.y);
    let end = Point::new(scene.width - MARGIN - 2.0, at.y);
    let name = Label::new("gpumem", end).size(13.0).anchor(Anchor::End);
    let room = end.x - name.width() - 12.0 - at.x;
    scene.text(title);
    scene.text(Label::new(summary, at).size(13.0).fitted(room));
    scene.text(name);
}

/// A framed sheet with that content, below everything that is there; with an edge of that colour.
fn add_panel(scene: &mut Scene, content: Scene, edge: Option<Role>) {
    let frame = Rect::new(
        MARGIN,
        scene.height,
        scene.width - 2.0 * MARGIN,
        content.height,
    );
    scene.fill(frame, edge.unwrap_or(Role::Line), RADIUS);
    let mut inside = frame.inset(1.0);
    if edge.is_some() {
        let rest = Rect::new(frame.x + 4.0, frame.y, frame.width - 4.0, frame.height);
        scene.fill(rest, Role::Line, RADIUS - 2.0);
        inside = Rect::new(rest.x, inside.y, rest.width - 1.0, inside.height);
    }
    scene.fill(inside, Role::Panel, RADIUS - 1.0);
    scene.place(content, frame.x, frame.y);
    scene.height += frame.height + GAP;
}
