//! Who holds what grows, and how many allocations live.

use super::super::*;
use super::{check, findings};
use crate::testing::{Play, found, held, run, session};
use gpumem_model::recording::{Device, DeviceKind, Frame, RunIdx};
use gpumem_model::units::Bytes;

/// What is said of the host if a look after each run found that `df` had so much more.
fn on_host(n_runs: usize, of_names_mib: i64) -> (Option<Reason>, bool) {
    let (mut recording, _) = session(&[("decode()", &vec![run(24); n_runs])]);
    let host = Device {
        kind: DeviceKind::Host,
        ..recording.devices()[0].clone()
    };
    recording.apply(Frame::Device(host)).expect("it is known");
    for idx in 0..n_runs as u32 {
        let mut look = held(RunIdx(idx), "df", "DataFrame", of_names_mib, of_names_mib);
        if of_names_mib == 0 {
            look.holders.roots.clear();
        }
        let frame = Frame::Holders(Box::new(look));
        recording.apply(frame).expect("of a run that is there");
    }
    let found = analyze(&recording, &Rules::default()).findings;
    let [finding] = found.as_slice() else {
        panic!("one finding, not {found:?}");
    };
    let FindingDetails::Growth(details) = &finding.details else {
        panic!("{finding:?}");
    };
    (finding.reason, details.advice == [Advice::LookAtLibraries])
}

#[test]
fn what_no_object_holds_after_each_look_is_native() {
    assert_eq!(on_host(12, 0), (Some(Reason::Native), true));
    assert_eq!(on_host(4, 0), (Some(Reason::TooFewRuns), true));
    assert_eq!(on_host(12, 8), (Some(Reason::MayBeMeant), false));
}

/// Grows too raggedly to be beyond doubt by its levels alone.
const RAGGED: [i64; 12] = [40, 5, 80, 20, 80, 80, 5, 5, 10, 0, 20, 80];

/// The same bytes in each run, with a number of allocations that stay.
fn counted(kept_mib: &[i64], kept_blocks: impl Fn(usize) -> i64) -> Vec<Play> {
    let runs = kept_mib.iter().enumerate();
    runs.map(|(idx, kept)| run(*kept).blocks(kept_blocks(idx)))
        .collect()
}

#[track_caller]
fn check_counted(plays: &[Play], state: GrowthVerdict, reason: Reason) {
    let found = findings(&[("cache.update(batch)", plays)]);
    let [finding] = found.as_slice() else {
        panic!("one finding, not {found:?}");
    };
    assert_eq!((finding.state, finding.reason), (Some(state), Some(reason)),);
}

#[test]
fn live_allocations_that_rise_make_a_leak_of_growth() {
    let plays: Vec<Play> = RAGGED.into_iter().map(run).collect();
    check_counted(&plays, GrowthVerdict::Suspected, Reason::HolderUnknown);
    let plays = counted(&RAGGED, |idx| i64::from(idx != 9));
    let grew = Reason::AllocationsGrew {
        n_grown: 11,
        n_runs: 12,
    };
    check_counted(&plays, GrowthVerdict::Leak, grew);
}

#[test]
fn live_allocations_that_stopped_growing_raise_nothing() {
    let plays = counted(&RAGGED, |idx| i64::from(idx < 9));
    check_counted(&plays, GrowthVerdict::Suspected, Reason::HolderUnknown);
    let plays = counted(&RAGGED, |idx| if idx % 2 == 0 { 1 } else { -1 });
    check_counted(&plays, GrowthVerdict::Suspected, Reason::HolderUnknown);
}

#[test]
fn what_is_replaced_by_a_larger_one_is_growth_and_no_leak() {
    let plays = counted(&[420; 12], |_| 0);
    let stayed = Reason::AllocationsStayed { n_runs: 12 };
    check_counted(&plays, GrowthVerdict::Suspected, stayed);
}

#[test]
fn counters_that_confirm_a_leak_are_only_evidence() {
    let bare = findings(&[("f()", &counted(&[420; 12], |_| 3))]);
    let known = findings(&[("f()", &vec![run(420); 12])]);
    assert_eq!(bare[0].details, known[0].details);
    let evidence = bare[0].evidence.last().expect("some");
    assert_eq!(
        (evidence.statistic, evidence.value, evidence.holds),
        (Statistic::LiveAllocations, 12.0, true)
    );
}

#[test]
fn one_allocator_that_counts_no_blocks_leaves_their_number_open() {
    let (mut recording, _) = session(&[("f()", &counted(&[420; 12], |_| 0))]);
    let mut frame = recording.runs()[11].clone();
    frame.levels[0].after.as_mut().expect("it ended").allocators[0].n_blocks = None;
    recording.apply(Frame::Run(frame)).expect("the same run");
    let found = analyze(&recording, &Rules::default()).findings;
    assert_eq!(found[0].state, Some(GrowthVerdict::Leak));
}

#[test]
fn what_is_kept_by_accident_is_a_leak_before_the_series_is_long() {
    let held = |n: usize| vec![run(420).held_by("losses", "list").with_graph(); n];
    check(
        &[("losses.append(f())", &held(3))],
        &[
            "growing: losses.append(f()) · 420 MiB a run in 3 of 3, 1260 in all · full in 33 · 2 missing · losses",
        ],
    );
    check(
        &[("losses.append(f())", &held(5))],
        &["leak: losses.append(f()) · 420 MiB a run in 5 of 5, 2100 in all · full in 31 · losses"],
    );
    let state_of = |plays: &[Play]| findings(&[("f()", plays)])[0].state;
    // What nothing says is an accident may be what the user wants.
    let meant = vec![run(420).held_by("results", "list"); 5];
    assert_eq!(state_of(&meant), Some(GrowthVerdict::NotEnoughData));
    // Growth that a name holds in one run only is as doubtful as before.
    let mut plays = vec![run(420); 4];
    plays.extend(held(1));
    assert_eq!(state_of(&plays), Some(GrowthVerdict::NotEnoughData));
}

#[test]
fn a_name_that_does_not_collect_is_no_leak() {
    let held = |type_name| vec![run(420).held_by("kept", type_name); 12];
    check_counted(
        &held("list"),
        GrowthVerdict::Leak,
        Reason::FullSoon { n_runs: 24 },
    );
    check_counted(&held("Tensor"), GrowthVerdict::Stable, Reason::OneTensor);
    let replaced = findings(&[("kept = f(x)", &held("Tensor"))]);
    assert_eq!(replaced[0].kind, FindingKind::Bounded);
    assert_eq!(replaced[0].fix, None);
    // What a name has now says nothing of what it had then.
    let mut plays = held("list");
    plays.push(run(0).held_by("kept", "Tensor"));
    let found = findings(&[("f()", &plays[..12]), ("g()", &plays[12..])]);
    assert_eq!(found[0].state, Some(GrowthVerdict::Leak));
}

#[test]
fn what_has_a_bound_fills_up() {
    let check = |each_mib: i64, most: u64, severity: Severity| {
        let plays = vec![run(each_mib).held_by("recent", "deque").filling(12, most); 12];
        let found = findings(&[("recent.append(x)", &plays)]);
        assert_eq!(found[0].kind, FindingKind::Bounded);
        assert_eq!(found[0].severity, severity);
        let when_full = Bytes::mib(u64::try_from(each_mib).expect("more") * most);
        let fills = Reason::Fills {
            n: 12,
            most,
            when_full,
        };
        assert_eq!((found[0].reason, &found[0].fix), (Some(fills), &None));
    };
    check(8, 50, Severity::Info);
    // Full, it does not fit.
    check(420, 50, Severity::Warning);
}

#[test]
fn what_cells_trim_is_no_leak() {
    let trimmed = |text: &'static str| {
        let plays = vec![run(420).held_by("kept", "list"); 12];
        findings(&[(text, &plays)]).remove(0)
    };
    let fills = trimmed("kept.append(f())\nkept = kept[-16:]");
    assert_eq!(fills.kind, FindingKind::Bounded);
    assert!(matches!(fills.reason, Some(Reason::Fills { most: 16, .. })));
    let pops = trimmed("kept.append(f())\nif len(kept) > size:\n    kept.pop(0)");
    let expected = (FindingKind::Growing, Severity::Info, Some(Reason::Trimmed));
    assert_eq!((pops.kind, pops.severity, pops.reason), expected);
    assert_eq!(pops.fix, None);
}

#[test]
fn what_may_be_meant_is_a_leak_only_if_it_fills_the_device() {
    let check = |play: Play, kind: FindingKind, severity: Severity| {
        let found = findings(&[("kept.append(f())", &vec![play; 12])]);
        assert_eq!((found[0].kind, found[0].severity), (kind, severity));
    };
    let held = |each_mib| run(each_mib).held_by("kept", "list");
    check(held(420), FindingKind::Leak, Severity::Critical);
    check(held(40), FindingKind::Growing, Severity::Warning);
    check(held(4), FindingKind::Growing, Severity::Info);
    check(held(40).with_graph(), FindingKind::Leak, Severity::Critical);
}

#[test]
fn holders_are_those_of_the_latest_scan() {
    let plays = vec![run(64).held_by("cache", "dict"); 12];
    let found = findings(&[("f()", &plays)]);
    let holder = &found[0].holders[0];
    assert_eq!(holder.name, "cache");
    assert_eq!(holder.grown, Some(Bytes::mib(12 * 64).since(Bytes::ZERO)));
    assert_eq!(holder.path, "cache[0]");
    let plays = vec![run(64).held_by("losses", "list").with_graph(); 12];
    let found = findings(&[("losses.append(loss)", &plays)]);
    let fix = found[0].fix.as_ref().expect("the cell shows the line");
    assert_eq!(fix.before.as_deref(), Some("losses.append(loss)"));
}

#[test]
fn what_a_cell_makes_anew_hides_no_other_name() {
    let cell = "outs = []\nmodels.append(build())\nfor it in models:\n    outs.append(it(x))";
    let looks = (0..12).map(|run| {
        let of_name = |name: &str, each: i64| {
            let all = each * (i64::from(run) + 1);
            held(RunIdx(run), name, "list", each, all).holders
        };
        let (mut holders, models) = (of_name("outs", 60), of_name("models", 40));
        holders.n_bytes += models.n_bytes;
        holders.roots.extend(models.roots);
        holders.changed.extend(models.changed);
        (run, holders)
    });
    let cells: [(&str, &[Play]); 1] = [(cell, &vec![run(100); 12])];
    let found = found(&cells, looks, FindingKind::Growing);
    let named: Vec<&str> = found.iter().map(|it| &*it.holders[0].name).collect();
    assert_eq!(named, ["models"]);
}
