use super::super::view;
use super::*;
use gpumem_analyzer::testing::{Play, leak, run, session};
use gpumem_model::recording::{RunIdx, Status};
use gpumem_scene::draw_log::{draw_log, texts};

fn drawn(plays: &[Play]) -> Scene {
    let (recording, analysis) = session(&[("a()", plays)]);
    timeline(&recording, &analysis, &view(880.0))
}

#[track_caller]
fn check(plays: &[Play], shown: &[&str]) {
    assert_eq!(texts(&drawn(plays)), shown);
}

/// The colours of the lines that are no axis.
fn lines(plays: &[Play]) -> Vec<Role> {
    let scene = drawn(plays);
    let roles = scene.items.iter().filter_map(|item| match item {
        gpumem_scene::Item::Line { role, points, .. } if points.len() > 2 => Some(*role),
        _ => None,
    });
    roles.collect()
}

#[test]
fn what_is_known_at_the_ends_is_a_line_of_steps() {
    assert_eq!(lines(&[run(420)]), [Role::Text]);
    let sampled = [run(420).peak(900).sampled(9).steps(5)];
    assert_eq!(lines(&sampled), [Role::Device, Role::Process, Role::Text]);
}

#[test]
fn what_was_traced_is_an_exact_line() {
    let scene = drawn(&[run(420).peak(900).traced()]);
    let line = scene.items.iter().find_map(|item| match item {
        gpumem_scene::Item::Line {
            points,
            role: Role::Text,
            dash: None,
            ..
        } => Some(points),
        _ => None,
    });
    let mut heights: Vec<f64> = line.expect("a line").iter().map(|point| point.y).collect();
    let (first, last) = (heights[0], heights[heights.len() - 1]);
    heights.sort_by(f64::total_cmp);
    assert!(
        heights[0] < last && last < first,
        "it rises to the peak and stays above its start"
    );
}

#[test]
fn lines_are_drawn_only_inside_runs_that_were_sampled() {
    let (recording, mut analysis) = session(&[
        ("model = build()", &[run(1200).sampled(5), run(0)]),
        ("losses.append(f(x))", &[run(420).sampled(400).seconds(9)]),
        ("train()", &[run(0).status(Status::Running).sampled(3)]),
    ]);
    analysis.findings.push(leak(&recording, 1, 420));
    let mut view = view(880.0);
    view.selected = [RunIdx(0)].into();
    insta::assert_snapshot!(draw_log(&timeline(&recording, &analysis, &view)));
}

#[test]
fn a_far_capacity_is_said_and_a_near_one_drawn() {
    let is_line = |item: &gpumem_scene::Item| {
        matches!(
            item,
            gpumem_scene::Item::Line {
                role: Role::Leak,
                ..
            }
        )
    };
    let far = drawn(&[run(100)]);
    assert!(texts(&far).contains(&"capacity 16 GiB") && !far.items.iter().any(is_line));
    let near = drawn(&[run(9000)]);
    assert!(texts(&near).contains(&"capacity 16 GiB") && near.items.iter().any(is_line));
}

#[test]
fn with_nothing_to_show_it_says_why() {
    check(
        &[],
        &["no run recorded yet: put %%gpumem on a cell and run it"],
    );
    check(
        &[run(1).unknown()],
        &["nothing is known of sim:0 in this time"],
    );
}

#[test]
fn a_spike_survives_the_reduction() {
    let plays = [run(0).peak(4000).sampled(100_001)];
    let scene = drawn(&plays);
    let points: usize = scene
        .items
        .iter()
        .map(|item| match item {
            gpumem_scene::Item::Line { points, .. } => points.len(),
            _ => 0,
        })
        .sum();
    assert!(points < 2 * 4 * 2 * 880, "{points} points");
    let highest = scene.items.iter().filter_map(|item| match item {
        gpumem_scene::Item::Line {
            points,
            role: Role::Device,
            ..
        } => points.iter().map(|point| point.y).reduce(f64::min),
        _ => None,
    });
    // 4000 + 420 + 700 MiB of an axis that ends 6 % above it.
    let top = highest.fold(f64::INFINITY, f64::min);
    let expected = BOTTOM - (BOTTOM - TOP) / 1.06;
    assert!((top - expected).abs() < 1.0, "{top} is not {expected}");
}
