//! The bar of a run that goes on: hatched, for it is not yet what the run keeps.

use crate::plot::crisp;
use crate::{Point, Rect, Role, Scene};

/// From stripe to stripe.
const STRIDE: f64 = 7.0;
/// A narrower bar shows no stripes.
const LEAST: f64 = 6.0;

/// Fills `rect` with stripes that rise to the right, inside a dashed frame that is open below.
pub fn hatch(scene: &mut Scene, rect: Rect, role: Role) {
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
pub fn stripes(scene: &mut Scene, rect: Rect, role: Role) {
    if rect.width >= LEAST {
        draw_stripes(scene, rect, role);
    }
}

/// Stripes between a line that rises to the right and a floor below it.
pub fn stripes_below(scene: &mut Scene, (from, to): (Point, Point), floor: f64, role: Role) {
    let width = to.x - from.x;
    if width < LEAST || from.y >= floor {
        return;
    }
    let slope = (to.y - from.y) / width;
    // Each stripe by where it would meet the floor; it goes one up for one to the right.
    let last = to.x;
    let first = from.x - (floor - to.y.min(from.y));
    let feet = std::iter::successors(Some(first + STRIDE), |x| Some(x + STRIDE));
    for foot in feet.take_while(|x| *x < last) {
        let left = foot.max(from.x);
        // Where it meets the line: floor - (x - foot) = from.y + slope * (x - from.x).
        let meets = (floor + foot - from.y + slope * from.x) / (1.0 + slope);
        let (left, right) = if slope > -1.0 {
            (left, meets.min(to.x))
        } else {
            (left.max(meets), to.x)
        };
        if right > left {
            let at = |x: f64| Point::new(x, floor - (x - foot));
            scene.line(vec![at(left), at(right)], role, 1.0, None);
        }
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
