//! M4 reduction: of the points in one column of pixels, the first, the lowest,
//! the highest and the last draw the same picture as all of them.

use gpumem_model::extremes::Extremes;
use gpumem_scene::Point;

/// At most four points per column of that width, in the order they came.
///
/// `points` run from left to right.
pub(super) fn m4(points: impl IntoIterator<Item = Point>, column_width: f64) -> Vec<Point> {
    let mut reduced = M4Reducer::to(column_width);
    points.into_iter().for_each(|point| reduced.push(point));
    reduced.into_points()
}

/// Points that are reduced as they come, from left to right.
#[derive(Debug)]
pub(super) struct M4Reducer {
    column_width: f64,
    n_pushed: usize,
    kept: Vec<Point>,
    column: Option<PixelColumn>,
}

impl M4Reducer {
    /// No points yet.
    pub(super) fn to(column_width: f64) -> Self {
        Self {
            column_width,
            n_pushed: 0,
            kept: Vec::new(),
            column: None,
        }
    }

    /// How many points have come.
    pub(super) fn n_pushed(&self) -> usize {
        self.n_pushed
    }

    /// Takes the next one in.
    pub(super) fn push(&mut self, point: Point) {
        let number = (point.x / self.column_width).floor();
        let idx = self.n_pushed;
        self.n_pushed += 1;
        match &mut self.column {
            Some(column) if column.number.total_cmp(&number).is_eq() => column.add(idx, point),
            _ => {
                self.close();
                self.column = Some(PixelColumn::new(number, idx, point));
            }
        }
    }

    /// Those that are left, in the order they came.
    pub(super) fn into_points(mut self) -> Vec<Point> {
        self.close();
        self.kept
    }

    fn close(&mut self) {
        if let Some(column) = self.column.take() {
            column.put_extremes(&mut self.kept);
        }
    }
}

#[derive(Debug, Clone, Copy)]
struct PixelColumn {
    number: f64,
    first: (usize, Point),
    extremes: Extremes<f64, (usize, Point)>,
    last: (usize, Point),
}

impl PixelColumn {
    fn new(number: f64, idx: usize, point: Point) -> Self {
        Self {
            number,
            first: (idx, point),
            extremes: Extremes::new(point.y, (idx, point)),
            last: (idx, point),
        }
    }

    fn add(&mut self, idx: usize, point: Point) {
        self.extremes.add(point.y, (idx, point));
        self.last = (idx, point);
    }

    fn put_extremes(self, kept: &mut Vec<Point>) {
        let [earlier, later] = self.extremes.in_order(|(idx, _)| *idx);
        let mut last = None;
        for (idx, point) in [Some(self.first), earlier, later, Some(self.last)]
            .into_iter()
            .flatten()
        {
            if last != Some(idx) {
                kept.push(point);
            }
            last = Some(idx);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn check(points: &[(f64, f64)], kept: &[(f64, f64)]) {
        let point = |&(x, y): &(f64, f64)| Point { x, y };
        let expected: Vec<Point> = kept.iter().map(point).collect();
        assert_eq!(m4(points.iter().map(point), 1.0), expected);
    }

    #[test]
    fn a_column_keeps_its_ends_and_extremes() {
        check(&[], &[]);
        check(&[(0.5, 1.0)], &[(0.5, 1.0)]);
        check(
            &[
                (0.0, 3.0),
                (0.1, 9.0),
                (0.2, 4.0),
                (0.3, 1.0),
                (0.4, 5.0),
                (1.0, 7.0),
            ],
            &[(0.0, 3.0), (0.1, 9.0), (0.3, 1.0), (0.4, 5.0), (1.0, 7.0)],
        );
    }

    fn range_by_column(points: &[Point]) -> BTreeMap<i64, (f64, f64, usize)> {
        let mut ranges = BTreeMap::new();
        for point in points {
            #[expect(clippy::cast_possible_truncation, reason = "columns of a test are few")]
            let range = ranges
                .entry(point.x.floor() as i64)
                .or_insert((point.y, point.y, 0));
            *range = (range.0.min(point.y), range.1.max(point.y), range.2 + 1);
        }
        ranges
    }

    proptest! {
        #[test]
        fn every_extreme_survives(
            mut xs in prop::collection::vec(-20.0..20.0_f64, 0..300),
            ys in prop::collection::vec(-5.0..5.0_f64, 300),
        ) {
            xs.sort_by(f64::total_cmp);
            let all: Vec<Point> = xs.iter().zip(ys).map(|(&x, y)| Point { x, y }).collect();
            let kept = m4(all.iter().copied(), 1.0);
            prop_assert!(kept.windows(2).all(|pair| pair[0].x <= pair[1].x));
            let (before, after) = (range_by_column(&all), range_by_column(&kept));
            prop_assert_eq!(before.len(), after.len());
            for (column, (low, high, n)) in after {
                prop_assert_eq!((low, high), (before[&column].0, before[&column].1));
                prop_assert!(n <= 4);
            }
        }
    }
}
