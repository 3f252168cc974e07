//! The times in which other runs were under way beside a run: what a level moved by then belongs to none of
//! them for certain.

use gpumem_model::recording::{Recording, Run, RunIdx};
use gpumem_model::units::{ByteDelta, Bytes, Nanos};

/// The part of a run's time in which another run was under way.
struct Shared<'a> {
    other: &'a Run,
    from: Nanos,
    to: Nanos,
}

/// `None` if a run is not known that was under way.
fn shared<'a>(recording: &'a Recording, run: &Run) -> Option<Vec<Shared<'a>>> {
    if run.overlaps.len() >= Run::MAX_OVERLAPS {
        return None;
    }
    let end = run.ended.unwrap_or(Nanos::new(u64::MAX));
    let of_other = |idx: &RunIdx| {
        let other = recording.runs().get(idx.get())?;
        // The readings at the ends of a run take a moment, in which another may begin or end.
        let within = |at: Nanos| at.clamp(run.started.min(end), end);
        Some(Shared {
            other,
            from: within(other.started),
            to: other.ended.map_or(end, within),
        })
    };
    run.overlaps.iter().map(of_other).collect()
}

/// What a level moved by while other runs were under way: a run's levels at its ends are `ends`, those of
/// another run `ends_of` it. `None` if that is not known.
pub(super) fn moved(
    recording: &Recording,
    run: &Run,
    ends: [Option<Bytes>; 2],
    ends_of: impl Fn(&Run) -> [Option<Bytes>; 2],
) -> Option<ByteDelta> {
    let mut shared = shared(recording, run)?;
    shared.sort_by_key(|it| it.from);
    // The level where the times that overlap each other begin, and the latest end among them.
    let mut open: Option<(Bytes, Nanos, Option<Bytes>)> = None;
    let mut moved = ByteDelta::ZERO;
    for it in &shared {
        let [first, last] = ends_of(it.other);
        let first = if it.other.started <= run.started {
            ends[0]
        } else {
            first
        };
        let is_within = it
            .other
            .ended
            .is_some_and(|at| run.ended.is_none_or(|end| at < end));
        let last = if is_within { last } else { ends[1] };
        open = Some(match open {
            Some((level, to, end)) if it.from <= to => {
                if it.to > to {
                    (level, it.to, last)
                } else {
                    (level, to, end)
                }
            }
            earlier => {
                if let Some((level, _, end)) = earlier {
                    moved += end?.since(level);
                }
                (first?, it.to, last)
            }
        });
    }
    let (level, _, end) = open?;
    Some(moved + end?.since(level))
}

/// The levels at the marks of a loop as the run alone would have them: without what the steps moved in which
/// another run was under way; `None` at their ends. Nothing if those times are not known.
pub(super) fn alone(
    recording: &Recording,
    run: &Run,
    marks: &[(Nanos, Bytes)],
) -> Option<Vec<Option<Bytes>>> {
    if run.overlaps.is_empty() {
        return Some(marks.iter().map(|(_, level)| Some(*level)).collect());
    }
    let shared = shared(recording, run)?;
    let is_shared = |from: Nanos, to: Nanos| shared.iter().any(|it| it.from <= to && from <= it.to);
    let mut moved = ByteDelta::ZERO;
    let mut before = marks.first().copied();
    let alone = marks.iter().map(|mark| {
        let (at, level) = *mark;
        let (from, earlier) = before.replace(*mark).unwrap_or(*mark);
        if is_shared(from, at) {
            moved += level.since(earlier);
            return None;
        }
        let own = level.since(Bytes::ZERO) + -moved;
        Some(Bytes::new(u64::try_from(own.get()).unwrap_or_default()))
    });
    Some(alone.collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use gpumem_model::recording::{Cell, Frame};

    /// A run from 10 to 20 ms on a device whose level goes from 100 to 150, and others beside it, each with its
    /// start, its end and the levels then.
    fn session(others: &[([u64; 2], [u64; 2])]) -> Recording {
        let mut recording = Recording::default();
        recording
            .apply(Frame::Cell(Cell::default()))
            .expect("the first cell");
        let spans = std::iter::once(&([10, 20], [100, 150])).chain(others);
        for (idx, ([from, to], _)) in (0..).zip(spans) {
            let run = Run {
                idx: RunIdx(idx),
                started: Nanos::millis(*from),
                ended: Some(Nanos::millis(*to)),
                overlaps: (1..=others.len() as u32)
                    .map(RunIdx)
                    .filter(|_| idx == 0)
                    .collect(),
                ..Run::default()
            };
            recording.apply(Frame::Run(run)).expect("the next run");
        }
        recording
    }

    #[track_caller]
    fn check(others: &[([u64; 2], [u64; 2])], expected: Option<i64>) {
        let recording = session(others);
        let ends = |levels: [u64; 2]| levels.map(|level| Some(Bytes::new(level)));
        let ends_of = |run: &Run| ends(others[run.idx.get() - 1].1);
        let found = moved(
            &recording,
            recording.run(RunIdx(0)),
            ends([100, 150]),
            ends_of,
        );
        assert_eq!(found, expected.map(ByteDelta::new));
    }

    #[test]
    fn what_moves_while_both_run_is_no_ones() {
        check(&[([12, 14], [110, 130])], Some(20));
        check(&[([5, 12], [90, 120])], Some(20));
        check(&[([15, 25], [130, 190])], Some(20));
        check(&[([5, 25], [90, 190])], Some(50));
        check(&[([12, 14], [130, 110])], Some(-20));
    }

    #[test]
    fn the_time_of_several_others_counts_once() {
        check(&[([11, 13], [110, 120]), ([12, 15], [115, 130])], Some(20));
        check(&[([11, 19], [110, 140]), ([12, 13], [115, 120])], Some(30));
        check(&[([11, 12], [101, 105]), ([14, 15], [110, 111])], Some(5));
        check(&[([14, 15], [110, 111]), ([11, 12], [101, 105])], Some(5));
    }

    #[test]
    fn a_run_that_ended_while_levels_were_read_counts() {
        check(&[([5, 9], [80, 107])], Some(7));
        check(&[([21, 30], [150, 170])], Some(0));
    }

    #[test]
    fn without_a_level_or_a_run_nothing_is_known() {
        let recording = session(&[([12, 14], [0, 0])]);
        let ends = [Some(Bytes::new(100)), Some(Bytes::new(150))];
        let run = recording.run(RunIdx(0));
        assert_eq!(moved(&recording, run, ends, |_| [None, None]), None);
        let unknown = Run {
            overlaps: vec![RunIdx(7)],
            ..run.clone()
        };
        assert_eq!(moved(&recording, &unknown, ends, |_| ends), None);
        let many = Run {
            overlaps: vec![RunIdx(1); Run::MAX_OVERLAPS],
            ..run.clone()
        };
        assert_eq!(moved(&recording, &many, ends, |_| ends), None);
    }

    #[track_caller]
    fn check_steps(marks: &[(u64, u64)], expected: &[Option<u64>]) {
        let recording = session(&[([12, 14], [0, 0])]);
        let marks: Vec<(Nanos, Bytes)> = marks
            .iter()
            .map(|(at, level)| (Nanos::millis(*at), Bytes::new(*level)))
            .collect();
        let alone = alone(&recording, recording.run(RunIdx(0)), &marks);
        let expected: Vec<Option<Bytes>> = expected.iter().map(|it| it.map(Bytes::new)).collect();
        assert_eq!(alone, Some(expected));
    }

    #[test]
    fn steps_beside_another_run_are_left_out() {
        check_steps(
            &[(10, 100), (11, 101), (13, 107), (15, 109), (16, 110)],
            &[Some(100), Some(101), None, None, Some(102)],
        );
        check_steps(&[(13, 5), (16, 9), (17, 11)], &[None, None, Some(7)]);
    }
}
