//! Verdicts on whole sessions, as a person would meet them.

use proptest::prelude::*;

use super::context::Context;
use super::device_rows::{DeviceRows, RowsByDevice};
use super::names::NameHistory;
use super::paths::Paths;
use super::*;
use crate::testing::{Play, facts, held, run, session};
use gpumem_model::recording::{Device, DeviceKind, DriverLevels, Frame, Run, RunIdx, RunKind};
use gpumem_model::units::{ByteDelta, Bytes};

fn findings(cells: &[(&str, &[Play])]) -> Vec<Finding> {
    let (recording, _) = session(cells);
    analyze(&recording, &Rules::default()).findings
}

#[track_caller]
fn check(cells: &[(&str, &[Play])], expected: &[&str]) {
    let found: Vec<String> = findings(cells).iter().map(facts).collect();
    assert_eq!(found, expected);
}

/// The cells one after another, `n` times over.
fn rounds(cells: &[(&'static str, Play)], n: usize) -> Vec<(&'static str, Vec<Play>)> {
    let round = || {
        cells
            .iter()
            .map(|(source, play)| (*source, vec![play.clone()]))
    };
    (0..n).flat_map(|_| round()).collect()
}

#[track_caller]
fn check_rounds(cells: &[(&'static str, Play)], n: usize, expected: &[(&str, &str)]) {
    let rounds = rounds(cells, n);
    let cells: Vec<(&str, &[Play])> = rounds
        .iter()
        .map(|(source, plays)| (*source, plays.as_slice()))
        .collect();
    let found = findings(&cells);
    let shown: Vec<(&str, &str)> = found
        .iter()
        .map(|finding| {
            let cell = finding.cell.as_ref().expect("of a cell");
            (
                cell.label.as_str(),
                finding.state.map_or("", GrowthVerdict::name),
            )
        })
        .collect();
    assert_eq!(shown, expected);
}

#[test]
fn what_others_keep_between_its_runs_is_not_its_rate() {
    let mut cells = Vec::new();
    for (round, others) in [448, 0, 1536, 0, 0, 0, 96, 96, 0, 0]
        .into_iter()
        .enumerate()
    {
        let label = if round < 5 { "x = f()" } else { "y = f()" };
        cells.push(("losses.append(f())", vec![run(120)]));
        cells.push((label, vec![run(others)]));
    }
    let cells: Vec<(&str, &[Play])> = cells.iter().map(|(text, it)| (*text, &**it)).collect();
    let found = findings(&cells);
    let growth = found[0].growth().expect("of growth");
    assert_eq!(growth.bytes_per_run, ByteDelta::new(120 << 20));
}

#[test]
fn a_cell_that_keeps_the_same_in_every_run_leaks() {
    let plays = vec![run(420).peak(900); 12];
    check(
        &[("losses.append(model(batch).sum())", &plays)],
        &[
            "leak: losses.append(model(batch).sum()) · 420 MiB a run in 12 of 12, 5040 in all · full in 24",
        ],
    );
}

#[test]
fn three_runs_say_what_grew_and_how_many_more_would_decide() {
    check(
        &[("losses.append(1)", &[run(420), run(420), run(420)])],
        &[
            "growing: losses.append(1) · 420 MiB a run in 3 of 3, 1260 in all · full in 33 · 6 missing",
        ],
    );
}

#[test]
fn one_run_says_nothing() {
    check(&[("model = load()", &[run(1200)])], &[]);
}

#[test]
fn a_run_that_gives_all_back_is_healthy() {
    check(&[("validate(model)", &vec![run(0).peak(3000); 20])], &[]);
}

#[test]
fn a_warm_up_has_settled() {
    let mut plays = vec![run(600), run(120)];
    plays.extend(vec![run(0).peak(40); 10]);
    check(
        &[("cache = warm(model)", &plays)],
        &["settled: cache = warm(model) · 0 MiB a run in 2 of 12, 720 in all · settled after 2"],
    );
}

#[test]
fn neighbours_are_not_blamed_for_a_leak() {
    check_rounds(
        &[
            ("leak()", run(10)),
            ("healthy()", run(0)),
            ("other()", run(0)),
        ],
        12,
        &[("leak()", "leak")],
    );
}

#[test]
fn what_another_cell_frees_is_no_leak() {
    check_rounds(&[("x = load()", run(500)), ("del x", run(-500))], 12, &[]);
}

#[test]
fn steps_inside_a_run_are_judged_like_runs() {
    check(
        &[(
            "for batch in gpumem.steps(data): train(batch)",
            &[run(120).steps(30)],
        )],
        &[
            "leak: for batch in gpumem.steps(data): train(batch) · 4 MiB a step in 30 of 30, 120 in all · full in 3786",
        ],
    );
}

#[test]
fn what_a_loop_keeps_in_its_first_step_counts() {
    let loop_ = "for x in gpumem.steps(xs): f(x)";
    check(
        &[(
            loop_,
            &[run(700).steps_keeping(&[500, 200, 0, 0, 0, 0, 0, 0, 0])],
        )],
        &[
            "settled: for x in gpumem.steps(xs): f(x) · 0 MiB a step in 2 of 9, 700 in all · settled after 2",
        ],
    );
    // Three steps, and each of them is known to have kept something.
    check(
        &[(loop_, &[run(30).steps(3)])],
        &[
            "growing: for x in gpumem.steps(xs): f(x) · 10 MiB a step in 3 of 3, 30 in all · full in 1523 · 6 missing",
        ],
    );
    // What its variables held is gone with the run.
    check(
        &[(
            loop_,
            &[run(0).steps_keeping(&[64, 0, 0, 0, 0, 0, 0, 0, 0])],
        )],
        &[],
    );
}

#[test]
fn only_the_latest_loop_counts() {
    check(&[("loop()", &[run(120).steps(30), run(0).steps(30)])], &[]);
}

#[test]
fn what_is_not_known_is_not_judged() {
    check(&[("f()", &vec![run(5).unknown(); 12])], &[]);
}

#[test]
fn a_leak_that_was_given_back_is_withdrawn() {
    let plays = vec![run(420); 12];
    check(
        &[
            ("losses.append(1)", &plays),
            ("losses.clear()", &[run(-12 * 420)]),
        ],
        &["settled: losses.append(1) · given_back · 420 MiB a run in 12 of 12, 5040 in all"],
    );
}

#[test]
fn a_series_begins_anew_when_what_it_kept_was_freed() {
    let grows = ("losses.append(f())", &vec![run(420); 9][..]);
    let setup = ("losses = []", &[run(-9 * 420)][..]);
    let of_second = "leak: losses.append(f()) · 420 MiB a run in 9 of 9, 3780 in all · full in 27";
    check(&[grows, setup, grows], &[of_second]);
    // Another cell frees what was there before.
    let half = ("del model", &[run(-4 * 420)][..]);
    let of_both = "leak: losses.append(f()) · 321 MiB a run in 18 of 18, 5880 in all · full in 17";
    check(
        &[("model = f()", &[run(9 * 420)]), grows, half, grows],
        &[of_both],
    );
}

#[test]
fn growth_spread_over_cells_that_run_again_is_found() {
    let check_rounds = |n_cells: usize, n_rounds: usize, expected: &[&str]| {
        let sources: Vec<String> = (0..n_cells).map(|n| format!("out{n} = f()")).collect();
        let n_runs = n_cells * n_rounds;
        // Two of three runs keep something, those of one cell not in each round.
        let kept = |n: usize| if n.is_multiple_of(3) { 0 } else { 50 };
        let plays: Vec<[Play; 1]> = (0..n_runs).map(|n| [run(kept(n))]).collect();
        let sources = sources.iter().cycle().map(String::as_str);
        let cells = sources.zip(plays.iter().map(|play| &play[..]));
        check(&cells.collect::<Vec<_>>(), expected);
    };
    check_rounds(20, 4, &["growing: device · 33 MiB a run, 1950 in all"]);
    // A notebook that is being written fills the device cell by cell.
    check_rounds(100, 1, &[]);
}

/// Levels in MB after each of the seed's calls, as it tells of them.
#[track_caller]
fn check_course(kept_mb: impl IntoIterator<Item = f64>, expected: GrowthVerdict) {
    let mut level = 1e9;
    let levels: Vec<Bytes> = kept_mb
        .into_iter()
        .map(|kept| {
            level += kept * 1e6;
            Bytes::new(level as u64)
        })
        .collect();
    let rules = Rules::default();
    assert_eq!(
        classify_growth(&levels, rules.min_growth, &rules).state,
        expected
    );
}

#[test]
fn courses_that_single_calls_mislead_about_are_judged_right() {
    // Forward and backward take and give by turns.
    check_course(
        (0..200).map(|n| if n % 2 == 0 { 300.0 } else { -300.0 }),
        GrowthVerdict::Stable,
    );
    // Thirty warm-up calls, then flat.
    check_course(
        (0..200).map(|n| if n < 30 { 10.0 } else { 0.0 }),
        GrowthVerdict::Stable,
    );
    // Half a megabyte in each of 199 calls.
    check_course([0.5; 199], GrowthVerdict::Leak);
    // Twenty megabytes in every twentieth call.
    check_course(
        (0..200).map(|n| if n % 20 == 19 { 20.0 } else { 0.0 }),
        GrowthVerdict::Leak,
    );
    // A sawtooth that never gives all back.
    check_course(
        (0..200).map(|n| if n % 10 == 9 { -85.0 } else { 10.0 }),
        GrowthVerdict::Leak,
    );
    // Five model loads.
    check_course([2000.0; 5], GrowthVerdict::NotEnoughData);
}

proptest! {
    #[test]
    fn moving_or_scaling_a_series_changes_nothing_but_the_bytes(
        kept in prop::collection::vec(-200_i32..400, 3..60),
        offset_mib in 0_u64..10_000,
        scale in 1_u64..8,
    ) {
        let mut level = 20_000_i64;
        let levels: Vec<u64> = kept.iter().map(|kept| {
            level = (level + i64::from(*kept)).max(0);
            level.unsigned_abs()
        }).collect();
        let rules = Rules::default();
        let judge = |levels: Vec<Bytes>, least: Bytes| {
            let growth = classify_growth(&levels, least, &rules);
            (growth.state, growth.shape, growth.bytes_per_run)
        };
        let least = Bytes::mib(1);
        let plain = judge(levels.iter().map(|n| Bytes::mib(*n)).collect(), least);
        let moved = judge(levels.iter().map(|n| Bytes::mib(n + offset_mib)).collect(), least);
        prop_assert_eq!(plain, moved);
        let least = Bytes::mib(scale);
        let scaled = judge(levels.iter().map(|n| Bytes::mib(n * scale)).collect(), least);
        prop_assert_eq!((plain.0, plain.1), (scaled.0, scaled.1));
        let rate = plain.2.as_f64() * scale as f64;
        prop_assert!((scaled.2.as_f64() - rate).abs() <= scale as f64);
    }

    /// A recording that grows, under thresholds that move, as an incremental_analyzer sees it who has
    /// judged it before.
    #[test]
    fn an_analyst_who_judges_again_comes_to_the_same(
        kept in prop::collection::vec(prop::collection::vec(-40_i64..60, 1..24), 1..4),
        thresholds in prop::collection::vec((0_u64..64, 2_usize..20, 0_u8..40), 1..5),
        n_known in 0_usize..40,
    ) {
        const SOURCES: [&str; 3] = ["a()", "b()", "c()"];
        let plays: Vec<Vec<Play>> = kept
            .iter()
            .map(|kept| kept.iter().map(|kept| run(*kept).blocks(*kept)).collect())
            .collect();
        let cells: Vec<(&str, &[Play])> =
            SOURCES.into_iter().zip(plays.iter().map(Vec::as_slice)).collect();
        let (whole, _) = session(&cells);
        let mut begun = Recording::new(whole.header().clone());
        let is_known = |frame: &Frame| !matches!(frame, Frame::Run(run) if run.idx.get() >= n_known);
        for frame in whole.frames().filter(is_known) {
            // What belongs to runs that are not known yet does not fit.
            let _ = begun.apply(frame);
        }
        let mut incremental_analyzer = IncrementalAnalyzer::default();
        for recording in [&begun, &whole] {
            let mut analysis = incremental_analyzer.analyze(recording, &Rules::default());
            for (min_growth_mib, min_runs, tenths) in &thresholds {
                let rules = Rules {
                    min_growth: Bytes::mib(*min_growth_mib),
                    min_runs: *min_runs,
                    block_t: f64::from(*tenths) / 10.0,
                    ..Rules::default()
                };
                incremental_analyzer.judge(&mut analysis, recording, &rules);
                prop_assert_eq!(&analysis, &analyze(recording, &rules));
            }
        }
        let rules = Rules::default();
        let mut incremental_analyzer = IncrementalAnalyzer::default();
        for recording in [&begun, &whole, &whole] {
            let compared = incremental_analyzer.compare(recording, &begun, &rules);
            prop_assert_eq!(compared, compare(recording, &begun, &rules));
        }
    }

    #[test]
    fn a_leak_in_reverse_is_none(rate in 1_u64..100, n in 9_u64..100) {
        let levels: Vec<Bytes> = (0..n).rev().map(|run| Bytes::mib(rate * run)).collect();
        let growth = classify_growth(&levels, Bytes::mib(1), &Rules::default());
        prop_assert!(matches!(growth.state, GrowthVerdict::Stable));
    }

    #[test]
    fn any_levels_have_an_answer(levels in prop::collection::vec(any::<u64>(), 0..300)) {
        let levels: Vec<Bytes> = levels.into_iter().map(Bytes::new).collect();
        let growth = classify_growth(&levels, Bytes::mib(1), &Rules::default());
        prop_assert!(growth.evidence.iter().all(|figure| !figure.value.is_nan()));
    }
}

#[test]
fn reserved_that_grows_over_a_flat_allocated_is_its_own_shape() {
    let allocated = vec![Bytes::mib(500); 20];
    let reserved: Vec<Bytes> = (0..20).map(|run| Bytes::mib(500 + 20 * run)).collect();
    let growth = classify_allocator(&allocated, &reserved, Bytes::mib(1), &Rules::default());
    assert_eq!(
        (growth.state, growth.shape),
        (GrowthVerdict::Suspected, GrowthShape::ReservedOnly)
    );
}

fn summaries(recording: &Recording, rows: &[RunRow]) -> Vec<DeviceSummary> {
    let of_devices = DeviceRows::all(recording, rows);
    levels::summaries(recording, RowsByDevice::new(rows, &of_devices))
}

/// What is found, beside growth, after each row of the runs was changed by hand.
fn found_in_rows(plays: &[Play], change: impl Fn(usize, &mut RunRow)) -> Option<Finding> {
    use FindingKind::{Doubling, Fragmentation, Gap, Inefficient, Pressure, Repeated, Spike};
    let (recording, _) = session(&[("cell()", plays)]);
    let mut rows = levels::rows(&recording);
    for (idx, row) in rows.iter_mut().enumerate() {
        change(idx, row);
    }
    let mut analysis = Analysis {
        devices: summaries(&recording, &rows),
        rows,
        ..Analysis::default()
    };
    IncrementalAnalyzer::default().judge(&mut analysis, &recording, &Rules::default());
    let kinds = [
        Doubling,
        Spike,
        Pressure,
        Gap,
        Repeated,
        Inefficient,
        Fragmentation,
    ];
    let mut found = analysis.findings.into_iter();
    found.find(|finding| kinds.contains(&finding.kind))
}

#[track_caller]
fn check_rows(
    plays: &[Play],
    change: impl Fn(usize, &mut RunRow),
    expected: Option<&FindingDetails>,
) {
    let found = found_in_rows(plays, change).map(|finding| finding.details);
    assert_eq!(found.as_ref(), expected);
}

fn above(bytes: Option<Bytes>, n_mib: u64) -> Option<Bytes> {
    bytes.map(|bytes| bytes + Bytes::mib(n_mib))
}

#[test]
fn one_run_far_above_the_others_is_a_spike() {
    let rise = |usual: u64, spike: u64| {
        move |idx: usize, row: &mut RunRow| {
            let n_mib = if idx == 3 { spike } else { usual };
            row.peak = above(row.before, n_mib).map(Peak::Exact);
        }
    };
    check_rows(
        &vec![run(0); 8],
        rise(500, 4000),
        Some(&FindingDetails::Spike {
            excess: Bytes::mib(4000),
            usual: Bytes::mib(500),
        }),
    );
    check_rows(&vec![run(0); 8], rise(500, 900), None);
    check_rows(&vec![run(0); 4], rise(500, 4000), None);
}

#[test]
fn what_the_other_runs_may_have_needed_as_well_is_no_spike() {
    // The allocator's peak rose in the first run and was only reached again in the others.
    let reached = |idx: usize, row: &mut RunRow| {
        let (low, high) = (row.before, above(row.before, 4000));
        let bounds = low.zip(high);
        row.peak = match idx {
            0 => high.map(Peak::Exact),
            _ => bounds.map(|(low, high)| Peak::Between { low, high }),
        };
    };
    check_rows(&vec![run(0); 8], reached, None);
    // Nothing bounds what was only seen now and then.
    let seen = |idx: usize, row: &mut RunRow| {
        let n_mib = if idx == 3 { 4000 } else { 0 };
        row.peak = above(row.before, n_mib).map(Peak::AtLeast);
    };
    check_rows(&vec![run(0); 8], seen, None);
}

#[test]
fn what_a_loop_gave_back_at_its_end_is_nothing() {
    let steps = [40; 24];
    let kept = |mib: i64| {
        let found = findings(&[("generate()", &[run(mib).steps_keeping(&steps)])]);
        found.first().map(|finding| finding.kind)
    };
    assert_eq!(kept(960), Some(FindingKind::Leak));
    assert_eq!(kept(0), None);
    // A tenth of what the steps kept does not make the rest of it true.
    assert_eq!(kept(96), None);
}

#[test]
fn growth_that_never_fills_the_device_is_nothing() {
    let (mut recording, _) = session(&[("log.append(x)", &vec![run(1); 12])]);
    let reported =
        |recording: &Recording| !analyze(recording, &Rules::default()).findings.is_empty();
    assert!(reported(&recording));
    for mut run in recording.runs().to_vec() {
        let levels = &mut run.levels[0];
        levels.before.driver.capacity = Bytes::gib(1 << 20).into();
        let after = levels.after.as_mut().expect("it ended");
        after.driver.capacity = Bytes::gib(1 << 20).into();
        recording.apply(Frame::Run(run)).expect("it is known");
    }
    assert!(!reported(&recording));
}

#[test]
fn without_the_driver_the_last_capacity_counts() {
    let (mut recording, _) = session(&[("x = f()", &[run(1), run(1)])]);
    let summary = |recording: &Recording| analyze(recording, &Rules::default()).devices.remove(0);
    let known = summary(&recording);
    assert!(known.capacity.is_some() && known.device_used.is_some());
    let mut last = recording.runs().last().expect("there are two").clone();
    last.levels[0].before.driver = DriverLevels::default();
    last.levels[0].after.as_mut().expect("it ended").driver = DriverLevels::default();
    recording.apply(Frame::Run(last)).expect("it is known");
    let now = summary(&recording);
    assert_eq!((now.capacity, now.device_used), (known.capacity, None));
}

#[test]
fn what_one_cell_makes_and_another_frees_is_no_leak() {
    let round = [("model = None", run(-600)), ("model = build()", run(600))];
    let mut cells = vec![("model = build()", run(600))];
    for _ in 0..12 {
        cells.extend(round.clone());
    }
    check_rounds(&cells, 1, &[]);
}

#[test]
fn growth_has_the_rate_of_the_device() {
    // Of 24 that one cell keeps the other frees 16.
    let found = rounds(&[("a()", run(24)), ("b()", run(-16))], 12);
    let cells: Vec<(&str, &[Play])> = found
        .iter()
        .map(|(text, plays)| (*text, &**plays))
        .collect();
    let rates: Vec<Option<i64>> = findings(&cells)
        .iter()
        .map(|finding| Some(finding.growth()?.bytes_per_run.get() >> 20))
        .collect();
    assert_eq!(rates, [Some(8)]);
}

#[test]
fn a_rerun_that_holds_two_copies_says_so() {
    let plays = [vec![run(2000)], vec![run(0); 3]].concat();
    let rise = |first_mib: u64, later_mib: u64| {
        move |idx: usize, row: &mut RunRow| {
            let n_mib = if idx == 0 { first_mib } else { later_mib };
            row.peak = above(row.before, n_mib).map(Peak::Exact);
        }
    };
    let copies = |rose_mib: u64| {
        FindingDetails::Doubling(DoublingDetails {
            old: Bytes::mib(2000),
            new: Bytes::mib(2000),
            rose: Bytes::mib(rose_mib),
            n_reruns: 3,
        })
    };
    check_rows(&plays, rise(2000, 2000), Some(&copies(2000)));
    // Building takes as much again for a moment, each time.
    check_rows(&plays, rise(3500, 3500), Some(&copies(3500)));
    check_rows(&plays, rise(2000, 300), None);
    // What the first run made is used: it is not made again.
    check_rows(&plays, rise(5000, 3000), None);
    // Run after run adds a copy: that is growth.
    check_rows(&vec![run(2000); 3], rise(2000, 2000), None);
}

#[test]
fn a_new_copy_of_another_size_is_reported() {
    let plays = [run(2000), run(500)];
    let rise = |idx: usize, row: &mut RunRow| {
        row.peak = above(row.before, if idx == 0 { 2000 } else { 2500 }).map(Peak::Exact);
    };
    let copies = FindingDetails::Doubling(DoublingDetails {
        old: Bytes::mib(2000),
        new: Bytes::mib(2500),
        rose: Bytes::mib(2500),
        n_reruns: 1,
    });
    check_rows(&plays, rise, Some(&copies));
}

#[test]
fn a_doubling_names_the_old_copy_and_the_fix() {
    let cell = "model = Model(\n    big=True,\n)";
    let built = run(2000).held_by("model", "Model").traced();
    let plays = [built, run(0).peak(2000).traced()];
    let found = findings(&[(cell, &plays)]);
    let found = found.iter().find(|it| it.kind == FindingKind::Doubling);
    let found = found.expect("two copies");
    assert_eq!(found.holders[0].name, "model");
    let fix = found.fix.as_ref().expect("the cell binds the name");
    assert_eq!(fix.before.as_deref(), Some(cell));
    assert_eq!(fix.after, format!("model = None\n{cell}"));
    let details = FindingDetails::Doubling(DoublingDetails {
        old: Bytes::mib(2000),
        new: Bytes::mib(2000),
        rose: Bytes::mib(2000),
        n_reruns: 1,
    });
    assert_eq!(found.details, details);
}

#[test]
fn flushes_of_the_cache_are_pressure() {
    let retries = |n: u64| move |_: usize, row: &mut RunRow| row.n_retries = Some(n);
    check_rows(
        &[run(0), run(0)],
        retries(2),
        Some(&FindingDetails::Pressure {
            n_flushes: 4,
            usable: None,
        }),
    );
    check_rows(&[run(0), run(0)], retries(0), None);
    check_rows(
        &[run(0), run(0)],
        retries(u64::MAX),
        Some(&FindingDetails::Pressure {
            n_flushes: u64::MAX,
            usable: None,
        }),
    );
}

#[test]
fn reservations_that_come_and_go_are_reported() {
    let reserve = |before: u64, after: u64, peak: u64| {
        move |_: usize, row: &mut RunRow| {
            row.reserved = (Some(Bytes::mib(before)), Some(Bytes::mib(after)));
            row.process_used = row.reserved;
            row.peak = Some(Peak::Exact(Bytes::mib(peak)));
        }
    };
    check_rows(
        &vec![run(0); 6],
        reserve(100, 100, 900),
        Some(&FindingDetails::Repeated { n_all: 6 }),
    );
    check_rows(
        &vec![run(0); 6],
        reserve(100, 1100, 200),
        Some(&FindingDetails::Inefficient { used_share: 0.2 }),
    );
    check_rows(&vec![run(0); 6], reserve(100, 100, 90), None);
}

#[test]
fn a_cache_of_what_was_in_use_once_is_no_fragmentation() {
    // Runs collect 20 MiB each, and the last of them lets go of it all: the allocator keeps it.
    let sawtooth = [vec![run(20); 14], vec![run(-14 * 20)]].concat();
    let reserve = |_: usize, row: &mut RunRow| {
        row.reserved = (row.before, row.before.max(row.after));
    };
    check_rows(&sawtooth, reserve, None);
    let grow = |idx: usize, row: &mut RunRow| {
        let [before, after] = [idx, idx + 1].map(|n| Bytes::mib(500 + 20 * n as u64));
        row.reserved = (Some(before), Some(after));
    };
    let found = found_in_rows(&vec![run(0); 15], grow);
    let found = found.as_ref().map(facts);
    let expected = "fragmentation: cell() · 20 MiB a run, 280 in all";
    assert_eq!(found.as_deref(), Some(expected));
}

#[test]
fn growth_beside_the_allocator_is_a_gap() {
    let hold = |each_run: u64| {
        move |idx: usize, row: &mut RunRow| {
            row.reserved = (Some(Bytes::mib(500)), Some(Bytes::mib(500)));
            let beside = 300 + each_run * idx as u64;
            row.process_used.1 = Some(Bytes::mib(500 + beside));
        }
    };
    let found = found_in_rows(&vec![run(0); 12], hold(40));
    let found = found.as_ref().map(facts);
    let expected = "growing_gap: device · 40 MiB a run, 440 in all";
    assert_eq!(found.as_deref(), Some(expected));
    check_rows(&vec![run(0); 12], hold(0), None);
}

/// A run of `cell` with one block in it, which keeps what the cell keeps.
fn with_blocks(recording: &Recording, name: &str) -> Recording {
    let mut nested = recording.clone();
    for run in recording.runs() {
        let idx = RunIdx(u32::try_from(nested.runs().len()).expect("few runs"));
        let block = Run {
            idx,
            parent: Some(run.idx),
            kind: RunKind::Block,
            label: Some(name.to_owned()),
            ..run.clone()
        };
        nested
            .apply(Frame::Run(block))
            .expect("a block in a run before it");
    }
    nested
}

#[test]
fn growth_in_a_block_is_reported_only_under_its_path() {
    let plays = vec![run(420).peak(900); 12];
    let (recording, _) = session(&[("train()", &plays)]);
    let recording = with_blocks(&recording, "forward");
    let found = analyze(&recording, &Rules::default()).findings;
    let paths: Vec<&[String]> = found.iter().map(|finding| &*finding.path).collect();
    assert_eq!(paths, [&["forward".to_owned()]]);
    assert!(found.iter().all(|it| it.kind == FindingKind::Leak));
}

#[test]
fn a_cell_that_begins_with_an_empty_list_collects_nothing() {
    let is_found = |of_block: bool| {
        let script = "losses = []\nfor x in xs:\n    losses.append(f(x))";
        let play = run(100).held_by("losses", "list").with_graph();
        let (mut recording, _) = session(&[(script, &vec![play; 12])]);
        for run in recording.runs().to_vec().into_iter().filter(|_| of_block) {
            let block = Run {
                kind: RunKind::Block,
                ..run
            };
            recording.apply(Frame::Run(block)).expect("it is known");
        }
        let found = analyze(&recording, &Rules::default()).findings;
        found.iter().any(|it| it.kind == FindingKind::Leak)
    };
    assert!(!is_found(false));
    // A script's text stands with each of its blocks, which run without what is above them.
    assert!(is_found(true));
}

#[test]
fn fragmentation_has_the_bytes_that_can_be_returned() {
    let (recording, _) = session(&[("cell()", &[run(0)])]);
    let rows = levels::rows(&recording);
    let mut devices = summaries(&recording, &rows);
    let check = |devices: &[DeviceSummary], expected: Option<FragmentationDetails>| {
        let of_devices = DeviceRows::all(&recording, &rows);
        let paths = Paths::new(&recording);
        let found = crate::findings::fragmentation::on_devices(Context {
            names: &NameHistory::default(),
            recording: &recording,
            rows: RowsByDevice::new(&rows, &of_devices),
            paths: &paths,
            devices,
            rules: &Rules::default(),
        });
        let details = found.into_iter().map(|finding| finding.details).next();
        assert_eq!(details, expected.map(FindingDetails::Fragmentation));
    };
    let device = &mut devices[0];
    device.allocated = Some(Bytes::mib(400));
    device.reserved = Some(Bytes::mib(1000));
    device.largest_free = Some(Bytes::mib(20));
    device.inactive_split = Some(Bytes::mib(450));
    check(
        &devices,
        Some(FragmentationDetails {
            inactive_split: Bytes::mib(450),
            reserved: Bytes::mib(1000),
            largest_free: Some(Bytes::mib(20)),
            reclaimable: Bytes::mib(150),
            mapped: None,
            device_kind: DeviceKind::Simulated,
        }),
    );
    devices[0].largest_free = Some(Bytes::mib(420));
    check(&devices, None);
    devices[0].largest_free = Some(Bytes::mib(20));
    devices[0].inactive_split = Some(Bytes::mib(100));
    check(&devices, None);
}

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
