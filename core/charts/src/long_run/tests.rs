use proptest::prelude::*;

use super::*;
use gpumem_analyzer::testing::{Play, look, run, session};
use gpumem_analyzer::{Rules, analyze};
use gpumem_model::holders::{DeviceHolders, Holder, RootKind, Traits};
use gpumem_model::recording::{Frame, FrameOrigin, Points, Sample, Status};
use gpumem_scene::draw_log::{assert_sound, draw_log, texts};
use gpumem_scene::{Point, Target};

const CELL: &str = "for x in batches(): losses.append((x * weights).sum())\nprint(len(losses))";
const WIDE: f64 = 824.0;

/// One run of a cell: what it was given before, and loops in it.
struct Story {
    recording: Recording,
    run: RunIdx,
}

impl Story {
    /// After another cell that kept 312 MiB, so that the run is no first one.
    fn new(play: Play) -> Self {
        let (recording, _) = session(&[("net = build()", &[run(312)]), (CELL, &[play])]);
        Self {
            recording,
            run: RunIdx(1),
        }
    }

    /// A loop in that line, of iterations that end at these seconds of the run with these MiB.
    fn counting(mut self, line: u32, parent: Option<u32>, ends: &[(u64, f64, u64)]) -> Self {
        let (run, device) = (self.run, DeviceIdx(0));
        let started = self.recording.run(run).started;
        let idx = LoopIdx(line - 1);
        let instant = |seconds: f64| started + Nanos::new((seconds * 1e9) as u64);
        let (last, seconds, _) = *ends.last().expect("iterations");
        let counted = Loop {
            run,
            idx,
            parent: parent.map(|line| LoopIdx(line - 1)),
            origin: FrameOrigin::Own,
            line,
            n_iterations: last,
            counted_from: started,
            last_at: instant(seconds),
            ..Loop::default()
        };
        let points = ends.iter().map(|(n, seconds, mib)| Sample {
            at: instant(*seconds),
            ordinal: *n,
            allocated: Some(Bytes::mib(*mib)),
            ..Sample::default()
        });
        let series = Series::Loop(idx);
        self.put(Frame::Loop(Box::new(counted)));
        self.put(Frame::samples(
            run,
            device,
            series,
            points.collect::<Points>(),
        ));
        self
    }

    /// A look at this second: `n` tensors with a sum in MiB.
    fn looking(mut self, seconds: f64, name: &str, n_tensors: u64, mib: u64) -> Self {
        let traits = Traits {
            n_tensors,
            graph: Bytes::mib(1),
            ..Traits::default()
        };
        let holder = Holder {
            grown: Some(Bytes::mib(mib).since(Bytes::ZERO)),
            traits,
            ..Holder::new(RootKind::Variable, name, Bytes::mib(mib))
        };
        let holders = DeviceHolders {
            device: "sim:0".to_owned(),
            roots: vec![holder],
            ..DeviceHolders::default()
        };
        let started = self.recording.run(self.run).started;
        let at = started + Nanos::new((seconds * 1e9) as u64);
        look(&mut self.recording, self.run, Some(at), holders);
        self
    }

    fn put(&mut self, frame: Frame) {
        self.recording.apply(frame).expect("it fits");
    }

    fn show<T>(&self, chosen: Option<u32>, show: impl FnOnce(&LongRun<'_>) -> T) -> T {
        let analysis = analyze(&self.recording, &Rules::default());
        let place = (CellIdx(1), DeviceIdx(0));
        let chosen = chosen.map(|line| LoopIdx(line - 1));
        show(&LongRun::of_cell(&self.recording, &analysis, place, chosen).expect("a loop"))
    }

    fn scene(&self, width: f64) -> Scene {
        self.show(None, |long_run| long_run.scene(width, Units::Binary))
    }
}

fn growing(n: u64, seconds: f64, each: u64) -> Vec<(u64, f64, u64)> {
    (1..=n)
        .map(|it| (it, it as f64 * seconds, 312 + each * it))
        .collect()
}

/// Sixty losses with their graphs in 46 seconds, and three looks.
fn finished() -> Story {
    leaking(run(60 * 160)).looking(37.0, "losses", 48, 48 * 160)
}

fn leaking(play: Play) -> Story {
    Story::new(play.seconds(46).held_by("losses", "list").with_graph())
        .counting(1, None, &growing(60, 0.766, 160))
        .looking(9.3, "losses", 12, 12 * 160)
        .looking(18.5, "losses", 24, 24 * 160)
}

#[track_caller]
fn check_texts(scene: &Scene, expected: &[&str]) {
    let shown = texts(scene);
    for words in expected {
        assert!(shown.contains(words), "{words}: {shown:?}");
    }
    assert_sound(scene);
}

#[test]
fn a_finished_run_shows_looks_and_where_it_leads() {
    let scene = finished().scene(WIDE);
    check_texts(
        &scene,
        &["60, its end", "24 tensors", "3.75 GiB", "losses", "time"],
    );
    let log = draw_log(&scene);
    // Stripes and steps are many.
    let lines = log
        .lines()
        .filter(|line| !line.ends_with(", 2 points") && !line.contains("Fill fill"));
    insta::assert_snapshot!(lines.collect::<Vec<_>>().join("\n"));
}

#[test]
fn a_narrow_picture_has_only_what_has_room() {
    let scene = finished().scene(310.0);
    check_texts(&scene, &["48 tensors", "if it goes on"]);
    let shown = texts(&scene);
    assert!(
        !shown.contains(&"time") && !shown.contains(&"20"),
        "{shown:?}"
    );
}

#[test]
fn a_forecast_that_is_far_is_not_drawn() {
    let slow = Story::new(
        run(60 * 16)
            .seconds(46)
            .held_by("losses", "list")
            .with_graph(),
    )
    .counting(1, None, &growing(60, 0.766, 16));
    let scene = slow.scene(WIDE);
    check_texts(&scene, &["kept 960 MiB", "+16 MiB each", "60, its end"]);
    assert!(!texts(&scene).contains(&"16 GiB"));
}

#[test]
fn a_run_that_goes_on_is_drawn_up_to_the_capacity() {
    let scene = leaking(run(60 * 160).status(Status::Running)).scene(WIDE);
    check_texts(&scene, &["60, now", "16 GiB"]);
}

/// Twelve passes that keep 180 MiB each, of eight batches that give 420 MiB back.
fn nested() -> Story {
    let level = |pass: u64, batch: u64| 312 + 180 * pass + 52 * batch;
    let outer: Vec<_> = (1..=12)
        .map(|n| (n, 25.0 * n as f64, level(n, 0)))
        .collect();
    let inner = (0..96).map(|n| {
        (
            n + 1,
            25.0 / 8.0 * (n as f64 + 0.9),
            level(n / 8, n % 8 + 1),
        )
    });
    Story::new(
        run(12 * 180)
            .seconds(300)
            .held_by("history", "list")
            .with_graph(),
    )
    .counting(1, None, &outer)
    .counting(2, Some(1), &inner.collect::<Vec<_>>())
    .looking(50.1, "history", 2, 360)
    .looking(200.1, "history", 8, 1440)
}

#[test]
fn what_an_inner_loop_gives_back_stands_above_the_passes() {
    let scene = nested().scene(WIDE);
    check_texts(
        &scene,
        &[
            "12",
            "line 2: 416 MiB, given back",
            "iteration (8 inside)",
            "history",
        ],
    );
    let log = draw_log(&scene);
    let n_teeth = log
        .lines()
        .filter(|line| line.starts_with("Back fill"))
        .count();
    assert_eq!(n_teeth, 96);
}

#[test]
fn either_of_two_loops_can_be_the_axis() {
    let loops = |chosen| {
        nested().show(chosen, |it| {
            let shown = it
                .loops()
                .map(|(_, name, is_axis)| format!("{name} {is_axis}"));
            (it.title().1, shown.collect::<Vec<_>>())
        })
    };
    let outer = ["line 1, 12 iterations true", "line 2, 96 iterations false"].map(str::to_owned);
    assert_eq!(
        loops(None),
        ("of line 1 in In [2]".to_owned(), outer.to_vec())
    );
    assert_eq!(loops(Some(2)).0, "of line 2 in In [2]");
    let scene = nested().show(Some(2), |it| it.scene(WIDE, Units::Binary));
    check_texts(&scene, &["96, its end"]);
}

#[test]
fn a_place_is_read_as_iteration_time_level_and_holder() {
    let story = finished();
    story.show(None, |it| {
        let x = it.x(it.run.started + Nanos::millis(23_000), WIDE);
        let at = it.instant_at(x, WIDE).expect("inside of the run");
        let reading = it.reading(at, "losses.append", Units::Binary);
        assert_eq!(
            (&*reading.place, &*reading.words),
            (
                "In [2]",
                "iteration 30 of 60, 23.0 s: 4.99 GiB in use; at iteration 24 losses had 24 tensors, 3.75 GiB",
            )
        );
        assert_eq!(it.instant_at(WIDE - 1.0, WIDE), None, "nobody knows what comes");
    });
}

#[test]
fn a_look_answers_to_the_pointer() {
    let story = finished();
    let scene = story.scene(WIDE);
    let hit = scene
        .hits
        .iter()
        .find(|hit| hit.target == Target::Look(1))
        .expect("a circle");
    let middle = Point::new(
        hit.rect.x + hit.rect.width / 2.0,
        hit.rect.y + hit.rect.height / 2.0,
    );
    assert_eq!(scene.hit(middle), Some(Target::Look(1)));
    let details = story.show(None, |it| {
        let looks = it.looks().iter().flat_map(|look| &look.holders);
        looks
            .filter_map(|holder| holder.detail(Units::Binary))
            .collect::<Vec<_>>()
    });
    assert_eq!(
        details,
        [
            "each with its graph",
            "+12 tensors of 160 MiB since the look before",
            "+24 tensors of 160 MiB since the look before",
        ]
    );
}

proptest! {
    #[test]
    fn every_one_is_sound(
        levels in prop::collection::vec((0_u64..9_000, 0.001..9.0_f64), 2..90),
        looks in prop::collection::vec((0.0..400.0_f64, 0_u64..90, 0_u64..9_000), 0..12),
        width in 300.0..1600.0_f64,
        is_nested in any::<bool>(),
        is_running in any::<bool>(),
    ) {
        let mut at = 0.0;
        let ends = (1..).zip(&levels).map(|(n, (mib, seconds))| {
            at += seconds;
            (n, at, *mib)
        });
        let ends: Vec<_> = ends.collect();
        let play = run(4_000).seconds(900).held_by("losses", "list").with_graph();
        let play = if is_running { play.status(Status::Running) } else { play };
        let mut story = Story::new(play).counting(2, is_nested.then_some(1), &ends);
        if is_nested {
            let outer: Vec<_> = ends.iter().step_by(9).enumerate().map(|(n, it)| (n as u64 + 1, it.1, it.2)).collect();
            story = story.counting(1, None, &outer);
        }
        for (seconds, n, mib) in looks {
            story = story.looking(seconds, "losses", n, mib);
        }
        assert_sound(&story.scene(width));
    }
}
