//! The composition bar: what fills the device now, and what is free. Other devices get a small bar each.

use super::View;
use super::label::{Label, MEDIUM, SMALL};
use super::plot::{say, sheet};
use super::scene::{Anchor, Face, Hit, Point, Rect, Role, Scene, Target};
use crate::analyze::{Analysis, Part, PartKind};
use crate::recording::{Device, DeviceIdx, Recording};
use crate::units::{Bytes, Units};
use crate::wording::{self, count};

const MARGIN: f64 = 12.0;
const TOP: f64 = 12.0;
const BAR: f64 = 22.0;
const RADIUS: f64 = 5.0;
/// From the bar to the first line of the legend, and from line to line.
const LEGEND: f64 = 20.0;
const LINE_HEIGHT: f64 = 19.0;
const SWATCH: f64 = 10.0;
const GAP: f64 = 16.0;
/// Every part is at least this wide, so that it can be seen.
const LEAST: f64 = 2.0;
/// From one small bar to the next below.
const ROW: f64 = 20.0;
const SMALL_BAR: f64 = 8.0;
/// Devices beyond these are only counted, because a picture has an end.
const MAX_DEVICES: usize = 32;
/// Of the words on both sides of a small bar.
const NAME: f64 = 64.0;
const FIGURE: f64 = 96.0;
/// Two columns of small bars need this much room.
const WIDE: f64 = 560.0;

/// What fills the view's device, by the latest levels of the recording.
///
/// ```
/// use gpumem_core::analyze::{Rules, analyze};
/// use gpumem_core::chart::{Target, View, composition};
/// # mod example { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/recordings/leaking.rs")); }
/// # use example::leaking;
///
/// let recording = leaking();
/// let view = View { width: 600.0, ..View::default() };
/// let scene = composition(&recording, &analyze(&recording, &Rules::default()), &view);
/// assert!(scene.description.starts_with("What fills cuda:0 now: your names 24 MiB, cache 40 MiB"));
/// assert!(scene.hits.iter().any(|hit| hit.target == Target::Part(0)));
/// ```
pub fn composition(recording: &Recording, analysis: &Analysis, view: &View) -> Scene {
    let mut scene = sheet(view.width, TOP + BAR, Role::Panel);
    let parts = analysis.parts(recording, view.device);
    let device = recording.devices().get(view.device.get());
    let label = device.map_or("this device", |device| &device.label);
    if parts.is_empty() {
        scene.height += LEGEND;
        say(&mut scene, &format!("what fills {label} is not known"));
    } else {
        draw_bar(&mut scene, &parts);
        draw_legend(&mut scene, &parts, view.units);
        let shares: Vec<String> = parts
            .iter()
            .map(|part| format!("{} {}", wording::part(part), view.units.size(part.size)))
            .collect();
        scene.description = format!("What fills {label} now: {}.", shares.join(", "));
    }
    draw_others(&mut scene, recording, analysis, view);
    scene
}

fn draw_bar(scene: &mut Scene, parts: &[Part]) {
    let frame = Rect::new(MARGIN, TOP, scene.width - 2.0 * MARGIN, BAR);
    for (idx, rect) in fill_bar(scene, frame, RADIUS, parts)
        .into_iter()
        .enumerate()
    {
        let target = Target::Part(idx);
        scene.hits.push(Hit { rect, target });
    }
}

/// Where each of the parts is, from left to right.
fn fill_bar(scene: &mut Scene, frame: Rect, radius: f64, parts: &[Part]) -> Vec<Rect> {
    scene.fill(frame, Role::Line, radius);
    let inside = frame.inset(1.0);
    scene.fill(inside, Role::Panel, radius - 1.0);
    let mut left = inside.x;
    let mut rects = Vec::new();
    for (idx, (part, width)) in parts.iter().zip(widths(parts, inside.width)).enumerate() {
        let rect = Rect::new(left, inside.y, width, inside.height);
        if part.kind() != PartKind::Free {
            // A hairline of the sheet between two parts tells equal colours apart.
            let gap = if width > 2.0 * LEAST { 1.0 } else { 0.0 };
            let filled = Rect::new(rect.x, rect.y, rect.width - gap, rect.height);
            scene.fill(filled, role(part, idx), 0.0);
        }
        rects.push(rect);
        left += width;
    }
    rects
}

/// Where there are several accelerators, how full each is; a click chooses one.
fn draw_others(scene: &mut Scene, recording: &Recording, analysis: &Analysis, view: &View) {
    let known = analysis.devices.iter().filter_map(|summary| {
        let device = recording.devices().get(summary.device.get())?;
        let parts = summary.composition();
        (device.kind.is_accelerator() && !parts.is_empty()).then_some((device, parts))
    });
    let mut known: Vec<(&Device, Vec<Part>)> = known.collect();
    if known.len() < 2 {
        return;
    }
    let n_more = known.len().saturating_sub(MAX_DEVICES);
    keep_some(&mut known, view.device);
    let n_columns = if scene.width < WIDE { 1 } else { 2 };
    let n_rows = known.len().div_ceil(n_columns);
    let top = scene.height;
    let width = (scene.width - 2.0 * MARGIN + GAP) / n_columns as f64 - GAP;
    let mut shares = Vec::new();
    for (idx, (device, parts)) in known.iter().enumerate() {
        let (column, row) = (idx / n_rows, idx % n_rows);
        let left = MARGIN + column as f64 * (width + GAP);
        let room = Rect::new(left, top + row as f64 * ROW, width, ROW);
        let words = rest_words(parts, view.units);
        draw_device(
            scene,
            room,
            device,
            device.idx == view.device,
            parts,
            &words,
        );
        shares.push(format!("{} {words}", device.label));
    }
    scene.height = top + n_rows as f64 * ROW + 8.0;
    if n_more > 0 {
        let words = format!("… and {}", count(n_more, "more device"));
        let at = Point::new(MARGIN + 1.0, scene.height + 6.0);
        scene.text(Label::new(&words, at).size(SMALL).role(Role::Muted));
        scene.height += ROW;
        shares.push(words);
    }
    let all = format!("Of each device: {}.", shares.join(", "));
    if !scene.description.is_empty() {
        scene.description.push(' ');
    }
    scene.description.push_str(&all);
}

/// The first devices, and the one that is looked at.
fn keep_some(known: &mut Vec<(&Device, Vec<Part>)>, shown: DeviceIdx) {
    let place = known.iter().position(|(device, _)| device.idx == shown);
    if let Some(place) = place.filter(|place| *place >= MAX_DEVICES) {
        known.swap(MAX_DEVICES - 1, place);
    }
    known.truncate(MAX_DEVICES);
}

fn draw_device(
    scene: &mut Scene,
    room: Rect,
    device: &Device,
    is_shown: bool,
    parts: &[Part],
    words: &str,
) {
    let baseline = room.y + 0.5 * ROW + 4.0;
    let (face, role) = if is_shown {
        (Face::Bold, Role::Text)
    } else {
        (Face::Sans, Role::Muted)
    };
    let name = Label::new(&device.label, Point::new(room.x + 1.0, baseline));
    scene.text(name.size(SMALL).face(face).role(role).fitted(NAME - 6.0));
    // Where there is room for one only, the bar says more than its figure.
    let figure_room = if room.width < 1.5 * (NAME + FIGURE) {
        0.0
    } else {
        FIGURE
    };
    let frame = Rect::new(
        room.x + NAME,
        room.y + 0.5 * (ROW - SMALL_BAR),
        room.width - NAME - figure_room,
        SMALL_BAR,
    );
    fill_bar(scene, frame, 2.0, parts);
    if figure_room > 0.0 {
        let figure = Label::new(words, Point::new(room.x + room.width, baseline));
        let figure = figure.size(SMALL).face(face).role(role).anchor(Anchor::End);
        scene.text(figure.fitted(figure_room - 6.0));
    }
    scene.hits.push(Hit {
        rect: room,
        target: Target::Device(device.idx),
    });
}

/// `3.5 GiB free`, or what is in use if the size is not known.
fn rest_words(parts: &[Part], units: Units) -> String {
    if let Some(free) = parts.iter().find(|part| part.kind() == PartKind::Free) {
        return format!("{} free", units.size(free.size));
    }
    let used: Bytes = parts.iter().map(|part| part.size).sum();
    format!("{} in use", units.size(used))
}

/// Shares of the room by size, none of them too narrow to be seen.
fn widths(parts: &[Part], room: f64) -> Vec<f64> {
    let total: Bytes = parts.iter().map(|part| part.size).sum();
    let fair = |part: &Part| part.size.as_f64() / total.as_f64() * room;
    let raised: Vec<f64> = parts.iter().map(|part| fair(part).max(LEAST)).collect();
    let over = raised.iter().sum::<f64>() - room;
    let widest = raised.iter().copied().fold(0.0, f64::max);
    let mut paid = false;
    raised
        .into_iter()
        .map(|width| {
            let pays = !paid && width >= widest;
            paid |= pays;
            if pays {
                (width - over).max(LEAST)
            } else {
                width
            }
        })
        .collect()
}

fn draw_legend(scene: &mut Scene, parts: &[Part], units: Units) {
    let right = scene.width - MARGIN;
    let (mut x, mut baseline) = (MARGIN + 1.0, TOP + BAR + LEGEND);
    for (idx, part) in parts.iter().enumerate() {
        let is_free = part.kind() == PartKind::Free;
        let swatch = if is_free { 0.0 } else { SWATCH + 5.0 };
        let label = |at: Point| Label::new(wording::part(part), at).size(MEDIUM);
        let figure = |at: Point| {
            Label::new(units.size(part.size), at)
                .size(MEDIUM)
                .face(Face::Bold)
                .role(Role::Text)
        };
        let origin = Point::new(0.0, 0.0);
        let words_width = label(origin).width() + 4.0;
        let width = swatch + words_width + figure(origin).width();
        if x > MARGIN + 1.0 && x + width > right {
            (x, baseline) = (MARGIN + 1.0, baseline + LINE_HEIGHT);
        }
        if !is_free {
            let square = Rect::new(x, baseline - 9.0, SWATCH, SWATCH);
            scene.fill(square, role(part, idx), 2.0);
        }
        let at = Point::new(x + swatch, baseline);
        scene.text(label(at).fitted(right - at.x));
        let at = Point::new(at.x + words_width, baseline);
        scene.text(figure(at).fitted(right - at.x));
        scene.hits.push(Hit {
            rect: Rect::new(x - 4.0, baseline - 13.0, width + 8.0, LINE_HEIGHT),
            target: Target::Part(idx),
        });
        x += width + GAP;
    }
    scene.height = baseline + 10.0;
}

fn role(part: &Part, idx: usize) -> Role {
    match part.kind() {
        PartKind::Held => Role::Holder(u8::try_from(idx).unwrap_or_default()),
        PartKind::Cache => Role::Cache,
        PartKind::Context => Role::Context,
        PartKind::Others => Role::Others,
        PartKind::Free => Role::Panel,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::draw_log::{assert_sound, texts, view};
    use super::*;
    use crate::analyze::{DeviceSummary, PartContent, Rules, analyze};
    use crate::recording::{DeviceIdx, Frame, Status};
    use crate::testing::{Play, run, session};

    fn drawn(plays: &[Play], width: f64) -> Scene {
        let (recording, _) = session(&[("a()", plays)]);
        let analysis = analyze(&recording, &Rules::default());
        composition(&recording, &analysis, &view(width))
    }

    #[test]
    fn while_a_run_goes_on_its_steps_are_told_beside_what_was_there() {
        let model = run(1200).held_by("model", "list");
        let loop_ = run(480).status(Status::Running).steps(8);
        let scene = drawn(&[model.clone(), loop_.clone()], 880.0);
        let shown = texts(&scene).join(" ");
        assert!(
            shown.starts_with("your names 1.17 GiB this run 480 MiB"),
            "{shown}"
        );
        // What a run between them moved, nobody has looked at.
        let scene = drawn(&[model, run(7), loop_], 880.0);
        let shown = texts(&scene).join(" ");
        assert!(shown.starts_with("allocated 1.65 GiB"), "{shown}");
    }

    #[test]
    fn each_part_is_named_with_its_size() {
        let scene = drawn(&[run(1200)], 880.0);
        let shown = texts(&scene).join(" ");
        assert_eq!(
            shown,
            "allocated 1.17 GiB cache, context and libraries 420 MiB other processes 700 MiB free 13.7 GiB"
        );
        assert!(scene.description.starts_with("What fills sim:0 now: "));
    }

    #[test]
    fn nothing_known_is_said() {
        let scene = drawn(&[run(1).unknown()], 880.0);
        assert_eq!(texts(&scene), ["what fills sim:0 is not known"]);
    }

    #[test]
    fn a_part_and_its_words_answer_to_the_pointer() {
        let scene = drawn(&[run(8000)], 880.0);
        assert_eq!(scene.hit(Point::new(20.0, 20.0)), Some(Target::Part(0)));
        assert_eq!(scene.hit(Point::new(20.0, 50.0)), Some(Target::Part(0)));
    }

    /// Two devices of which the second holds half as much.
    fn drawn_with_another(kept: i64, width: f64) -> Scene {
        let (mut recording, _) = session(&[("a()", &[run(kept)])]);
        let first = recording.devices()[0].clone();
        let second = Device {
            idx: DeviceIdx(1),
            key: "sim:1".into(),
            label: "sim:1".to_owned(),
            ..first
        };
        recording
            .apply(Frame::Device(second))
            .expect("another device");
        let mut analysis = analyze(&recording, &Rules::default());
        let one = &analysis.devices[0];
        let half = |level: Option<Bytes>| level.map(|it| Bytes::new(it.get() / 2));
        let other = DeviceSummary {
            device: DeviceIdx(1),
            allocated: half(one.allocated),
            ..one.clone()
        };
        analysis.devices.retain(|it| it.device == DeviceIdx(0));
        analysis.devices.push(other);
        composition(&recording, &analysis, &view(width))
    }

    #[test]
    fn each_of_several_devices_has_a_small_bar_that_chooses_it() {
        let scene = drawn_with_another(1200, 880.0);
        assert_eq!(
            texts(&scene)[8..],
            ["sim:0", "13.7 GiB free", "sim:1", "13.7 GiB free"]
        );
        assert!(
            scene
                .description
                .ends_with("Of each device: sim:0 13.7 GiB free, sim:1 13.7 GiB free.")
        );
        let below = scene.height - 15.0;
        let at = |x: f64| scene.hit(Point::new(x, below));
        assert_eq!(at(20.0), Some(Target::Device(DeviceIdx(0))));
        assert_eq!(at(700.0), Some(Target::Device(DeviceIdx(1))));
    }

    #[test]
    fn of_very_many_devices_some_are_drawn_and_the_one_that_is_looked_at() {
        let (mut recording, _) = session(&[("a()", &[run(1200)])]);
        let first = recording.devices()[0].clone();
        let mut analysis = analyze(&recording, &Rules::default());
        let one = analysis.devices[0].clone();
        analysis.devices.clear();
        for device in (0..100).map(DeviceIdx) {
            let label = format!("sim:{}", device.0);
            let frame = Frame::Device(Device {
                idx: device,
                label,
                ..first.clone()
            });
            recording.apply(frame).expect("the next device");
            analysis.devices.push(DeviceSummary {
                device,
                ..one.clone()
            });
        }
        let view = View {
            device: DeviceIdx(70),
            ..view(880.0)
        };
        let scene = composition(&recording, &analysis, &view);
        let shown = texts(&scene).join(" ");
        assert!(
            shown.contains("sim:30 ") && !shown.contains("sim:31 "),
            "{shown}"
        );
        assert!(
            shown.ends_with("sim:70 13.7 GiB free … and 68 more devices"),
            "{shown}"
        );
        assert!(scene.description.ends_with(", … and 68 more devices."));
        assert!(scene.height < 500.0);
        assert_sound(&scene);
    }

    proptest! {
        #[test]
        fn the_bar_is_full(sizes in prop::collection::vec(1_u64..1 << 40, 1..9), room in 100.0..2000.0_f64) {
            let parts: Vec<Part> = sizes
                .iter()
                .map(|size| Part { content: PartContent::Rounding, size: Bytes::new(*size) })
                .collect();
            let widths = widths(&parts, room);
            prop_assert!((widths.iter().sum::<f64>() - room).abs() < 1e-6);
            prop_assert!(widths.iter().all(|width| *width >= LEAST));
        }

        #[test]
        fn it_is_sound_at_any_width(kept in 0..16_000_i64, width in 160.0..1600.0_f64) {
            assert_sound(&drawn(&[run(kept)], width));
            assert_sound(&drawn_with_another(kept, width));
        }
    }
}
