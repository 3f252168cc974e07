//! The whole report as one picture: what a saved notebook shows.

mod rows;

use super::View;
use super::cells::cells;
use super::device_view::default_device;
use super::label::{LARGE, Label, MEDIUM};
use super::now::{in_use, now, segments};
use super::plot::sheet;
use super::scene::{Face, Point, Rect, Role, Scene};
use super::text;
use crate::analyze::{Analysis, Finding, FindingKind, Severity};
use crate::collect::CollectVec;
use crate::recording::{DeviceIdx, DeviceKind, Recording};
use crate::report::counts;
use crate::wording::{self, Words, count};

const MARGIN: f64 = 16.0;
const HEADER: f64 = 42.0;
const GAP: f64 = 10.0;
const RADIUS: f64 = 8.0;
/// Of a card, without its text.
const CARD: f64 = 34.0;
const TEXT_LINE: f64 = 17.0;
/// Of a card's text.
const MAX_LINES: usize = 3;
const MIN_WIDTH: f64 = 320.0;
/// More findings than this are counted, not shown.
const MAX_CARDS: usize = 3;

/// The report on the device of [`default_device`], `width` logical pixels wide: the findings, what each cell
/// kept, and what fills the device.
///
/// ```
/// use gpumem_core::analyze::{Rules, analyze};
/// use gpumem_core::chart::{Theme, report, svg};
/// # mod example { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/recordings/leaking.rs")); }
/// # use example::leaking;
///
/// let recording = leaking();
/// let scene = report(&recording, &analyze(&recording, &Rules::default()), 600.0);
/// assert!(svg(&scene, Theme::Light).contains("<title>GPU memory, 12 runs of 1 cell"));
/// ```
pub fn report(recording: &Recording, analysis: &Analysis, width: f64) -> Scene {
    let view = View {
        width,
        device: default_device(recording, analysis).unwrap_or_default(),
        ..View::default()
    };
    drawn(recording, analysis, &view)
}

/// The report as the reader sees it: their device, units, and what the rows show.
///
/// ```
/// use gpumem_core::analyze::{Rules, analyze};
/// use gpumem_core::chart::{View, as_seen};
/// # mod example { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/recordings/leaking.rs")); }
/// # use example::leaking;
///
/// let recording = leaking();
/// let view = View { width: 600.0, ..View::default() };
/// let scene = as_seen(&recording, &analyze(&recording, &Rules::default()), &view);
/// assert!(scene.description.contains("What fills cuda:0 now: losses 24 MiB"));
/// ```
pub fn as_seen(recording: &Recording, analysis: &Analysis, view: &View) -> Scene {
    drawn(recording, analysis, view)
}

fn drawn(recording: &Recording, analysis: &Analysis, view: &View) -> Scene {
    let mut scene = sheet(view.width.max(MIN_WIDTH), HEADER, Role::Background);
    let view = View {
        width: scene.width - 2.0 * MARGIN,
        ..view.clone()
    };
    let head = summary(recording, view.device);
    draw_header(&mut scene, &head);
    let mut description = vec![format!("GPU memory, {head}.")];
    for finding in analysis.findings.iter().take(MAX_CARDS) {
        let words = wording::words(recording, finding, view.units);
        draw_card(&mut scene, finding, &words);
        description.push(wording::plain(&words.title));
    }
    let n_more = analysis.findings.len().saturating_sub(MAX_CARDS);
    if n_more > 0 {
        let at = Point::new(MARGIN, scene.height + 6.0);
        scene.text(Label::new(
            format!("and {}", count(n_more, "more finding")),
            at,
        ));
        scene.height += LARGE;
    }
    for chart in [
        rows::draw(&cells(recording, analysis, view.device), &view),
        now_with_words(recording, analysis, &view),
    ] {
        description.push(chart.description.clone());
        let panel = add_panel(&mut scene, chart.height + GAP, None);
        scene.place(chart, panel.x, panel.y + GAP / 2.0);
    }
    scene.height += MARGIN - GAP;
    scene.description = description.join(" ");
    scene
}

/// The bar of the device, and over it how much can still be used.
fn now_with_words(recording: &Recording, analysis: &Analysis, view: &View) -> Scene {
    const WORDS: f64 = 26.0;
    let bar = now(recording, analysis, view);
    let mut scene = sheet(bar.width, WORDS + bar.height, Role::Panel);
    let title = Label::new("Now", Point::new(12.0, 16.0));
    let title = title.face(Face::Bold).size(13.0).role(Role::Text);
    let usage = in_use(&segments(recording, analysis, view.device));
    let at = Point::new(12.0 + title.width() + 12.0, 16.0);
    let words = Label::new(usage.words(view.units).join(" · "), at).size(MEDIUM);
    scene.text(words.fitted(scene.width - at.x - 12.0));
    scene.text(title);
    scene.description.clone_from(&bar.description);
    scene.place(bar, 0.0, WORDS);
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

fn draw_header(scene: &mut Scene, summary: &str) {
    let at = Point::new(MARGIN + 2.0, 28.0);
    let title = Label::new("GPU memory", at)
        .face(Face::Bold)
        .size(LARGE)
        .role(Role::Text);
    let at = Point::new(at.x + title.width() + 12.0, at.y);
    let room = scene.width - MARGIN - at.x;
    scene.text(title);
    scene.text(Label::new(summary, at).size(13.0).fitted(room));
}

/// A framed sheet below everything that is there; with an edge of that colour.
fn add_panel(scene: &mut Scene, height: f64, edge: Option<Role>) -> Rect {
    let frame = Rect::new(MARGIN, scene.height, scene.width - 2.0 * MARGIN, height);
    scene.height += height + GAP;
    let inside = frame.inset(1.0);
    match edge {
        None => {
            scene.fill(frame, Role::Line, RADIUS);
            scene.fill(inside, Role::Panel, RADIUS - 1.0);
        }
        Some(role) => {
            scene.fill(frame, role, RADIUS);
            let rest = Rect::new(frame.x + 4.0, frame.y, frame.width - 4.0, frame.height);
            scene.fill(rest, Role::Line, RADIUS - 2.0);
            let inside = Rect::new(rest.x, inside.y, rest.width - 1.0, inside.height);
            scene.fill(inside, Role::Panel, RADIUS - 2.0);
        }
    }
    frame
}

fn draw_card(scene: &mut Scene, finding: &Finding, words: &Words) {
    let role = colour(finding);
    let edge = if role == Role::Muted {
        Role::Device
    } else {
        role
    };
    let room = scene.width - 2.0 * MARGIN - 32.0;
    let verdict = format!("{} {}", wording::icon(finding), wording::heading(finding));
    let verdict = |at: Point| {
        Label::new(&verdict, at)
            .face(Face::Bold)
            .size(13.0)
            .role(role)
            .fitted(room)
    };
    let beside = verdict(Point::new(0.0, 0.0)).width() + 10.0;
    let details = [&*words.outlook, &*words.detail].map(wording::plain);
    let details = details.iter().filter(|words| !words.is_empty());
    let details = details.map(String::as_str).collect_vec().join(" · ");
    let details = text::lines(&details, Face::Sans, MEDIUM, room, MAX_LINES);
    let height = CARD + TEXT_LINE * details.len() as f64;
    let card = add_panel(scene, height, Some(edge));
    let at = Point::new(card.x + 16.0, card.y + 22.0);
    scene.text(verdict(at));
    scene.text(
        Label::new(
            wording::plain(&words.title),
            Point::new(at.x + beside, at.y),
        )
        .face(Face::Bold)
        .size(13.0)
        .role(Role::Text)
        .fitted(room - beside),
    );
    let mut below = at;
    for line in details {
        below.y += TEXT_LINE;
        scene.text(Label::new(line, below).size(MEDIUM));
    }
}

fn colour(finding: &Finding) -> Role {
    match (finding.kind, finding.severity) {
        (FindingKind::Leak, _) => Role::Leak,
        (_, Severity::Info) => Role::Muted,
        _ => Role::Watch,
    }
}
