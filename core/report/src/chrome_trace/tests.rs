use proptest::prelude::*;
use serde_json::Value;

use super::chrome_trace;
use super::event::Micros;
use super::lanes::Lanes;
use gpumem_analyzer::testing::{run, session};
use gpumem_analyzer::{Rules, analyze};
use gpumem_model::recording::{Recording, Status};
use gpumem_model::units::Nanos;

fn events(recording: &Recording) -> Vec<Value> {
    let text = chrome_trace(recording, &analyze(recording, &Rules::default()));
    let trace: Value = serde_json::from_str(&text).expect("valid JSON");
    trace["traceEvents"].as_array().expect("a list").clone()
}

/// Each event as `phase name @time+duration`, what viewers draw.
#[track_caller]
fn check(recording: &Recording, phases: &str, expected: &[&str]) {
    let all = events(recording);
    let of_phases = all
        .iter()
        .filter(|event| phases.contains(event["ph"].as_str().expect("a phase")));
    let drawn: Vec<String> = of_phases
        .map(|event| {
            let dur = event.get("dur").map(|dur| format!("+{dur}"));
            let level = event["args"].get("bytes").map(|bytes| format!(" {bytes}"));
            let name = event["name"].as_str().expect("a name");
            let (ts, tid) = (&event["ts"], &event["tid"]);
            let [dur, level] = [dur, level].map(Option::unwrap_or_default);
            format!("{}/{tid} {name}{level} @{ts}{dur}", event["pid"])
        })
        .collect();
    assert_eq!(drawn, expected);
}

#[test]
fn a_run_is_a_slice_and_its_steps_are_inside() {
    let (recording, _) = session(&[("a()", &[run(4).steps(2)]), ("b()", &[run(0)])]);
    check(
        &recording,
        "X",
        &[
            "1/1 [1] a() @1000000+1000000",
            "1/1 step @1000000+500000",
            "1/1 step @1500000+500000",
            "1/1 [2] b() @4000000+1000000",
        ],
    );
}

#[test]
fn a_counter_changes_only_with_its_level() {
    let (recording, _) = session(&[("a()", &[run(4), run(0)])]);
    let all = events(&recording);
    let allocated = all.iter().filter(|event| event["name"] == "allocated");
    let levels: Vec<&Value> = allocated.map(|event| &event["args"]["bytes"]).collect();
    assert_eq!(levels, [&Value::from(0), &Value::from(4 << 20)]);
}

#[test]
fn an_unknown_level_is_no_counter() {
    let (recording, _) = session(&[("a()", &[run(4).unknown()])]);
    check(&recording, "C", &[]);
}

#[test]
fn a_finding_is_an_instant_of_its_device() {
    let (recording, _) = session(&[("losses.append(1)", &vec![run(420); 12])]);
    check(
        &recording,
        "i",
        &["2/2 losses.append(1) leaks 420 MiB a run @35000000"],
    );
}

#[test]
fn a_run_that_goes_on_ends_at_the_last_that_is_known() {
    let (recording, _) = session(&[("a()", &[run(4).status(Status::Running).sampled(4)])]);
    check(&recording, "X", &["1/1 [1] a() @1000000+1000000"]);
}

#[test]
fn an_empty_recording_is_a_trace() {
    check(
        &Recording::default(),
        "M",
        &["1/1 process_name @0", "1/1 process_sort_index @0"],
    );
}

#[test]
fn what_overlaps_goes_to_another_track() {
    let times = [(0, 100), (10, 40), (20, 60), (40, 100), (50, 55), (60, 70)];
    let mut lanes = Lanes::default();
    let placed = times.map(|times| lanes.place(0, micros(times)));
    assert_eq!(placed, [0, 0, 1, 0, 0, 0]);
}

fn micros((start, end): (u64, u64)) -> (Micros, Micros) {
    let micros = |n: u64| Nanos::new(1000 * n).into();
    (micros(start), micros(end))
}

proptest! {
    #[test]
    fn slices_of_a_track_are_nested_or_apart(
        mut times in proptest::collection::vec((0..50_u64, 0..20_u64), 0..40),
        preferred in 0..4_usize,
    ) {
        times.sort_by_key(|(start, length)| (*start, std::cmp::Reverse(*length)));
        let mut lanes = Lanes::default();
        let mut placed: Vec<(usize, u64, u64)> = Vec::new();
        for (start, length) in times {
            let end = start + length;
            let lane = lanes.place(preferred, micros((start, end)));
            for (other, from, to) in &placed {
                let is_apart = end <= *from || *to <= start;
                let is_inside = *from <= start && end <= *to;
                prop_assert!(*other != lane || is_apart || is_inside);
            }
            placed.push((lane, start, end));
        }
    }
}
