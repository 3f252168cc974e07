//! Step lines reduced to the resolution of the screen.

/// Runs narrower than this share a column, which shows the highest level.
pub(crate) const COLUMN: f64 = 2.0;

/// Levels from left to right, each from its place to that of the next: those in one column are one,
/// the highest.
pub(crate) fn columns(levels: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let mut shown: Vec<(f64, f64)> = Vec::new();
    // Where a column is left, the line goes on at its last level.
    let mut last = 0.0;
    for &(x, level) in levels {
        match shown.last_mut() {
            Some((left, highest)) if x - *left < COLUMN => *highest = highest.max(level),
            Some((left, highest)) => {
                let end = *left + COLUMN;
                if last < *highest {
                    shown.push((end, last));
                }
                if x > end || shown.last().is_some_and(|(left, _)| *left < x) {
                    shown.push((x, level));
                } else if let Some((_, lowest)) = shown.last_mut() {
                    *lowest = level;
                }
            }
            None => shown.push((x, level)),
        }
        last = level;
    }
    if let Some((left, highest)) = shown.last().copied()
        && last < highest
    {
        shown.push((left + COLUMN, last));
    }
    shown
}

/// The highest of each column, at the place of the first.
pub(crate) fn highest(levels: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let mut shown: Vec<(f64, f64)> = Vec::new();
    for &(x, level) in levels {
        match shown.last_mut() {
            Some((left, highest)) if x - *left < COLUMN => *highest = highest.max(level),
            _ => shown.push((x, level)),
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(levels: &[(f64, f64)], expected: &[(f64, f64)]) {
        assert_eq!(columns(levels), expected);
    }

    #[test]
    fn a_column_shows_its_highest_and_the_line_goes_on_at_its_last() {
        check(&[(0.0, 1.0), (9.0, 2.0)], &[(0.0, 1.0), (9.0, 2.0)]);
        check(
            &[(0.0, 1.0), (0.5, 5.0), (1.0, 3.0)],
            &[(0.0, 5.0), (2.0, 3.0)],
        );
        check(
            &[(0.0, 5.0), (1.0, 3.0), (9.0, 4.0)],
            &[(0.0, 5.0), (2.0, 3.0), (9.0, 4.0)],
        );
        check(
            &[(0.0, 5.0), (1.0, 3.0), (2.0, 4.0)],
            &[(0.0, 5.0), (2.0, 4.0)],
        );
    }
}
