//! The bar of a run that goes on: hatched, for it is not yet what the run keeps.

use super::plot::crisp;
use super::scene::{Point, Rect, Role, Scene};

/// From stripe to stripe.
const STRIDE: f64 = 7.0;
/// A narrower bar shows no stripes.
const LEAST: f64 = 6.0;

/// Fills `rect` with stripes that rise to the right, inside a dashed frame that is open below.
pub(super) fn hatch(scene: &mut Scene, rect: Rect, role: Role) {
    let left = crisp(rect.x);
    let right = crisp(rect.x + rect.width - 1.0).max(left);
    let (top, bottom) = (crisp(rect.y), rect.y + rect.height);
    let frame = [(left, bottom), (left, top), (right, top), (right, bottom)];
    let frame = frame.map(|(x, y)| Point::new(x, y));
    scene.line(frame.to_vec(), role, 1.5, Some((3.0, 2.0)));
    if rect.width < LEAST {
        return;
    }
    let inner = Rect::new(left, top, right - left, bottom - top);
    draw_stripes(scene, inner, role);
}

/// Stripes over a part that stands for itself: it has no name, or is not this process's.
pub(super) fn stripes(scene: &mut Scene, rect: Rect, role: Role) {
    if rect.width >= LEAST {
        draw_stripes(scene, rect, role);
    }
}

fn draw_stripes(scene: &mut Scene, rect: Rect, role: Role) {
    let (left, top, width) = (rect.x, rect.y, rect.width);
    let bottom = top + rect.height;
    // Each stripe by the height at which it would meet the left edge.
    let last = bottom + width;
    let stripes = std::iter::successors(Some(top + STRIDE), |y| Some(y + STRIDE));
    for y in stripes.take_while(|y| *y < last) {
        let from = Point::new(left + (y - bottom).max(0.0), y.min(bottom));
        let to = Point::new(left + (y - top).min(width), top.max(y - width));
        scene.line(vec![from, to], role, 1.0, None);
    }
}
