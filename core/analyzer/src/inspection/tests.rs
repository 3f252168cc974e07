use super::*;
use crate::testing::{Play, run, session};
use gpumem_model::recording::{Frame, Level, SegmentSnapshot};

/// The recording of these runs of one cell, and the last of them.
fn of(source: &str, plays: &[Play]) -> (Recording, RunIdx) {
    let (recording, _) = session(&[(source, plays)]);
    let last = recording.runs().last().expect("a run").idx;
    (recording, last)
}

#[track_caller]
fn check_news(plays: &[Play], expected: bool) {
    let (recording, last) = of("x = f()", plays);
    assert_eq!(has_news(&recording, last), expected);
}

#[test]
fn what_moved_nothing_and_ended_well_is_no_news() {
    check_news(&[run(0)], false);
    check_news(&[run(0).unknown()], false);
    check_news(&[run(5)], true);
    check_news(&[run(-5)], true);
    check_news(&[run(0).status(Status::Error)], true);
    check_news(&[run(0).steps(3)], true);
    check_news(&[run(0).sampled(3)], false);
}

#[track_caller]
fn check_holders(source: &str, plays: &[Play], is_wanted: bool) {
    let (recording, last) = of(source, plays);
    let expected: &[DeviceIdx] = if is_wanted { &[DeviceIdx(0)] } else { &[] };
    assert_eq!(holders_wanted(&recording, last), expected);
}

#[test]
fn holders_are_looked_for_where_a_run_left_more() {
    check_holders("x = f()", &[run(40)], true);
    check_holders("x = f()", &[run(0)], false);
    check_holders("x = f()", &[run(-40)], false);
    check_holders("x = f()", &[run(40).unknown()], false);
    // A loop collects, and the run lets go of as much.
    let collecting = run(-10).steps_keeping(&[5, 5]);
    check_holders("x = f()", &[run(40), collecting], true);
}

#[test]
fn what_was_to_give_back_and_did_not_is_looked_at_again() {
    let held = run(40).held_by("model", "Net");
    check_holders("del model", &[held.clone(), run(0)], true);
    check_holders("model", &[held.clone(), run(0)], false);
    check_holders("model", &[held.clone(), run(0).status(Status::Error)], true);
}

#[test]
fn what_was_freed_is_no_longer_shown_as_held() {
    let held = run(40).held_by("model", "Net");
    check_holders("del model", &[held.clone(), run(-40)], true);
    check_holders("model = None", &[held.clone(), run(-2), run(-2)], true);
    check_holders("x = f()", &[held, run(-2)], false);
}

#[test]
fn a_run_that_is_not_there_wants_nothing() {
    let (recording, _) = of("x = f()", &[run(40)]);
    let none = RunIdx(7);
    assert_eq!(holders_wanted(&recording, none), []);
    assert_eq!(segments_wanted(&recording, none, &Rules::default()), []);
}

/// A run after which so many MiB of 1 GiB were free in pieces.
fn leave(recording: &mut Recording, idx: RunIdx, split: u64) {
    let mut run = recording.run(idx).clone();
    let after = run.levels[0].after.as_mut().expect("an ended run");
    let levels = &mut after.allocators[0];
    levels.inactive_split = Level::Known(Bytes::mib(split));
    levels.reserved = Level::Known(Bytes::gib(1));
    levels.n_blocks = Some(9);
    recording.apply(Frame::Run(run)).expect("the same run");
}

fn is_wanted(recording: &Recording, run: u32, rules: &Rules) -> bool {
    let wanted = segments_wanted(recording, RunIdx(run), rules);
    let expected = SegmentsWanted {
        device: DeviceIdx(0),
        n_blocks: Some(9),
    };
    assert!(wanted.is_empty() || wanted == [expected]);
    !wanted.is_empty()
}

#[test]
fn the_rules_in_force_say_how_many_pieces_are_worth_it() {
    let (mut recording, last) = of("x = f()", &[run(40)]);
    let usual = Rules::default();
    let patient = Rules {
        fragmentation_ratio: 0.6,
        ..usual
    };
    leave(&mut recording, last, 500);
    assert!(is_wanted(&recording, 0, &usual));
    assert!(!is_wanted(&recording, 0, &patient));
    leave(&mut recording, last, 700);
    assert!(is_wanted(&recording, 0, &patient));
    leave(&mut recording, last, 20);
    assert!(!is_wanted(&recording, 0, &usual));
}

#[test]
fn what_lies_as_before_is_not_read_again() {
    let (mut recording, _) = of("x = f()", &[run(40), run(0), run(0)]);
    for (run, split) in [(0, 500), (1, 505), (2, 700)] {
        leave(&mut recording, RunIdx(run), split);
    }
    let failed = SegmentSnapshot {
        run: RunIdx(0),
        device: DeviceIdx(0),
        found: Err("too many blocks".to_owned()),
    };
    let usual = Rules::default();
    assert!(is_wanted(&recording, 1, &usual));
    let frame = Frame::Segments(Box::new(failed));
    recording.apply(frame).expect("of a run that is there");
    assert!(!is_wanted(&recording, 0, &usual));
    assert!(!is_wanted(&recording, 1, &usual));
    assert!(is_wanted(&recording, 2, &usual));
}
