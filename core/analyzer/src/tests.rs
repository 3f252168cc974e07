//! Verdicts on whole sessions, as a person would meet them.

mod courses;
mod names;
mod rows;

use super::*;
use crate::testing::{Play, facts, run, session};
use gpumem_model::recording::{Frame, Run, RunIdx, RunKind};
use gpumem_model::units::ByteDelta;

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
