//! Scenes as text, one line per item, and what holds for every scene.

use std::fmt::Write as _;

use crate::label::Label;
use crate::{Anchor, Face, Item, Rect, Scene};

/// `Leak fill 270,126 24x38`, in painting order; all numbers are logical pixels.
pub fn draw_log(scene: &Scene) -> String {
    let mut log = format!("{:?} {:.0}x{:.0}\n", scene.sheet, scene.width, scene.height);
    for item in &scene.items {
        let line = match item {
            Item::Fill { rect, role, .. } => format!(
                "{role:?} fill {:.0},{:.0} {:.0}x{:.0}",
                rect.x, rect.y, rect.width, rect.height
            ),
            Item::Line {
                points, role, dash, ..
            } => {
                let kind = if dash.is_some() { "dashes" } else { "line" };
                let (first, last) = (points[0], points[points.len() - 1]);
                let n = points.len();
                format!(
                    "{role:?} {kind} {:.0},{:.0} to {:.0},{:.0}, {n} points",
                    first.x, first.y, last.x, last.y
                )
            }
            Item::Text(label) => {
                let (at, role, text) = (label.at, label.role, &label.text);
                let (face, side) = (name(label.face), side(label.anchor));
                format!("{role:?} {face} {side} {:.0},{:.0} {text:?}", at.x, at.y)
            }
        };
        writeln!(log, "{line}").expect("a string takes everything");
    }
    writeln!(log, "{} hits: {}", scene.hits.len(), scene.description).expect("as above");
    log
}

fn name(face: Face) -> &'static str {
    match face {
        Face::Sans => "text",
        Face::Bold => "bold",
        Face::Mono => "mono",
    }
}

fn side(anchor: Anchor) -> &'static str {
    match anchor {
        Anchor::Start => "from",
        Anchor::Middle => "around",
        Anchor::End => "up to",
    }
}

/// All that is written, in painting order.
pub fn texts(scene: &Scene) -> Vec<&str> {
    fn text(item: &Item) -> Option<&str> {
        match item {
            Item::Text(label) => Some(&label.text),
            _ => None,
        }
    }
    scene.items.iter().filter_map(text).collect()
}

/// Nothing lies outside, nothing is not a number, no text stands on another.
pub fn assert_sound(scene: &Scene) {
    const ROUNDING: f64 = 1e-6;
    let sheet = scene.area();
    let mut texts: Vec<(Rect, &str)> = Vec::new();
    for item in &scene.items {
        let bounds = bounds(item);
        let numbers = [bounds.x, bounds.y, bounds.width, bounds.height];
        assert!(
            numbers.iter().all(|n| n.is_finite()),
            "not a number: {item:?}"
        );
        assert!(
            bounds.width >= 0.0 && bounds.height >= 0.0,
            "turned over: {item:?}"
        );
        assert!(
            bounds.x >= -ROUNDING
                && bounds.y >= -ROUNDING
                && bounds.x + bounds.width <= sheet.width + ROUNDING
                && bounds.y + bounds.height <= sheet.height + ROUNDING,
            "outside of {sheet:?}: {item:?}"
        );
        if let Item::Text(Label { text, size, .. }) = item {
            assert!(*size >= 11.0, "too small: {item:?}");
            let over = texts.iter().find(|(taken, _)| taken.overlaps(bounds));
            assert!(over.is_none(), "{text:?} on {over:?}");
            texts.push((bounds, text));
        }
    }
    for hit in &scene.hits {
        assert!(hit.rect.width >= 0.0 && hit.rect.height >= 0.0, "{hit:?}");
    }
}

/// What an item covers.
fn bounds(item: &Item) -> Rect {
    match item {
        Item::Fill { rect, .. } => *rect,
        Item::Line { points, .. } => {
            let first = Rect::new(points[0].x, points[0].y, 0.0, 0.0);
            points.iter().fold(first, |all, point| {
                let (left, top) = (all.x.min(point.x), all.y.min(point.y));
                let right = (all.x + all.width).max(point.x);
                let bottom = (all.y + all.height).max(point.y);
                Rect::new(left, top, right - left, bottom - top)
            })
        }
        Item::Text(label) => label.bounds(),
    }
}
