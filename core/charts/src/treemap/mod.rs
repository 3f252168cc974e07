//! The map of holders: one tile each, sized by its memory.

mod fields;
mod squarify;
#[cfg(test)]
mod tests;

use super::alarm::{Alarm, alarm};
use super::{ChartView, Moment};
use gpumem_analyzer::Analysis;
use gpumem_model::recording::Recording;
use gpumem_model::units::{ByteDelta, Units};
use gpumem_scene::label::{Label, MEDIUM, SMALL};
use gpumem_scene::plot::{say, sheet};
use gpumem_scene::{Category, Face, Point, Rect, Role, Scene, Target};

pub use fields::{Map, Tile, holder_map};
use squarify::squarified;

const MARGIN: f64 = 12.0;
const HEIGHT: f64 = 232.0;
/// A narrow sheet is as much higher as its fields need.
const NARROW: f64 = 560.0;
const NARROW_HEIGHT: f64 = 320.0;
/// A map of few fields is no higher than they need.
const FIELD_HEIGHT: f64 = 60.0;
/// Height of a sheet with only a sentence.
const SAID: f64 = 44.0;
/// Between two fields.
const GAP: f64 = 2.0;
const RADIUS: f64 = 3.0;
/// From a field's edge to its text.
const PAD: f64 = 6.0;
const LINE_HEIGHT: f64 = 15.0;
/// A field with less room than this shows nothing of what it holds.
const ROOMY: (f64, f64) = (96.0, 76.0);
/// How many fields the description names.
const N_DESCRIBED: usize = 8;

/// Who holds the view's device, as a treemap of [`holder_map`]; a sentence if that is not known. What grows stands
/// out as in the bar and in the rows.
pub fn treemap(recording: &Recording, analysis: &Analysis, view: &ChartView) -> Scene {
    let device = recording.devices().get(view.device.get());
    let label = device.map_or("this device", |device| &device.label);
    let said = |sentence: &str| {
        let mut scene = sheet(view.width, SAID, Role::Panel);
        say(&mut scene, sentence);
        scene
    };
    let Some(map) = holder_map(recording, view) else {
        return said(&format!(
            "who holds {label} is not known: names are looked for after a cell that keeps memory"
        ));
    };
    if map.fields.is_empty() {
        return said("no name holds more or less than before");
    }
    let most = if view.width < NARROW {
        NARROW_HEIGHT
    } else {
        HEIGHT
    };
    let height = most.min(FIELD_HEIGHT * (map.fields.len() + 1) as f64);
    let mut scene = sheet(view.width, height, Role::Panel);
    let room = Rect::new(0.0, 0.0, scene.width, scene.height).inset(MARGIN - GAP / 2.0);
    for (idx, (field, rect)) in laid(&map.fields, room).enumerate() {
        let rect = rect.inset(GAP / 2.0);
        let root = map.inside.first().unwrap_or(field);
        let colours = Colours {
            moment: map.moment,
            alarm: alarm(analysis, view.device, &root.name),
            units: view.units,
        };
        draw(&mut scene, field, rect, &colours);
        scene.respond(rect, Target::Field(idx));
    }
    scene.description = description(&map, label, view.units);
    scene
}

fn laid(fields: &[Tile], room: Rect) -> impl Iterator<Item = (&Tile, Rect)> {
    let sizes: Vec<f64> = fields.iter().map(|field| field.n_bytes.as_f64()).collect();
    fields.iter().zip(squarified(&sizes, room))
}

/// What distinguishes the fields: where they grew, or what they are for.
struct Colours {
    moment: Moment,
    /// The alarm of the name around the tile.
    alarm: Option<Alarm>,
    units: Units,
}

impl Colours {
    /// A part has the colour that it has in the bar.
    fn role(&self, field: &Tile) -> Role {
        match (self.moment, field.change, self.alarm) {
            (Moment::Change, Some(change), _) if change < ByteDelta::ZERO => Role::Ok,
            (Moment::Change, ..) => Role::Kept,
            (.., Some(alarm)) => alarm.role(),
            _ => Role::Category(field.part.map_or(Category::Names, Category::of_purpose)),
        }
    }
}

/// A field with its name and figure; what it holds below them, where there is room.
fn draw(scene: &mut Scene, field: &Tile, rect: Rect, colours: &Colours) {
    let units = colours.units;
    scene.fill(rect, colours.role(field), RADIUS);
    let is_roomy = rect.width >= ROOMY.0 && rect.height >= ROOMY.1;
    if !is_roomy || field.fields.is_empty() {
        let lines = [
            (field.name.as_str(), Face::Mono, MEDIUM),
            (&field.figure(units), Face::Bold, MEDIUM),
            (&field.what, Face::Sans, SMALL),
        ];
        write(scene, &lines, rect);
        return;
    }
    let title = format!("{} · {}", field.name, field.figure(units));
    write(scene, &[(&title, Face::Mono, MEDIUM)], rect);
    let head = PAD + LINE_HEIGHT + 3.0;
    let inner = Rect::new(
        rect.x + PAD - GAP,
        rect.y + head,
        rect.width - 2.0 * (PAD - GAP),
        rect.height - head - PAD + GAP,
    );
    for (inner, rect) in laid(&field.fields, inner) {
        let rect = rect.inset(GAP / 2.0);
        scene.fill(rect, Role::Panel, RADIUS);
        scene.fill(rect.inset(1.0), colours.role(inner), RADIUS - 1.0);
        let lines = [
            (inner.name.as_str(), Face::Mono, SMALL),
            (&inner.figure(units), Face::Sans, SMALL),
        ];
        write(scene, &lines, rect);
    }
}

/// As many lines as there is room for, none of them cut beyond knowing.
fn write(scene: &mut Scene, lines: &[(&str, Face, f64)], rect: Rect) {
    let room = rect.width - 2.0 * PAD;
    let mut baseline = rect.y + PAD + 0.8 * MEDIUM;
    for (text, face, size) in lines {
        if baseline + PAD - 2.0 > rect.y + rect.height {
            return;
        }
        let label = Label::new(text, Point::new(rect.x + PAD, baseline))
            .face(*face)
            .size(*size)
            .role(Role::Word)
            .legible_in(room);
        if label.is_empty() {
            return;
        }
        scene.text(label);
        baseline += LINE_HEIGHT;
    }
}

fn description(map: &Map, device: &str, units: Units) -> String {
    let of = match map.moment {
        Moment::Before => "What held",
        Moment::After => "What holds",
        Moment::Change => "What changed of who holds",
    };
    let around = map.inside.iter().map(|field| field.name.as_str());
    let place = std::iter::once(device).chain(around);
    let place = place.collect::<Vec<_>>().join(", inside of ");
    let shown = map.fields.iter().take(N_DESCRIBED);
    let fields: Vec<String> = shown
        .map(|field| format!("{} {}", field.name, field.figure(units)))
        .collect();
    let more = match map.fields.len().saturating_sub(N_DESCRIBED) {
        0 => String::new(),
        n => format!(", and {n} more"),
    };
    format!("{of} {place}: {}{more}.", fields.join(", "))
}
