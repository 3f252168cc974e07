//! The words, as a person reads them.

use insta::assert_snapshot;

use super::columns::n_columns;
use super::verdict::remedy_lines;
use super::*;
use gpumem_analyzer::testing::{Play, run, session};
use gpumem_analyzer::{Rules, analyze};
use gpumem_model::recording::Header;
use gpumem_wording::Remedy;

fn quickstart() -> Vec<(&'static str, Vec<Play>)> {
    vec![
        ("model = build()", vec![run(1200)]),
        (
            "losses.append(model(batch).sum())",
            vec![run(420).peak(900); 12],
        ),
        ("validate(model, loader)", vec![run(0).peak(1400); 3]),
        (
            "cache = warm(model)",
            [vec![run(600), run(120)], vec![run(0); 8]].concat(),
        ),
    ]
}

fn reported(cells: &[(&str, Vec<Play>)]) -> (Recording, Analysis) {
    let cells: Vec<(&str, &[Play])> = cells
        .iter()
        .map(|(source, plays)| (*source, plays.as_slice()))
        .collect();
    let (recording, _) = session(&cells);
    let analysis = analyze(&recording, &Rules::default());
    (recording, analysis)
}

#[test]
fn the_report_reads_from_the_worst_to_the_runs() {
    let (recording, analysis) = reported(&quickstart());
    assert_snapshot!(text(&recording, &analysis, 100));
}

#[test]
fn a_narrow_terminal_breaks_lines_between_words() {
    let (recording, analysis) = reported(&quickstart());
    let shown = text(&recording, &analysis, 60);
    assert!(shown.lines().all(|line| n_columns(line) <= 60), "{shown}");
}

#[test]
fn code_is_never_broken() {
    #[track_caller]
    fn check(line: &str, expected: &str) {
        assert_eq!(wrapped(line, 24), expected);
    }
    check(
        "  → `del it[next(iter(it)), None]` lets go",
        "  →\n    `del it[next(iter(it)), None]`\n    lets go",
    );
    check(
        "a cell's own ` is nothing, as `it` is",
        "a cell's own ` is\n  nothing, as `it` is",
    );
    let remedy = Remedy {
        before: Some("kept.append((model(batch), loss))".to_owned()),
        after: "kept.append((model(batch), loss.item()))".to_owned(),
        ..Remedy::default()
    };
    let reason = "frees what it keeps now; the cell will keep it again".into();
    assert_eq!(
        remedy_lines(&remedy, &reason, 16),
        [
            "    - kept.append((model(batch), loss))",
            "    + kept.append((model(batch), loss.item()))",
            "  Frees what it\n    keeps now;\n    the cell\n    will keep it\n    again.",
        ]
    );
}

#[test]
fn no_run_says_what_to_do() {
    let recording = Recording::new(Header::default());
    let analysis = analyze(&recording, &Rules::default());
    assert_snapshot!(text(&recording, &analysis, 80));
}

#[test]
fn nothing_found_says_what_was_checked() {
    let (recording, analysis) = reported(&[("validate()", vec![run(0); 3])]);
    assert_snapshot!(text(&recording, &analysis, 80));
}

#[track_caller]
fn check_line(cells: &[(&str, Vec<Play>)], expected: &str) {
    let (recording, analysis) = reported(cells);
    let last = recording.runs().last().expect("a run").idx;
    let news = news(&recording, &analysis, last, &mut ShownFindings::default());
    assert_eq!(line(&recording, &analysis, last, &news, 100), expected);
}

#[test]
fn the_line_says_what_was_kept_and_where_the_device_stands() {
    check_line(
        &[("x = f()", vec![run(420).seconds(2)])],
        "+420 MiB kept · peak at least 420 MiB · 1.5 GiB of 16 GiB in use · 14.5 GiB free · 2.0 s",
    );
    check_line(
        &[("x = f()", vec![run(420), run(-420)])],
        "gave back 420 MiB · peak at least 420 MiB · 1.09 GiB of 16 GiB in use · 14.9 GiB free · 1.0 s",
    );
    check_line(
        &[("x = f()", vec![run(0).status(Status::Interrupted)])],
        "kept nothing · peak at least 0 B · 1.09 GiB of 16 GiB in use · 14.9 GiB free · 1.0 s · interrupted",
    );
}

#[test]
fn what_a_cell_says_does_not_steer_the_terminal() {
    let (recording, analysis) = reported(&[("x\u{1b}[2J\u{202e} = f()", vec![run(420); 12])]);
    let last = recording.runs().last().expect("a run").idx;
    let news = news(&recording, &analysis, last, &mut ShownFindings::default());
    for words in [
        text(&recording, &analysis, 80),
        line(&recording, &analysis, last, &news, 100),
    ] {
        assert!(words.contains("x [2J = f()"), "{words}");
        assert!(!words.contains(['\u{1b}', '\u{202e}']), "{words}");
    }
}

#[test]
fn a_second_line_stands_only_where_there_is_something_to_say() {
    check_line(
        &[("losses.append(1)", vec![run(420); 2])],
        "+420 MiB kept · peak at least 840 MiB · 1.91 GiB of 16 GiB in use · 14.1 GiB free · 1.0 s\n\
         ○ losses.append(1) kept 420 MiB in each of 2 runs · 7 more runs tell whether it leaks\n  \
         %gpumem_report shows it in full",
    );
}

#[test]
fn only_what_moved_or_is_new_is_worth_a_line() {
    let mut shown = ShownFindings::default();
    let mut check = |cells: &[(&str, Vec<Play>)], expected: bool| {
        let (recording, analysis) = reported(cells);
        let last = recording.runs().last().expect("a run").idx;
        let has_finding = has_new_finding(&recording, &analysis, last, &shown);
        let news = news(&recording, &analysis, last, &mut shown);
        assert_eq!(has_finding, !news.findings(&recording, 80).is_empty());
        assert_eq!(news.is_worth_a_line(), expected);
    };
    check(&[("x = f()", vec![run(420)])], true);
    check(&[("x = f()", vec![run(10)])], false);
    check(&[("x = f()", vec![run(10); 2])], true);
    check(&[("x = f()", vec![run(10); 3])], false);
    check(&[("x = f()", vec![run(10); 9])], true);
    check(&[("x = f()", vec![run(10); 10])], false);
}

#[test]
fn a_warning_that_ends_is_taken_back_once() {
    let mut shown = ShownFindings::default();
    let mut last_line = |cells: &[(&str, Vec<Play>)]| {
        let (recording, analysis) = reported(cells);
        let last = recording.runs().last().expect("a run").idx;
        let news = news(&recording, &analysis, last, &mut shown);
        let line = line(&recording, &analysis, last, &news, 100);
        line.lines().last().map(str::to_owned).unwrap_or_default()
    };
    let taken_back = "✓ losses.append(1) stopped growing";
    let mut cells = vec![("losses.append(1)", vec![run(420); 12])];
    assert_ne!(last_line(&cells), taken_back);
    cells.push(("losses.clear()", vec![run(-12 * 420)]));
    assert_eq!(last_line(&cells), taken_back);
    cells.push(("x = 1", vec![run(0)]));
    assert_ne!(last_line(&cells), taken_back);
}

#[test]
fn what_belongs_to_no_cell_is_said_once() {
    let sources: Vec<String> = (0..20).map(|n| format!("out{n} = f{n}()")).collect();
    let mut shown = ShownFindings::default();
    let mut second_line = |n_runs: usize| {
        let runs = sources.iter().cycle().enumerate().take(n_runs);
        // No cell keeps something in each of its runs.
        let kept = |n: usize| if n.is_multiple_of(3) { 0 } else { 50 };
        let cells = runs.map(|(n, source)| (source.as_str(), vec![run(kept(n))]));
        let (recording, analysis) = reported(&cells.collect::<Vec<_>>());
        let last = recording.runs().last().expect("a run").idx;
        let news = news(&recording, &analysis, last, &mut shown);
        let line = line(&recording, &analysis, last, &news, 100);
        line.lines()
            .nth(1)
            .map(|it| it.contains("no cell alone explains it"))
    };
    assert_eq!(second_line(70), Some(true));
    assert_eq!(second_line(71), None);
}

#[test]
fn a_traced_cell_shows_bytes_next_to_its_lines() {
    let source = "losses.append(model(batch).sum())";
    let plays = [
        vec![run(420).peak(900); 3],
        vec![run(420).peak(900).traced()],
    ]
    .concat();
    let (recording, analysis) = reported(&[(source, plays)]);
    assert_snapshot!(text(&recording, &analysis, 100));
}
