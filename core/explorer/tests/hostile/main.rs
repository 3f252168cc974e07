//! A file that nobody wrote in good faith is read and reported as fast as any of its size: where
//! something takes the square of its length, these tests do not end.

mod recordings;

use gpumem_analyzer::{Rules, analyze};
use gpumem_charts as charts;
use gpumem_model::recording::{DeviceIdx, Recording};
use gpumem_report as report;
use gpumem_report::json;
use gpumem_scene as scene;
use gpumem_scene::Theme;
use gpumem_wire as wire;

/// What the whole of a recording is shown as: its height in a picture, and its text.
fn shown(recording: &Recording) -> (f64, String) {
    let recording = wire::decode(&wire::encode(recording)).expect("it was just written");
    let rules = Rules::default();
    let analysis = analyze(&recording, &rules);
    let json = json::report_json(&recording, &analysis, &rules);
    assert!(json.len() > 100);
    let scene = charts::report(&recording, &analysis, 900.0);
    assert!(!scene::svg(&scene, Theme::Light).is_empty());
    (scene.height, report::text(&recording, &analysis, 100))
}

#[test]
fn runs_may_be_nested_deep() {
    let (_, text) = shown(&recordings::nested(100_000, true));
    assert!(text.contains("1 run of 1 cell"));
}

#[test]
fn runs_that_go_on_may_be_nested_deep() {
    let (_, text) = shown(&recordings::nested(100_000, false));
    assert!(text.contains("1 run of 1 cell"));
}

#[test]
fn frames_may_come_in_falling_order() {
    let bytes = wire::encode_frames(recordings::falling(100_000));
    let recording = wire::decode(&bytes).expect("the frames fit each other");
    assert_eq!(recording.all_samples().count(), 100_000);
}

#[test]
fn there_may_be_many_devices() {
    let recording = recordings::crowded(10_000, 3);
    let (height, text) = shown(&recording);
    assert!(height < 2000.0, "{height}");
    assert!(text.contains("… and 9968 more devices"));
    assert!(text.lines().count() < 1000);
    let analysis = analyze(&recording, &Rules::default());
    assert_eq!(analysis.devices.len(), 10_000);
    assert_eq!(analysis.devices[9_999].device, DeviceIdx(9_999));
}

#[test]
fn a_cell_may_have_many_texts() {
    let (_, text) = shown(&recordings::edited(30_000));
    assert!(text.contains("30000 runs of 1 cell"));
}

#[test]
fn there_may_be_many_cells() {
    let (height, text) = shown(&recordings::cells(5_000, 2));
    assert!(height < 2000.0, "{height}");
    assert!(text.contains("10000 runs of 5000 cells"));
}
