//! Verdicts on whole sessions, as a person would meet them.

use super::*;
use crate::testing::{Play, run, session};

fn findings(cells: &[(&str, &[Play])]) -> Vec<Finding> {
    let (recording, _) = session(cells);
    analyze(&recording, &Rules::default()).findings
}

/// Each finding as `kind: title | detail`.
#[track_caller]
fn check(cells: &[(&str, &[Play])], expected: &[&str]) {
    let shown: Vec<String> = findings(cells)
        .iter()
        .map(|finding| {
            let kind = finding.kind.name();
            format!("{kind}: {} | {}", finding.title, finding.detail)
        })
        .collect();
    assert_eq!(shown, expected);
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
            (cell.label.as_str(), finding.state.name())
        })
        .collect();
    assert_eq!(shown, expected);
}

#[test]
fn a_cell_that_keeps_the_same_in_every_run_leaks() {
    let plays = vec![run(420).peak(900); 12];
    check(
        &[("losses.append(model(batch).sum())", &plays)],
        &[
            "leak: losses.append(model(batch).sum()) keeps 420 MiB more after every run \
           | grew in all 12 runs, 420 MiB each · 9.98 GiB left: out of memory in about 24 runs",
        ],
    );
}

#[test]
fn three_runs_say_what_grew_and_how_many_more_would_decide() {
    check(
        &[("losses.append(1)", &[run(420), run(420), run(420)])],
        &[
            "growing: losses.append(1) kept 420 MiB more in each of 3 runs \
           | grew in all 3 runs, 420 MiB each · 13.7 GiB left: out of memory in about 33 runs \
           · 6 more runs tell a leak from a warm-up",
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
        &[
            "settled: cache = warm(model) kept 720 MiB in its first 2 runs, nothing since \
           | warm-up over 12 runs",
        ],
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
            "leak: for batch in gpumem.steps(data): train(batch) keeps 4 MiB more after every step \
           | grew in all 30 steps, 4 MiB each · 14.8 GiB left: out of memory in about 3786 steps",
        ],
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
