use proptest::prelude::*;

use super::super::view;
use super::*;
use gpumem_analyzer::testing::{Play, look, run, session};
use gpumem_analyzer::{DeviceSummary, PartKind, Rules, analyze};
use gpumem_model::holders::{Holder, RootKind, Twin};
use gpumem_model::recording::{Device, DeviceIdx, Frame, Status};
use gpumem_scene::draw_log::{assert_sound, draw_log, texts};

fn drawn(plays: &[Play], width: f64) -> Scene {
    let (recording, _) = session(&[("a()", plays)]);
    let analysis = analyze(&recording, &Rules::default());
    now(&recording, &analysis, &view(width))
}

fn named(plays: &[Play]) -> Vec<String> {
    let (recording, _) = session(&[("a()", plays)]);
    let analysis = analyze(&recording, &Rules::default());
    segments(&recording, &analysis, DeviceIdx(0))
        .iter()
        .map(|it| {
            format!(
                "{}{} {}",
                it.sign().unwrap_or_default(),
                it.name,
                Units::Binary.size(it.size)
            )
        })
        .collect()
}

#[test]
fn names_stand_in_the_bar_and_their_categories_below() {
    assert_eq!(
        named(&[run(1200).held_by("model", "list")])[..1],
        ["model 1.17 GiB"]
    );
    let scene = drawn(&[run(1200).held_by("model", "list")], 880.0);
    let shown = texts(&scene).join(" ");
    assert!(
        shown.ends_with(
            "your names 1.17 GiB cache, context and libraries 420 MiB other processes 700 MiB"
        ),
        "{shown}"
    );
}

#[test]
fn what_leaks_has_a_sign() {
    let leaking = vec![run(420).held_by("losses", "list"); 12];
    assert_eq!(named(&leaking)[0], "▲losses 4.92 GiB");
    let scene = drawn(&leaking, 880.0);
    let shown = texts(&scene);
    assert!(
        shown.contains(&"▲ losses") && shown.contains(&"▲ leaks"),
        "{shown:?}"
    );
}

#[test]
fn what_no_cell_reads_has_a_ring_and_a_sum() {
    let load = [run(2400).held_by("checkpoint", "dict")];
    let train = vec![run(0); 8];
    let (recording, _) = session(&[("checkpoint = load()", &load), ("train()", &train)]);
    let analysis = analyze(&recording, &Rules::default());
    let scene = now(&recording, &analysis, &view(880.0));
    assert_sound(&scene);
    let shown = texts(&scene);
    let is_shown = shown.contains(&"○ 2.34 GiB") && shown.contains(&"○ not read for a while");
    assert!(is_shown, "{shown:?}");
    let narrow = now(&recording, &analysis, &view(380.0));
    assert!(texts(&narrow).contains(&"○"), "{:?}", texts(&narrow));
}

#[test]
fn twins_are_under_a_bracket() {
    let load = [run(2400).held_by("checkpoint", "dict")];
    let plays = [
        ("checkpoint = load()", &load[..]),
        ("train()", &vec![run(0); 8]),
    ];
    let (mut recording, _) = session(&plays);
    let (run, found) = recording.latest_holders(DeviceIdx(0)).expect("of the load");
    let mut holders = found.clone();
    holders
        .roots
        .push(Holder::new(RootKind::Variable, "model", Bytes::mib(2400)));
    holders.roots[0].retained = Bytes::mib(1200);
    holders.roots[1].retained = Bytes::mib(1200);
    holders.twins = vec![Twin {
        name: "checkpoint".to_owned(),
        other: "model".to_owned(),
        n_alike: 148,
        n_all: 148,
        by_shape: true,
    }];
    look(&mut recording, run, None, holders);
    let analysis = analyze(&recording, &Rules::default());
    for (width, is_written) in [(880.0, true), (200.0, false)] {
        let scene = now(&recording, &analysis, &view(width));
        assert_sound(&scene);
        let shown = texts(&scene);
        let words = "twins: the same 148 shapes, twice";
        assert_eq!(shown.contains(&words), is_written, "{shown:?}");
        assert!(
            draw_log(&scene).contains("4 points"),
            "{}",
            draw_log(&scene)
        );
    }
}

#[test]
fn an_ongoing_run_s_growth_is_separate_from_earlier_memory() {
    let model = run(1200).held_by("model", "list");
    let going_on = run(480).status(Status::Running).steps(8);
    let found = named(&[model.clone(), going_on.clone()]);
    assert_eq!(found[..2], ["model 1.17 GiB", "this run 480 MiB"]);
    // No look saw the change of the run between them.
    assert_eq!(named(&[model, run(7), going_on])[0], "allocated 1.65 GiB");
}

#[test]
fn the_cache_is_in_use() {
    let part = |name: &str, category, size| BarSegment {
        name: name.to_owned(),
        is_name: false,
        category,
        size: Bytes::gib(size),
        alarm: None,
        is_idle: false,
        kind: PartKind::Held,
        purpose: None,
    };
    let parts = [
        part("x", Some(Category::Names), 9),
        part("cache", Some(Category::Cache), 6),
        part("free", None, 1),
    ];
    let words = |parts: &[BarSegment]| in_use(parts).describe(Units::Binary);
    assert_eq!(words(&parts), "15 GiB of 16 GiB in use");
    assert_eq!(
        words(&parts[..2]),
        "15 GiB in use",
        "how large the device is, is not known"
    );
}

#[test]
fn nothing_known_is_said() {
    assert_eq!(
        texts(&drawn(&[run(1).unknown()], 880.0)),
        ["what fills sim:0 is not known"]
    );
}

#[test]
fn a_part_and_its_words_answer_to_the_pointer() {
    let scene = drawn(&[run(8000)], 880.0);
    assert_eq!(scene.hit(Point::new(20.0, 20.0)), Some(Target::Part(0)));
    assert_eq!(scene.hit(Point::new(20.0, 56.0)), Some(Target::Part(0)));
}

/// Equal devices.
fn tiles(n_devices: u32, shown: u32) -> (Vec<DeviceTile>, usize) {
    let (mut recording, _) = session(&[("a()", &[run(1200)])]);
    let first = recording.devices()[0].clone();
    let mut analysis = analyze(&recording, &Rules::default());
    let one = analysis.devices[0].clone();
    for device in (1..n_devices).map(DeviceIdx) {
        let label = format!("sim:{}", device.0);
        let key = label.as_str().into();
        let frame = Frame::Device(Device {
            idx: device,
            key,
            label,
            ..first.clone()
        });
        recording.apply(frame).expect("the next device");
        analysis.devices.push(DeviceSummary {
            device,
            ..one.clone()
        });
    }
    device_tiles(&recording, &analysis, DeviceIdx(shown), Units::Binary)
}

#[test]
fn each_of_several_devices_says_how_much_is_left() {
    let (tiles, n_more) = tiles(2, 0);
    let words: Vec<String> = tiles
        .iter()
        .map(|it| format!("{}: {}", it.label, it.words))
        .collect();
    assert_eq!(words, ["sim:0: 13.7 GiB free", "sim:1: 13.7 GiB free"]);
    assert_eq!(n_more, 0);
}

#[test]
fn of_many_devices_some_and_the_shown_one_have_tiles() {
    let (tiles, n_more) = tiles(100, 70);
    assert_eq!((tiles.len(), n_more), (33, 67));
    assert_eq!(tiles[32].label, "sim:70");
}

proptest! {
    #[test]
    fn the_bar_is_full(sizes in prop::collection::vec(1_u64..1 << 40, 1..9), room in 100.0..2000.0_f64) {
        let parts: Vec<BarSegment> = sizes
            .iter()
            .map(|size| BarSegment {
                name: "x".to_owned(),
                is_name: true,
                category: Some(Category::Names),
                size: Bytes::new(*size),
                alarm: None,
                is_idle: false,
                kind: PartKind::Held,
                purpose: None,
            })
            .collect();
        let widths = widths(&parts, room);
        prop_assert!((widths.iter().sum::<f64>() - room).abs() < 1e-6);
        prop_assert!(widths.iter().all(|width| *width >= LEAST));
    }

    #[test]
    fn it_is_sound_at_any_width(kept in 0..16_000_i64, width in 160.0..1600.0_f64) {
        assert_sound(&drawn(&[run(kept)], width));
        assert_sound(&drawn(&[run(kept).held_by("x", "list")], width));
    }
}
