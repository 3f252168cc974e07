use super::*;
use crate::testing::{Play, held, run, session};
use gpumem_model::recording::{Device, Frame, Level, SegmentSnapshot};

/// The recording of these runs of one cell, and the last of them.
fn recorded(source: &str, plays: &[Play]) -> (Recording, RunIdx) {
    let (recording, _) = session(&[(source, plays)]);
    let last = recording.runs().last().expect("a run").idx;
    (recording, last)
}

#[track_caller]
fn check_news(plays: &[Play], expected: bool) {
    let (recording, last) = recorded("x = f()", plays);
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
    let (recording, last) = recorded(source, plays);
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

/// The recording of these runs of one cell, by the MiB that each keeps, on the host alone.
fn on_host(kept_mib: &[i64]) -> Recording {
    let plays: Vec<Play> = kept_mib.iter().map(|it| run(*it)).collect();
    let (mut recording, _) = recorded("x = f()", &plays);
    let host = Device {
        kind: DeviceKind::Host,
        ..recording.devices()[0].clone()
    };
    recording.apply(Frame::Device(host)).expect("it is known");
    recording
}

#[test]
fn the_host_is_looked_at_beyond_names_if_a_cell_grows_again() {
    let check = |kept_mib: &[i64], expected: Option<u64>| {
        let last = RunIdx(kept_mib.len() as u32 - 1);
        let found = host_growth(&on_host(kept_mib), last);
        assert_eq!(found.map(|(_, grown)| grown), expected.map(Bytes::mib));
    };
    check(&[40, 30], Some(30));
    check(&[40, 3], None);
    check(&[0, 30], None);
    check(&[40], None);
    // For names so little is enough.
    assert_eq!(holders_wanted(&on_host(&[1, 1]), RunIdx(1)), [DeviceIdx(0)]);
    assert_eq!(holders_wanted(&on_host(&[0, 1, 0]), RunIdx(2)), []);
}

#[test]
fn host_names_are_scanned_now_and_then_and_while_they_grow() {
    let wanted = |recording: &Recording| -> Vec<u32> {
        let runs = recording.runs().iter().map(|run| run.idx);
        let wanted = runs.filter(|run| !holders_wanted(recording, *run).is_empty());
        wanted.map(|run| run.0).collect()
    };
    let mut recording = on_host(&[0; 10]);
    assert_eq!(wanted(&recording), [1, 3, 7]);
    let mut look = |run: u32, grown_mib: i64| {
        let look = held(RunIdx(run), "kept", "list", grown_mib, 9);
        recording
            .apply(Frame::Holders(Box::new(look)))
            .expect("of a run");
        wanted(&recording)
    };
    // Of three runs the looks may be missed.
    assert_eq!(look(3, 2), [1, 3, 4, 5, 6, 7]);
    assert_eq!(look(4, 0), [1, 3, 4, 7]);
}

#[test]
fn a_run_that_is_not_there_wants_nothing() {
    let (recording, _) = recorded("x = f()", &[run(40)]);
    let none = RunIdx(7);
    assert_eq!(holders_wanted(&recording, none), []);
    assert_eq!(segments_wanted(&recording, none, &Rules::default()), []);
}

/// A run after which this many MiB of 1 GiB were free in pieces.
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
    let (mut recording, last) = recorded("x = f()", &[run(40)]);
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
    let (mut recording, _) = recorded("x = f()", &[run(40), run(0), run(0)]);
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
