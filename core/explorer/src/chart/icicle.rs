//! Who holds what, as frames below frames: as wide as their bytes.

use gpumem_model::printable::printable;
use gpumem_model::units::Units;
use gpumem_model::units::count;
use gpumem_readers::torch_snapshot::{Flame, FlameNames, FlamePart};
use gpumem_scene::label::Label;
use gpumem_scene::plot::sheet;
use gpumem_scene::text;
use gpumem_scene::{Face, Point, Rect, Role, Scene};

const ROW: f64 = 20.0;
const SIZE: f64 = 11.0;
/// Narrower ones are left out.
const LEAST: f64 = 1.5;
/// From here on something is written in it.
const LEAST_WORDS: f64 = 24.0;
const MAX_ROWS: usize = 64;

/// What is shown of the frames.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct IcicleView {
    /// In logical pixels.
    pub width: f64,
    /// The frame that is as wide as the chart, by its position in the tree.
    pub root: usize,
    /// Frames whose function or file has these letters stand out; empty for none.
    pub search: String,
    /// How sizes are shown.
    pub units: Units,
}

/// A picture of frames, and where each is.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Icicle {
    /// The picture.
    pub scene: Scene,
    /// The frames that are drawn, by their positions in the tree.
    pub bars: Vec<(Rect, usize)>,
}

impl Icicle {
    /// The frame at a point, by its position in the tree.
    pub fn at(&self, point: Point) -> Option<usize> {
        let mut bars = self.bars.iter();
        bars.find(|(rect, _)| rect.contains(point))
            .map(|(_, node)| *node)
    }
}

/// The root with what is above it, and what is below it to scale.
pub fn icicle(flame: &Flame, names: FlameNames<'_>, view: &IcicleView) -> Icicle {
    let root = view.root.min(flame.nodes.len() - 1);
    let mut drawing = IcicleDrawing {
        flame,
        names,
        view,
        search: view.search.to_lowercase(),
        icicle: Icicle::default(),
        n_rows: 0,
    };
    let above = flame.above(root);
    for (row, node) in above.iter().enumerate() {
        drawing.draw(*node, row, 0.0, view.width);
    }
    drawing.draw_below(root, above.len(), 0.0, view.width);
    let all = &flame.nodes[root];
    let description = format!(
        "{} in {}, by stack",
        view.units.size(all.bytes),
        count(all.n_blocks, "block")
    );
    let mut scene = sheet(view.width, ROW * drawing.n_rows as f64, Role::Panel);
    scene.items = drawing.icicle.scene.items;
    scene.description = description;
    Icicle {
        scene,
        bars: drawing.icicle.bars,
    }
}

/// What a part of the tree is, in words.
pub fn part_words(part: FlamePart, names: FlameNames<'_>) -> String {
    match (part, part.frame().and_then(|frame| names.frames.get(frame))) {
        (_, Some(frame)) => frame.line.short(),
        (FlamePart::All, _) => "all".to_owned(),
        (FlamePart::BeforeTrace, _) => "allocated before the trace".to_owned(),
        (FlamePart::Holder(holder), _) => {
            let name = names.holders.get(holder as usize);
            format!("held by {}", printable(name.map_or("?", String::as_str)))
        }
        _ if names.frames.is_empty() => "no stack was recorded".to_owned(),
        _ => "before recording began".to_owned(),
    }
}

struct IcicleDrawing<'a> {
    flame: &'a Flame,
    names: FlameNames<'a>,
    view: &'a IcicleView,
    search: String,
    icicle: Icicle,
    n_rows: usize,
}

impl IcicleDrawing<'_> {
    /// The node and all below it.
    fn draw_below(&mut self, node: usize, row: usize, left: f64, width: f64) {
        self.draw(node, row, left, width);
        if row + 1 >= MAX_ROWS {
            return;
        }
        let of = &self.flame.nodes[node];
        let scale = width / of.bytes.as_f64().max(1.0);
        let mut x = left;
        for &child in &of.children {
            let width = self.flame.nodes[child].bytes.as_f64() * scale;
            if width < LEAST {
                // The others are smaller still.
                break;
            }
            self.draw_below(child, row + 1, x, width);
            x += width;
        }
    }

    fn draw(&mut self, node: usize, row: usize, left: f64, width: f64) {
        self.n_rows = self.n_rows.max(row + 1);
        let rect = Rect::new(left, ROW * row as f64, width, ROW);
        let drawn = Rect::new(left, rect.y, (width - 1.0).max(0.5), ROW - 1.0);
        let look = self.look(node);
        let scene = &mut self.icicle.scene;
        scene.fill(drawn, look, 0.0);
        if width > LEAST_WORDS {
            let words = self.label(node);
            let words = text::fitted(&words, Face::Sans, SIZE, width - 8.0);
            let at = Point::new(left + 4.0, rect.y + 14.0);
            let role = if look == Role::CacheArea {
                Role::Muted
            } else {
                Role::Text
            };
            let label = Label::new(words, at).role(role);
            self.icicle.scene.text(label);
        }
        self.icicle.bars.push((rect, node));
    }

    fn look(&self, node: usize) -> Role {
        let part = self.flame.nodes[node].part;
        let has = |words: &str| words.to_lowercase().contains(&self.search);
        let is_found = !self.search.is_empty();
        let stands_out = match part {
            FlamePart::Frame(idx) => {
                let frame = self.names.frames.get(idx as usize);
                frame.is_some_and(|frame| {
                    if is_found {
                        has(&frame.line.function) || has(&frame.line.file)
                    } else {
                        frame.is_user
                    }
                })
            }
            FlamePart::Holder(idx) => {
                let name = self.names.holders.get(idx as usize);
                !is_found || name.is_some_and(|name| has(name))
            }
            _ => false,
        };
        if stands_out {
            Role::KeptArea
        } else {
            Role::CacheArea
        }
    }

    fn label(&self, node: usize) -> String {
        let of = &self.flame.nodes[node];
        let name = part_words(of.part, self.names);
        format!("{name} {}", self.view.units.size(of.bytes))
    }
}
