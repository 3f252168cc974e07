//! Rectangles whose areas are as given, as near to squares as they come.
//!
//! Bruls, Huizing and van Wijk, "Squarified Treemaps" (2000): along the shorter side
//! of what is left, a row takes in sizes as long as its worst rectangle gets no longer.

use gpumem_scene::Rect;

/// A rectangle for each size, which are given the largest first and are more than zero.
/// Together they fill `room`.
pub(super) fn squarified(sizes: &[f64], room: Rect) -> Vec<Rect> {
    let total: f64 = sizes.iter().sum();
    let scale = room.width * room.height / total;
    let mut rects = Vec::with_capacity(sizes.len());
    let (mut rest, mut room) = (sizes, room);
    while !rest.is_empty() {
        let side = room.width.min(room.height);
        let n = row(rest, scale, side);
        let area = rest[..n].iter().sum::<f64>() * scale;
        // The last row takes what is left: nothing of the room is lost to rounding.
        let depth = if n == rest.len() || side <= 0.0 {
            room.width.max(room.height)
        } else {
            area / side
        };
        rects.extend(laid(&rest[..n], room, depth));
        room = without(room, depth);
        rest = &rest[n..];
    }
    rects
}

/// How many of the sizes the next row takes in.
fn row(sizes: &[f64], scale: f64, side: f64) -> usize {
    let (mut sum, mut worst) = (0.0, f64::INFINITY);
    for (n, size) in sizes.iter().enumerate() {
        sum += size * scale;
        let longest = elongation(sizes[0] * scale, sum, side);
        let next = longest.max(elongation(size * scale, sum, side));
        if next > worst {
            return n;
        }
        worst = next;
    }
    sizes.len()
}

/// How much longer than wide, or wider than long, an area is in a row of that sum.
fn elongation(area: f64, sum: f64, side: f64) -> f64 {
    let depth = sum / side;
    let length = area / depth;
    (length / depth).max(depth / length)
}

/// The sizes of a row, side by side along the shorter side of the room.
fn laid(sizes: &[f64], room: Rect, depth: f64) -> impl Iterator<Item = Rect> {
    let total: f64 = sizes.iter().sum();
    let mut before = 0.0;
    sizes.iter().map(move |size| {
        let (from, to) = (before / total, (before + size) / total);
        before += size;
        if room.width < room.height {
            let (left, right) = (room.width * from, room.width * to);
            Rect::new(room.x + left, room.y, right - left, depth)
        } else {
            let (top, bottom) = (room.height * from, room.height * to);
            Rect::new(room.x, room.y + top, depth, bottom - top)
        }
    })
}

/// What a row leaves of the room.
fn without(room: Rect, depth: f64) -> Rect {
    if room.width < room.height {
        let height = (room.height - depth).max(0.0);
        Rect::new(room.x, room.y + depth, room.width, height)
    } else {
        let width = (room.width - depth).max(0.0);
        Rect::new(room.x + depth, room.y, width, room.height)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn check(sizes: &[f64], expected: &[[f64; 4]]) {
        let rects = squarified(sizes, Rect::new(0.0, 0.0, 6.0, 4.0));
        let rounded = |n: f64| (n * 100.0).round() / 100.0;
        let found: Vec<[f64; 4]> = rects
            .iter()
            .map(|rect| [rect.x, rect.y, rect.width, rect.height].map(rounded))
            .collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn one_size_takes_all() {
        check(&[3.0], &[[0.0, 0.0, 6.0, 4.0]]);
        check(&[], &[]);
    }

    #[test]
    fn the_paper_s_example_comes_out_as_in_the_paper() {
        check(
            &[6.0, 6.0, 4.0, 3.0, 2.0, 2.0, 1.0],
            &[
                [0.0, 0.0, 3.0, 2.0],
                [0.0, 2.0, 3.0, 2.0],
                [3.0, 0.0, 1.71, 2.33],
                [4.71, 0.0, 1.29, 2.33],
                [3.0, 2.33, 1.2, 1.67],
                [4.2, 2.33, 1.2, 1.67],
                [5.4, 2.33, 0.6, 1.67],
            ],
        );
    }

    prop_compose! {
        fn sizes()(mut sizes in prop::collection::vec(1.0..1e12_f64, 1..40)) -> Vec<f64> {
            sizes.sort_by(|a, b| b.total_cmp(a));
            sizes
        }
    }

    proptest! {
        #[test]
        fn areas_are_as_given(sizes in sizes(), width in 1.0..2000.0_f64, height in 1.0..2000.0_f64) {
            let rects = squarified(&sizes, Rect::new(5.0, 7.0, width, height));
            prop_assert_eq!(rects.len(), sizes.len());
            let total: f64 = sizes.iter().sum();
            for (size, rect) in sizes.iter().zip(&rects) {
                let share = rect.width * rect.height / (width * height);
                prop_assert!((share - size / total).abs() < 1e-9, "{size} of {total}: {rect:?}");
            }
        }

        #[test]
        fn none_is_outside_or_on_another(sizes in sizes(), width in 1.0..2000.0_f64, height in 1.0..2000.0_f64) {
            const ROUNDING: f64 = 1e-6;
            let rects = squarified(&sizes, Rect::new(5.0, 7.0, width, height));
            for (idx, rect) in rects.iter().enumerate() {
                let end = rect.bottom_right();
                prop_assert!(rect.x >= 5.0 - ROUNDING && rect.y >= 7.0 - ROUNDING);
                prop_assert!(end.x <= 5.0 + width + ROUNDING && end.y <= 7.0 + height + ROUNDING);
                let over = rects[..idx].iter().find(|other| other.inset(ROUNDING).overlaps(rect.inset(ROUNDING)));
                prop_assert!(over.is_none(), "{rect:?} on {over:?}");
            }
        }
    }
}
