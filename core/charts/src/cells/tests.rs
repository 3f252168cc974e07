use super::*;
use gpumem_analyzer::testing::{Play, leak, of_steps, run, session};
use gpumem_model::recording::Status;
use gpumem_scene::draw_log::{assert_sound, draw_log, texts};
use gpumem_scene::{Item, Role};

const WIDTH: f64 = 352.0;

fn chart(plays: &[(&str, &[Play])]) -> CellChart {
    let (recording, analysis) = session(plays);
    cells(&recording, &analysis, DeviceIdx(0))
}

/// A model, a leak over it, and its end.
fn leaking() -> CellChart {
    let (recording, mut analysis) = session(&[
        ("model = build()", &[run(1200).peak(1250)]),
        (
            "losses.append(f(x))",
            &[run(420).peak(950), run(420).peak(950), run(430)],
        ),
        ("del model", &[run(-1200)]),
    ]);
    analysis.findings.push(leak(&recording, 1, 420));
    cells(&recording, &analysis, DeviceIdx(0))
}

#[track_caller]
fn check_rows(cells: &CellChart, expected: &[&str]) {
    let units = Units::Binary;
    let rows = cells.rows.iter().map(|row| {
        let sign = row.sign.map_or("", |(sign, _)| sign.glyph());
        format!(
            "{sign} {} {} · {}",
            row.name,
            units.change(row.total),
            row.state
        )
    });
    assert_eq!(rows.collect::<Vec<_>>(), expected);
}

fn n_fills(scene: &Scene, wanted: Role) -> usize {
    let is_it = |item: &&Item| matches!(item, Item::Fill { role, .. } if *role == wanted);
    scene.items.iter().filter(is_it).count()
}

#[test]
fn leaks_stand_first_then_what_kept_most() {
    check_rows(
        &leaking(),
        &[
            "▲ losses.append(f(x)) +1.24 GiB · 3 runs",
            " model = build() +1.17 GiB · 1 run",
            " del model −1.17 GiB · 1 run",
        ],
    );
}

#[test]
fn a_row_says_how_its_cell_is() {
    let plays: &[(&str, &[Play])] = &[
        ("a()", &[run(1), run(1).status(Status::Error)]),
        ("b()", &[run(1).status(Status::OutOfMemory)]),
        ("c()", &[run(1).status(Status::Interrupted)]),
        ("d()", &[run(1).status(Status::Running)]),
    ];
    check_rows(
        &chart(plays),
        &[
            " a() +2 MiB · 2 runs, failed",
            " b() +1 MiB · out of memory",
            " c() +1 MiB · 1 run, stopped",
            " d() +1 MiB · running",
        ],
    );
}

#[test]
fn steps_are_counted_if_the_finding_counts_them() {
    let (recording, mut analysis) = session(&[("for x in y: f(x)", &[run(480).steps(16)])]);
    let mut finding = of_steps(leak(&recording, 0, 4));
    finding.n_runs = 16;
    analysis.findings.push(finding);
    let cells = cells(&recording, &analysis, DeviceIdx(0));
    check_rows(&cells, &["▲ for x in y: f(x) +480 MiB · 16 steps"]);
    let climb = cells.rows[0].kept_so_far();
    assert_eq!(
        climb.len(),
        18,
        "each step, where the loop began, and the end"
    );
}

#[test]
fn a_run_with_steps_has_eight_slots() {
    let cells = chart(&[("a()", &[run(8).steps(4)]), ("b()", &[run(1), run(1)])]);
    let runs = cells.slots.runs();
    assert_eq!(cells.slots.extent(runs[0]), (0.0, 0.8));
    assert_eq!(cells.slots.extent(runs[2]), (0.9, 1.0));
    assert_eq!(cells.slots.run_at(0.5), Some(runs[0]));
    assert_eq!(cells.slots.run_at(0.85), Some(runs[1]));
    assert_eq!(cells.slots.run_at(1.0), Some(runs[2]));
    assert_eq!(cells.slots.run_at(-1.0), Some(runs[0]));
}

#[test]
fn a_leak_is_drawn_as_steps_with_what_was_given_back_above() {
    let cells = leaking();
    insta::assert_snapshot!(draw_log(&cells.row_scene(
        &cells.rows[0],
        WIDTH,
        CellMeasure::Total
    )));
}

#[test]
fn each_run_is_a_bar_of_what_it_kept() {
    let cells = leaking();
    let bars = |row: usize, role| {
        let scene = cells.row_scene(&cells.rows[row], WIDTH, CellMeasure::PerRun);
        // Ticks have the colour of the bars.
        n_fills(&scene, role)
    };
    assert_eq!(bars(0, Role::Leak), 3 + 3);
    assert_eq!(bars(1, Role::Kept), 1 + 1);
    assert_eq!((bars(2, Role::Ok), bars(2, Role::Kept)), (1, 1), "it freed");
}

#[test]
fn what_was_given_back_sets_the_height_only_if_nothing_was_kept() {
    let heights = |plays: &[Play], role| -> Vec<f64> {
        let cells = chart(&[("a()", plays)]);
        let scene = cells.row_scene(&cells.rows[0], WIDTH, CellMeasure::Total);
        let heights = scene.items.iter().filter_map(|item| match item {
            Item::Fill {
                rect, role: found, ..
            } if *found == role => Some(rect.height),
            _ => None,
        });
        heights.collect()
    };
    let clipped = heights(&[run(10).peak(900), run(0).peak(2000)], Role::Back);
    assert!(clipped.iter().all(|height| *height < 6.0), "{clipped:?}");
    let alone = heights(&[run(0).peak(900), run(0).peak(450)], Role::Back);
    assert_eq!(alone, [20.0, 10.0]);
}

#[test]
fn a_run_that_goes_on_is_hatched_in_every_chart() {
    let going_on = run(480).status(Status::Running);
    let cells = chart(&[("train()", &[run(200), going_on])]);
    let row = cells.row_scene(&cells.rows[0], WIDTH, CellMeasure::Total);
    let all = cells.over_time(CellLayout::new(900.0), Units::Binary);
    for scene in [row, all] {
        let log = draw_log(&scene);
        assert!(log.contains("Kept dashes"), "{log}");
        assert_sound(&scene);
    }
}

#[test]
fn a_run_whose_steps_are_known_grows_instead() {
    let going_on = run(480).status(Status::Running).steps(8);
    let cells = chart(&[("train()", &[run(200), going_on])]);
    let row = cells.row_scene(&cells.rows[0], WIDTH, CellMeasure::Total);
    let all = cells.over_time(CellLayout::new(900.0), Units::Binary);
    let log = draw_log(&row);
    assert!(
        log.contains("Kept fill 342,2 7x7"),
        "a dot marks now: {log}"
    );
    for scene in [row, all] {
        let log = draw_log(&scene);
        assert!(!log.contains("Kept dashes"), "{log}");
        assert_sound(&scene);
    }
}

#[test]
fn out_of_memory_crosses_every_chart_and_is_named_once() {
    let oom = run(0).peak(14_000).status(Status::OutOfMemory);
    let cells = chart(&[("a()", &[run(1000)]), ("b()", &[oom])]);
    let crosses = |row: usize| {
        let scene = cells.row_scene(&cells.rows[row], WIDTH, CellMeasure::Total);
        let log = draw_log(&scene);
        (
            log.matches("Leak dashes").count(),
            log.matches("Leak line").count(),
        )
    };
    assert_eq!(crosses(0), (1, 0), "only the line");
    assert_eq!(crosses(1), (1, 2), "the line and a cross");
    let all = cells.over_time(CellLayout::new(900.0), Units::Binary);
    assert!(texts(&all).contains(&"out of memory, In [2]"));
    assert!(all.description.ends_with("One run ran out of memory."));
    assert_sound(&all);
}

#[test]
fn out_of_memory_at_the_edge_of_the_sheet_is_on_it() {
    let mut plays = vec![run(1); 400];
    plays.push(run(0).status(Status::OutOfMemory));
    let cells = chart(&[("a()", &plays)]);
    assert_sound(&cells.row_scene(&cells.rows[0], 167.44, CellMeasure::Total));
}

#[test]
fn all_cells_stand_between_nothing_and_the_capacity() {
    insta::assert_snapshot!(draw_log(
        &leaking().over_time(CellLayout::new(900.0), Units::Binary)
    ));
}

#[test]
fn in_one_column_the_names_stand_elsewhere() {
    let scene = leaking().over_time(CellLayout::new(360.0), Units::Binary);
    assert_eq!(
        texts(&scene),
        ["8 GiB", "16 GiB", "In [1]", "[2]", "[3]", "[4]", "now"]
    );
}

#[test]
fn leaks_are_a_part_of_what_is_kept() {
    let bands: Vec<String> = leaking()
        .bands()
        .iter()
        .map(|band| format!("{} {}", band.name, Units::Binary.size(band.size)))
        .collect();
    assert_eq!(
        bands,
        ["leaks 1.24 GiB", "free 14.8 GiB"],
        "nothing else is left"
    );
}

#[test]
fn what_it_is_held_against_is_a_dashed_line() {
    let mut cells = chart(&[("a()", &[run(100), run(0)])]);
    cells.hold_against(&leaking());
    let scene = cells.over_time(CellLayout::new(900.0), Units::Binary);
    assert!(draw_log(&scene).contains("Text dashes"));
    assert_sound(&scene);
    let alone = chart(&[("a()", &[run(100)])]).over_time(CellLayout::new(900.0), Units::Binary);
    assert!(!draw_log(&alone).contains("Text dashes"));
}

#[test]
fn a_run_is_read_out() {
    let cells = leaking();
    let reading = cells.reading(RunIdx(2), Units::Binary).expect("a run");
    assert_eq!(
        (&*reading.place, &*reading.name),
        ("In [3]", "losses.append(f(x))")
    );
    assert_eq!(
        reading.words,
        "run 2 of 3: kept +420 MiB, 840 MiB so far; gave back 530 MiB; all cells 1.99 GiB"
    );
    assert_eq!(cells.reading(RunIdx(9), Units::Binary), None);
}

#[test]
fn the_rest_is_a_line() {
    let check = |n_cells: i64, shown: usize, expected: &str| {
        let sources: Vec<String> = (0..n_cells).map(|n| format!("x{n} = f({n})")).collect();
        let plays: Vec<[Play; 1]> = (0..n_cells).map(|n| [run((n - 2).max(0))]).collect();
        let all: Vec<(&str, &[Play])> = sources
            .iter()
            .zip(&plays)
            .map(|(source, plays)| (source.as_str(), &plays[..]))
            .collect();
        let cells = chart(&all);
        let rest = HiddenRows {
            rows: &cells.rows[shown..],
            n_cells: cells.rows.len(),
        };
        assert_eq!(rest.describe(Units::Binary), expected);
    };
    check(5, 5, "");
    check(5, 0, "5 more cells: x4 +2 MiB, x3 +1 MiB; 3 kept nothing");
    check(3, 0, "3 more cells kept nothing");
    check(12, 0, "12 more cells: 9 kept 45 MiB in all, 3 nothing");
    check(30, 25, "5 more cells: 2 kept 3 MiB in all, 3 nothing");
}

#[test]
fn a_thousand_runs_are_no_more_than_a_screen_shows() {
    let sources: Vec<String> = (0..120).map(|n| format!("x{n} = f({n})")).collect();
    let kept = [run(1).peak(9)];
    let order = (0..1000).map(|n| (sources[n * 7 % 120].as_str(), &kept[..]));
    let cells = chart(&order.collect::<Vec<_>>());
    let alone = chart(&[("a()", &vec![run(1).peak(9); 4000])]);
    for (cells, most) in [(&cells, 60), (&alone, 900)] {
        let scene = cells.row_scene(&cells.rows[0], WIDTH, CellMeasure::Total);
        assert!(scene.items.len() < most, "{} items", scene.items.len());
        assert_sound(&scene);
        let scene = cells.over_time(CellLayout::new(900.0), Units::Binary);
        assert!(scene.items.len() < 900, "{} items", scene.items.len());
        assert_sound(&scene);
    }
}

#[test]
fn nothing_known_is_said() {
    let said = |plays: &[(&str, &[Play])]| {
        let scene = chart(plays).over_time(CellLayout::new(900.0), Units::Binary);
        texts(&scene).join(" ")
    };
    assert_eq!(
        said(&[]),
        "no run recorded yet: put %%gpumem on a cell and run it"
    );
    assert_eq!(
        said(&[("a()", &[run(1).unknown()])]),
        "what these runs kept on sim:0 is not known"
    );
}
