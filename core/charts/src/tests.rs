use proptest::prelude::*;

use super::*;
use gpumem_analyzer::testing::{Play, leak, of_steps, run, session};
use gpumem_analyzer::{Analysis, FindingKind, GrowthVerdict};
use gpumem_heap::{Fix, FixReason};
use gpumem_model::recording::{Recording, Status};
use gpumem_scene::draw_log::{assert_sound, draw_log};
use gpumem_scene::{Theme, svg};

fn any_status() -> impl Strategy<Value = Status> {
    prop_oneof![
        6 => Just(Status::Ok),
        1 => Just(Status::Error),
        1 => Just(Status::Interrupted),
        1 => Just(Status::OutOfMemory),
        1 => Just(Status::Running),
    ]
}

fn any_play() -> impl Strategy<Value = Play> {
    let kept = prop_oneof![2 => Just(0_i64), 3 => -2000..2000_i64, 1 => -1..2_i64];
    let samples = (0..6_usize, 0..6_usize);
    (
        kept,
        0..4000_i64,
        any_status(),
        samples,
        0..400_u64,
        any::<u8>(),
    )
        .prop_map(
            |(kept, peak, status, (n_samples, n_steps), seconds, luck)| {
                let play = run(kept)
                    .peak(peak)
                    .status(status)
                    .sampled(n_samples)
                    .steps(n_steps)
                    .seconds(seconds);
                if luck < 20 { play.unknown() } else { play }
            },
        )
}

/// Cells that are run in any order, some of them leaking.
fn any_session() -> impl Strategy<Value = (Recording, Analysis)> {
    let cell = prop_oneof!["[a-z]{1,6}\\(\\)", "\\PC{0,60}", "x = [a-z ]{0,80}"];
    let sources = prop::collection::vec(cell, 1..12);
    let plays = prop::collection::vec((any::<prop::sample::Index>(), any_play()), 0..60);
    let leaks = prop::collection::vec((any::<prop::sample::Index>(), 0..3_u8), 0..4);
    (sources, plays, leaks).prop_map(|(sources, plays, leaks)| {
        let runs: Vec<(&str, &[Play])> = plays
            .iter()
            .map(|(idx, play)| (idx.get(&sources).as_str(), std::slice::from_ref(play)))
            .collect();
        let (recording, mut analysis) = session(&runs);
        for (idx, kind) in leaks.into_iter().filter(|_| !recording.cells().is_empty()) {
            let cell = idx.index(recording.cells().len());
            let mut finding = leak(&recording, u32::try_from(cell).expect("few cells"), 7);
            if kind == 0 {
                (finding.kind, finding.state) =
                    (FindingKind::Growing, Some(GrowthVerdict::Suspected));
            }
            let is_of_steps = kind == 2;
            analysis.findings.push(if is_of_steps {
                of_steps(finding)
            } else {
                finding
            });
        }
        (recording, analysis)
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(ProptestConfig::default().cases / 3))]

    #[test]
    fn every_scene_is_sound((recording, analysis) in any_session(), width in 160.0..1600.0_f64) {
        let mut view = view(width);
        view.selected.extend(recording.runs().first().map(|run| run.idx));
        let level = ChartView { pace: Pace::Clock, ..view.clone() };
        let cells = cells(&recording, &analysis, view.device);
        for row in &cells.rows {
            for measure in [CellMeasure::Total, CellMeasure::PerRun] {
                assert_sound(&cells.row_scene(row, width, measure));
            }
        }
        for scene in [
            cells.over_time(CellLayout::new(width), Units::Binary),
            now(&recording, &analysis, &view),
            timeline(&recording, &analysis, &view),
            timeline(&recording, &analysis, &level),
            minimap(&recording, &analysis, &view),
            report(&recording, &analysis, width),
            picture(&recording, &analysis, &view, PictureExtent::Slide),
        ] {
            assert_sound(&scene);
            prop_assert!(!scene.description.is_empty());
        }
    }

    #[test]
    fn every_scene_is_an_svg_without_loose_ends((recording, analysis) in any_session()) {
        let document = svg(&report(&recording, &analysis, 880.0), Theme::Dark);
        prop_assert!(document.starts_with("<svg ") && document.trim_end().ends_with("</svg>"));
        let n_tags = document.matches('<').count();
        prop_assert_eq!(n_tags, document.matches('>').count());
        prop_assert!(!document.contains(|letter: char| letter.is_control() && letter != '\n'));
    }
}

#[test]
fn a_picture_begins_with_the_verdict_and_its_fix() {
    let (recording, mut analysis) = session(&[
        ("model = build()", &[run(1200)]),
        ("losses.append(f(x))", &[run(420), run(420), run(420)]),
    ]);
    let mut finding = leak(&recording, 1, 420);
    finding.fix = Some(Fix {
        before: Some("losses.append(f(x))".to_owned()),
        after: "losses.append(f(x).detach())".to_owned(),
        reason: FixReason::Detached,
        elsewhere: false,
    });
    finding
        .cell
        .as_mut()
        .expect("it is about a cell")
        .execution_count = Some(4);
    analysis.findings.push(finding);
    let scene = report(&recording, &analysis, 880.0);
    let log = draw_log(&scene);
    let mut rest = log.as_str();
    for expected in [
        "\"GPU memory\"",
        "\"4 runs of 2 cells · sim:0 Simulated\"",
        "\"losses.append(f(x)) leaks 420 MiB a run\"",
        "\"In [4]\"",
        "\"line 1\"",
        "OkSpan fill",
        "\".detach()\"",
        "\"Each keeps the graph",
        "\"What each cell kept\"",
        "\"+1.23 GiB\"",
    ] {
        let found = rest.find(expected);
        let found = found.unwrap_or_else(|| panic!("{expected} is not in:\n{rest}"));
        rest = &rest[found..];
    }
    let title = "▲ losses.append(f(x)) leaks 420 MiB a run. 420 MiB so far. GPU memory, 4 runs";
    assert!(
        scene.description.starts_with(title),
        "{}",
        scene.description
    );
}

#[test]
fn the_picture_of_a_healthy_session_says_so() {
    let (recording, analysis) = session(&[("model.train()", &[run(0), run(0)])]);
    let picture = picture(
        &recording,
        &analysis,
        &view(880.0),
        PictureExtent::FirstScreen,
    );
    assert!(draw_log(&picture).contains("\"Nothing grows\""));
}

#[test]
fn a_slide_shows_as_many_rows_as_it_has_room_for() {
    let sources: Vec<String> = (0..12).map(|n| format!("a{n} = build({n})")).collect();
    let plays = [run(100)];
    let cells: Vec<_> = sources.iter().map(|it| (it.as_str(), &plays[..])).collect();
    let (recording, mut analysis) = session(&cells);
    let n_rows = |analysis: &Analysis| {
        let scene = picture(&recording, analysis, &view(400.0), PictureExtent::Slide);
        assert_eq!(scene.device_size(PictureExtent::SLIDE_SCALE), (1600, 900));
        draw_log(&scene).matches("\"+100 MiB\"").count()
    };
    assert_eq!(n_rows(&analysis), 8);
    let fix = |n: usize| Fix {
        before: Some("x\n".repeat(n)),
        after: "y\n".repeat(n),
        reason: FixReason::Detached,
        elsewhere: false,
    };
    analysis.findings = (0..3).map(|cell| leak(&recording, cell, 100)).collect();
    analysis.findings[0].fix = Some(fix(9));
    assert!((1..8).contains(&n_rows(&analysis)), "the rest is in a line");
}

#[test]
fn an_svg_is_as_large_as_its_scene_and_escapes_its_text() {
    let (recording, analysis) = session(&[("a < b & \"c\"", &[run(1)])]);
    let scene = report(&recording, &analysis, 880.0);
    let document = svg(&scene, Theme::Light);
    let height = scene.height;
    assert!(document.contains(&format!(
        "width=\"880\" height=\"{height}\" viewBox=\"0 0 8800"
    )));
    assert!(document.contains("a &lt; b &amp; \"c\"</text>"));
    // 12 px at ten units a pixel.
    assert!(document.contains("font-size=\"120\""));
}
