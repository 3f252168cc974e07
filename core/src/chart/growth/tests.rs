use super::super::draw_log::{assert_sound, draw_log, texts, view};
use super::*;
use crate::recording::{RunIdx, Status};
use crate::testing::{Play, leak, of_steps, run, session};

/// What is written over and under the bars, without the axis.
#[track_caller]
fn check(cells: &[(&str, &[Play])], expected: &[&str]) {
    let (recording, analysis) = session(cells);
    let scene = growth(&recording, &analysis, &view(880.0));
    let is_axis = |text: &&str| *text == "0" || text.starts_with('+');
    let shown: Vec<&str> = texts(&scene)
        .into_iter()
        .filter(|text| !is_axis(text))
        .collect();
    assert_eq!(shown, expected);
}

#[test]
fn runs_of_one_cell_stand_together_where_the_first_was() {
    check(
        &[("a()", &[run(1)]), ("b()", &[run(0)]), ("a()", &[run(1)])],
        &["a()", "In [3] · 2 runs", "b()", "In [2]"],
    );
}

#[test]
fn where_no_name_has_room_that_of_a_leak_has_that_of_its_neighbours() {
    let kept = [run(1), run(1)];
    let names: Vec<String> = (0..60).map(|idx| format!("step_{idx}(batch)")).collect();
    let cells: Vec<(&str, &[Play])> = names
        .iter()
        .map(|name| (name.as_str(), &kept[..]))
        .collect();
    let (recording, mut analysis) = session(&cells);
    analysis.findings.push(leak(&recording, 30, 10));
    let scene = growth(&recording, &analysis, &view(880.0));
    let named: Vec<&str> = texts(&scene)
        .into_iter()
        .filter(|text| text.starts_with("step_"))
        .collect();
    assert_eq!(named, ["step_30(batch)"]);
}

#[test]
fn a_note_says_what_the_runs_have_in_common() {
    let back = run(0).peak(900);
    check(
        &[("a()", &[back.clone(), back.clone()])],
        &["a()", "In [2] · 2 runs", "gives all back"],
    );
    check(
        &[("a()", &[run(600), run(120), run(0), run(0)])],
        &["a()", "In [4] · 4 runs", "settled after 2 runs"],
    );
    check(
        &[("a()", &[run(600), run(120), run(0)])],
        &["a()", "In [3] · 3 runs"],
    );
    check(
        &[("a()", &[back.clone(), back.unknown()])],
        &["a()", "In [2] · 2 runs"],
    );
}

#[test]
fn runs_that_did_not_end_well_are_marked() {
    check(
        &[
            ("a()", &[run(1), run(1).status(Status::Error)]),
            ("b()", &[run(1).status(Status::OutOfMemory)]),
            ("c()", &[run(1).status(Status::Interrupted)]),
            ("d()", &[run(1).status(Status::Running)]),
        ],
        &[
            "a()",
            "In [2] · 2 runs · 1 failed",
            "b()",
            "In [3]",
            "c()",
            "In [4]",
            "d()",
            "In [5] · running",
            "×",
            "OOM",
            "■",
        ],
    );
}

#[test]
fn a_run_that_goes_on_is_hatched_up_to_what_it_keeps_so_far() {
    let play = run(480).status(Status::Running).steps(8);
    let (recording, analysis) = session(&[("train()", &[run(200), play])]);
    let scene = growth(&recording, &analysis, &view(880.0));
    assert!(texts(&scene).contains(&"+480 MiB so far"));
    assert!(scene.description.contains("+480 MiB so far"));
    let log = draw_log(&scene);
    let is_bar = |line: &&str| line.starts_with("Kept fill");
    assert_eq!(log.lines().filter(is_bar).count(), 1, "{log}");
    assert!(log.contains("Kept dashes"), "{log}");
    let n_stripes = log.lines().filter(|line| line.starts_with("Kept line"));
    assert!(n_stripes.count() > 10, "{log}");
    assert_sound(&scene);
}

#[test]
fn a_run_that_ran_out_is_told_from_one_that_failed_however_narrow_it_is() {
    let plays = [Status::OutOfMemory, Status::Error].map(|status| run(1).status(status));
    let many = vec![run(1); 60];
    let narrow = [&plays[..1], &many, &plays[1..]].concat();
    for (plays, mark) in [(plays.as_slice(), "OOM"), (&narrow, "!")] {
        let (recording, analysis) = session(&[("a()", plays)]);
        let scene = growth(&recording, &analysis, &view(880.0));
        let texts = texts(&scene);
        assert!(texts.contains(&mark), "{texts:?}");
        assert!(texts.contains(&"×"), "{texts:?}");
    }
}

#[test]
fn with_nothing_to_show_it_says_why() {
    check(
        &[],
        &["no run recorded yet: put %%gpumem on a cell and run it"],
    );
    check(
        &[("a()", &[run(1).unknown()])],
        &["what these runs kept on sim:0 is not known"],
    );
}

#[test]
fn a_leak_is_drawn_over_its_group() {
    let (recording, mut analysis) = session(&[
        ("model = build()", &[run(1200).peak(1250)]),
        (
            "losses.append(f(x))",
            &[run(420).peak(950), run(420).peak(950), run(430).peak(960)],
        ),
        ("del model", &[run(-1200)]),
    ]);
    analysis.findings.push(leak(&recording, 1, 420));
    let mut view = view(880.0);
    view.selected = [RunIdx(2)].into();
    insta::assert_snapshot!(draw_log(&growth(&recording, &analysis, &view)));
}

#[test]
fn steps_are_counted_where_the_finding_counts_them() {
    let (recording, mut analysis) = session(&[("for x in steps(y): f(x)", &[run(480)])]);
    let mut finding = of_steps(leak(&recording, 0, 4));
    finding.n_runs = 120;
    analysis.findings.push(finding);
    let scene = growth(&recording, &analysis, &view(880.0));
    assert!(texts(&scene).contains(&"+4 MiB in each of 120 steps"));
}

#[test]
fn of_runs_narrower_than_a_pixel_the_extremes_are_drawn() {
    let mut runs = vec![run(1); 4000];
    runs[2001] = run(900);
    let (recording, analysis) = session(&[("a()", &runs)]);
    let scene = growth(&recording, &analysis, &view(360.0));
    assert!(scene.items.len() < 800, "{} items", scene.items.len());
    assert_eq!(scene.hits.len(), 4000);
    let heights = scene.items.iter().filter_map(|item| match item {
        super::super::Item::Fill {
            rect,
            role: Role::Kept,
            ..
        } => Some(rect.height),
        _ => None,
    });
    assert!(heights.fold(0.0, f64::max) > 100.0);
}

#[test]
fn a_point_on_a_bar_is_its_run() {
    let (recording, analysis) = session(&[("a()", &[run(1), run(2), run(3)])]);
    let scene = growth(&recording, &analysis, &view(880.0));
    let targets: Vec<_> = scene.hits.iter().map(|hit| hit.target).collect();
    assert_eq!(targets, [0, 1, 2].map(|idx| Target::Run(RunIdx(idx))));
    let rect = scene.hits[1].rect;
    let middle = Point::new(rect.x + rect.width / 2.0, rect.y + rect.height / 2.0);
    assert_eq!(scene.hit(middle), Some(Target::Run(RunIdx(1))));
}
