//! M4 reduction: of the points in one column of pixels, the first, the lowest,
//! the highest and the last draw the same picture as all of them.

use super::scene::Point;

/// At most four points per column of that width, in the order they came.
///
/// `points` run from left to right.
pub(super) fn m4(points: impl IntoIterator<Item = Point>, column_width: f64) -> Vec<Point> {
    let mut kept = Vec::new();
    let mut column: Option<Column> = None;
    for (idx, point) in points.into_iter().enumerate() {
        let number = (point.x / column_width).floor();
        match &mut column {
            Some(column) if column.number.total_cmp(&number).is_eq() => column.take(idx, point),
            _ => {
                kept.extend(column.map(Column::extremes).into_iter().flatten());
                column = Some(Column::new(number, idx, point));
            }
        }
    }
    kept.extend(column.map(Column::extremes).into_iter().flatten());
    kept
}

#[derive(Debug, Clone, Copy)]
struct Column {
    number: f64,
    first: (usize, Point),
    lowest: (usize, Point),
    highest: (usize, Point),
    last: (usize, Point),
}

impl Column {
    fn new(number: f64, idx: usize, point: Point) -> Self {
        let only = (idx, point);
        Self {
            number,
            first: only,
            lowest: only,
            highest: only,
            last: only,
        }
    }

    fn take(&mut self, idx: usize, point: Point) {
        if point.y < self.lowest.1.y {
            self.lowest = (idx, point);
        }
        if point.y > self.highest.1.y {
            self.highest = (idx, point);
        }
        self.last = (idx, point);
    }

    fn extremes(self) -> impl Iterator<Item = Point> {
        let mut kept = [self.first, self.lowest, self.highest, self.last].to_vec();
        kept.sort_by_key(|(idx, _)| *idx);
        kept.dedup_by_key(|(idx, _)| *idx);
        kept.into_iter().map(|(_, point)| point)
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
