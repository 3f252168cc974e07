use insta::assert_snapshot;
use proptest::prelude::*;

use crate::multiples::*;
use crate::process_page::{BadEnd, PageRow, bands};
use gpumem_analyzer::Severity;
use gpumem_model::downsample::LevelPoint;
use gpumem_model::units::Bytes;
use gpumem_scene::draw_log::{assert_sound, draw_log, texts};

/// Rank 1 of four leaks and runs out of memory; a fifth has no levels.
fn page() -> ProcessPage {
    let row = |name: &str, levels: &[u64]| PageRow {
        name: name.to_owned(),
        machine: "node-1".to_owned(),
        device: "cuda:0".to_owned(),
        latest: levels.last().map(|mib| Bytes::mib(*mib)),
        until: Nanos::millis(30),
        levels: levels
            .iter()
            .zip(0..)
            .map(|(mib, n)| LevelPoint {
                at: Nanos::millis(10 * n),
                level: Bytes::mib(*mib),
            })
            .collect(),
        ..PageRow::default()
    };
    let ill = PageRow {
        growth: "+40 MiB a step".to_owned(),
        ending: "out of memory at 25 ms".to_owned(),
        end: Some(BadEnd::OutOfMemory),
        until: Nanos::millis(25),
        severity: Some(Severity::Critical),
        ..row("rank 1", &[100, 400, 800])
    };
    let healthy = [0, 2, 3].map(|n| row(&format!("rank {n}"), &[100, 110 + n, 110 + n]));
    ProcessPage {
        noun: "rank".to_owned(),
        span: Nanos::millis(40),
        rows: [&[ill][..], &healthy, &[row("rank 4", &[])]].concat(),
        ..ProcessPage::default()
    }
}

fn view(width: f64, rows: &[usize]) -> MultiplesView<'_> {
    MultiplesView {
        width,
        rows,
        cursor: None,
        pointed: None,
        chosen: &[],
        units: Units::Binary,
    }
}

fn drawn(view: &MultiplesView<'_>) -> Multiples {
    let page = page();
    multiples(&page, &bands(&page), view)
}

#[test]
fn a_leaking_rank_stands_out_of_the_others_middle() {
    let view = MultiplesView {
        cursor: Some(Nanos::millis(10)),
        pointed: Some(2),
        chosen: &[0],
        ..view(340.0, &[0, 1, 2, 3, 4])
    };
    let drawn = drawn(&view);
    assert_sound(&drawn.scene);
    let log = draw_log(&drawn.scene);
    // Of the band's columns the first of each chart will do.
    let lines = log.lines().filter(|line| !line.starts_with("Back fill"));
    assert_snapshot!(lines.collect::<Vec<_>>().join("\n"));
}

#[test]
fn the_sign_and_not_the_colour_alone_tells_who_is_ill() {
    let drawn = drawn(&view(600.0, &[0, 1]));
    let texts = texts(&drawn.scene);
    assert!(texts.contains(&"▲"), "{texts:?}");
    assert!(texts.contains(&"✕"), "{texts:?}");
    assert!(
        texts.contains(&"out of memory · +40 MiB a step"),
        "{texts:?}"
    );
}

#[test]
fn a_point_is_a_row_and_an_instant() {
    let drawn = drawn(&view(316.0, &[3, 0, 2]));
    let span = Nanos::millis(40);
    let at = |x: f64, y: f64| drawn.at(Point::new(x, y), span);
    assert_eq!(at(0.0, 30.0), Some((3, Nanos::ZERO)));
    assert_eq!(at(316.0, 30.0), Some((0, Nanos::millis(40))));
    assert_eq!(at(75.0, 130.0), Some((2, Nanos::millis(20))));
    assert_eq!(at(158.0, 30.0), None, "between two of them");
    assert_eq!(at(300.0, 130.0), None, "there is no fourth");
}

#[test]
fn no_process_is_an_empty_picture() {
    let scene = multiples(&ProcessPage::default(), &[], &view(400.0, &[])).scene;
    assert_sound(&scene);
    assert!(scene.items.is_empty());
}

proptest! {
    #[test]
    fn the_picture_is_sound_at_any_width(width in 0.0..2000.0_f64, at in 0..50_u64, n in 0..6_usize) {
        let rows: Vec<usize> = (0..n.min(5)).collect();
        let view = MultiplesView {
            cursor: Some(Nanos::millis(at)),
            pointed: Some(n),
            ..view(width, &rows)
        };
        let drawn = drawn(&view);
        assert_sound(&drawn.scene);
        prop_assert_eq!(drawn.cells.len(), rows.len());
    }
}
