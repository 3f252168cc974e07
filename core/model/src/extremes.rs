//! The lowest and the highest of the points in one bucket: what each way of downsampling keeps.

use std::cmp::Ordering;

/// The lowest and the highest level so far, each with its place in the series.
///
/// Of equal levels the lowest is the earliest and the highest the latest: a plateau keeps its width.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Extremes<L, P> {
    lowest: (L, P),
    highest: (L, P),
}

impl<L: Copy + PartialOrd, P: Copy> Extremes<L, P> {
    /// Those of a single point.
    pub fn new(level: L, place: P) -> Self {
        Self {
            lowest: (level, place),
            highest: (level, place),
        }
    }

    /// Those of points in the order of the series; `None` if there are none.
    pub fn from_points(points: impl IntoIterator<Item = (L, P)>) -> Option<Self> {
        let mut points = points.into_iter();
        let (level, place) = points.next()?;
        let mut extremes = Self::new(level, place);
        points.for_each(|(level, place)| extremes.add(level, place));
        Some(extremes)
    }

    /// Adds the next point of the series.
    pub fn add(&mut self, level: L, place: P) {
        if level < self.lowest.0 {
            self.lowest = (level, place);
        }
        if level >= self.highest.0 {
            self.highest = (level, place);
        }
    }

    /// Where they are: the lowest, the highest.
    pub(crate) fn places(&self) -> [P; 2] {
        [self.lowest.1, self.highest.1]
    }

    /// Where they are, in the order of the series; one place if both are there.
    pub fn in_order<K: Ord>(&self, position: impl Fn(&P) -> K) -> [Option<P>; 2] {
        let [lowest, highest] = self.places();
        match position(&lowest).cmp(&position(&highest)) {
            Ordering::Less => [Some(lowest), Some(highest)],
            Ordering::Equal => [Some(lowest), None],
            Ordering::Greater => [Some(highest), Some(lowest)],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(levels: &[f64], places: Option<[usize; 2]>) {
        let points = levels.iter().copied().zip(0..);
        assert_eq!(Extremes::from_points(points).map(|it| it.places()), places);
    }

    #[test]
    fn the_lowest_and_the_highest_are_found() {
        check(&[], None);
        check(&[5.0], Some([0, 0]));
        check(&[3.0, 9.0, 1.0, 5.0], Some([2, 1]));
    }

    #[test]
    fn of_equal_levels_the_first_is_lowest_and_the_last_highest() {
        check(&[2.0, 2.0, 2.0], Some([0, 2]));
        check(&[1.0, 7.0, 1.0, 7.0, 4.0], Some([0, 3]));
    }
}
