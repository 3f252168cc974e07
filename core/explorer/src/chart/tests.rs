//! What is drawn of small trees and traces.

use proptest::prelude::*;

use crate::chart::*;
use gpumem_model::units::{ByteDelta, Bytes, Nanos, Units};
use gpumem_readers::chrome_trace::{TraceLevels, TraceRange};
use gpumem_readers::code_line::CodeLine;
use gpumem_readers::torch_snapshot::{
    Allocation, ExplorerFrame, Flame, FlameNames, FlameNode, FlamePart, SnapshotLevels,
};
use gpumem_scene::draw_log::texts;
use gpumem_scene::{Density, Item, Point, Role};

fn frame(function: &str, is_user: bool) -> ExplorerFrame {
    let line = CodeLine {
        file: "train.py".to_owned(),
        line: Some(3),
        function: function.to_owned(),
    };
    ExplorerFrame { line, is_user }
}

fn node(part: FlamePart, mib: u64, parent: usize, children: &[usize]) -> FlameNode {
    FlameNode {
        part,
        bytes: Bytes::mib(mib),
        n_blocks: 1,
        parent,
        children: children.to_vec(),
    }
}

/// `main` calls `step` for 30 of 40 MiB.
fn called() -> (Flame, Vec<ExplorerFrame>) {
    let nodes = vec![
        node(FlamePart::All, 40, 0, &[1]),
        node(FlamePart::Frame(0), 40, 0, &[2, 3]),
        node(FlamePart::Frame(1), 30, 1, &[]),
        node(FlamePart::Frame(2), 10, 1, &[]),
    ];
    let frames = ["main", "step", "linear"].map(|name| frame(name, name != "linear"));
    (Flame { nodes }, frames.to_vec())
}

fn named(frames: &[ExplorerFrame]) -> FlameNames<'_> {
    FlameNames {
        frames,
        holders: &[],
    }
}

fn drawn(root: usize, search: &str) -> Vec<(String, f64, Role)> {
    let (flame, frames) = called();
    let view = IcicleView {
        width: 400.0,
        root,
        search: search.to_owned(),
        units: Units::Binary,
    };
    let icicle = icicle(&flame, named(&frames), &view);
    let fills = icicle.scene.items.iter().filter_map(|item| match item {
        Item::Fill { role, .. } => Some(*role),
        _ => None,
    });
    let words = |node: usize| match flame.nodes[node].part.frame() {
        Some(frame) => frames[frame].line.function.clone(),
        None => "all".to_owned(),
    };
    let bars = icicle.bars.iter().zip(fills);
    bars.map(|((rect, node), role)| (words(*node), rect.width, role))
        .collect()
}

#[test]
fn frames_are_as_wide_as_their_bytes_and_the_users_stand_out() {
    let expected = [
        ("all", 400.0, Role::CacheArea),
        ("main", 400.0, Role::KeptArea),
        ("step", 300.0, Role::KeptArea),
        ("linear", 100.0, Role::CacheArea),
    ];
    let expected = expected.map(|(name, width, role)| (name.to_owned(), width, role));
    assert_eq!(drawn(0, ""), expected);
}

#[test]
fn a_root_fills_the_width_below_its_callers() {
    let names: Vec<(String, f64)> = drawn(2, "").into_iter().map(|it| (it.0, it.1)).collect();
    let expected = ["all", "main", "step"].map(|name| (name.to_owned(), 400.0));
    assert_eq!(names, expected);
}

#[test]
fn what_is_searched_stands_out() {
    let bars = drawn(0, "LIN");
    let found = bars.iter().filter(|it| it.2 == Role::KeptArea);
    assert_eq!(
        found.map(|it| it.0.as_str()).collect::<Vec<_>>(),
        ["linear"]
    );
}

#[test]
fn a_point_has_the_frame_that_is_drawn_there() {
    let (flame, frames) = called();
    let view = IcicleView {
        width: 400.0,
        ..IcicleView::default()
    };
    let icicle = icicle(&flame, named(&frames), &view);
    assert_eq!(icicle.at(Point::new(350.0, 45.0)), Some(3));
    assert_eq!(icicle.at(Point::new(350.0, 500.0)), None);
}

fn view(span: (f64, f64), moment: usize) -> TraceView<'static> {
    TraceView {
        width: 478.0,
        density: Density(1.0),
        span,
        moment,
        failures: &[],
        allocations: &[],
        pointed: None,
        micros: &|event| Some(event as u64 * 1500),
        units: Units::Binary,
    }
}

#[test]
fn a_short_peak_of_a_long_trace_is_drawn_at_its_height() {
    let mut allocated = vec![Bytes::mib(1); 100_001];
    allocated[50_000] = Bytes::mib(64);
    let levels = SnapshotLevels {
        reserved: vec![Bytes::mib(64); 100_001],
        allocated,
    };
    let scene = trace_levels(&levels, &view((0.0, 100_000.0), 50_000)).scene;
    let tops = scene.items.iter().filter_map(|item| match item {
        Item::Fill { rect, .. } => Some(rect.y),
        _ => None,
    });
    assert!(tops.fold(f64::MAX, f64::min) < 23.0);
    let scene = trace_levels(&levels, &view((0.0, 100_000.0), 50_000)).scene;
    let said = texts(&scene);
    assert!(said.contains(&"64 MiB"), "{said:?}");
    assert!(said.contains(&"100000 · 2 min 29 s"), "{said:?}");
}

fn block(from: usize, until: Option<usize>, bytes: Bytes) -> Allocation {
    Allocation {
        from,
        until,
        bytes,
        stack: None,
        owner: from,
    }
}

const MIB: f64 = 1_048_576.0;

/// 40 MiB that stay, 20 that come and go, 30 that come then, and 5 of small ones that one line allocated.
fn with_blocks() -> (SnapshotLevels, Vec<Allocation>) {
    let levels = |mib: &[u64]| mib.iter().copied().map(Bytes::mib).collect();
    let small = [block(2, Some(3), Bytes::new(512 << 10)); 10];
    let allocations = [
        &[
            block(0, None, Bytes::mib(40)),
            block(1, Some(3), Bytes::mib(20)),
        ],
        &small[..],
        &[block(3, None, Bytes::mib(30))],
    ];
    let levels = SnapshotLevels {
        allocated: levels(&[40, 60, 70, 80]),
        reserved: levels(&[100; 4]),
    };
    (levels, allocations.concat())
}

#[test]
fn a_block_is_a_band_while_it_lives_above_those_that_are_older() {
    let (levels, allocations) = with_blocks();
    let view = TraceView {
        allocations: &allocations,
        pointed: Some(BandOf::Block(12)),
        ..view((0.0, 4.0), 0)
    };
    let chart = trace_levels(&levels, &view);
    // 100 columns an event, and 176 pixels for 100 MiB.
    let found = chart.bands.iter().map(|TraceBand { rect, of, bytes }| {
        let (left, right) = (rect.x - 66.0, rect.x - 66.0 + rect.width);
        (*of, left..right, bytes.as_f64() / MIB, rect.height / 1.76)
    });
    let expected = [
        (BandOf::Block(1), 100.0..300.0, 20.0),
        (BandOf::Line(2), 200.0..300.0, 5.0),
        (BandOf::Block(0), 0.0..400.0, 40.0),
        (BandOf::Block(12), 300.0..400.0, 30.0),
    ];
    let expected = expected.map(|(of, columns, mib)| (of, columns, mib, mib));
    let found: Vec<_> = found
        .map(|(of, columns, mib, height)| (of, columns, mib, height.round()))
        .collect();
    assert_eq!(found, expected);
    let at = |column: f64, mib: f64| {
        let point = Point::new(66.0 + column, 198.0 - mib * 1.76);
        chart.at(point).map(|band| band.of)
    };
    assert_eq!(at(150.0, 50.0), Some(BandOf::Block(1)));
    assert_eq!(at(350.0, 50.0), Some(BandOf::Block(12)));
    assert_eq!(at(250.0, 62.0), Some(BandOf::Line(2)));
    // Of the rest nothing is known.
    assert_eq!(at(250.0, 68.0), None);
    let roles = chart.scene.items.iter().filter_map(|item| match item {
        Item::Fill { rect, role, .. } => Some((rect.x - 66.0, *role)),
        _ => None,
    });
    let roles: Vec<_> = roles.collect();
    assert!(roles.contains(&(300.0, Role::Watch)), "{roles:?}");
    assert!(roles.contains(&(200.0, Role::KeptArea)), "{roles:?}");
}

proptest! {
    #[test]
    fn any_view_of_any_trace_is_drawn(
        levels in prop::collection::vec(0_u64..1 << 40, 0..50),
        span in (-10.0..60.0_f64, -10.0..60.0_f64),
        moment in 0_usize..60,
        lives in prop::collection::vec((0_usize..60, 0_usize..60, 0_u64..1 << 40), 0..20),
    ) {
        let levels: Vec<Bytes> = levels.into_iter().map(Bytes::new).collect();
        let levels = SnapshotLevels { reserved: levels.clone(), allocated: levels };
        let mut allocations: Vec<Allocation> = lives
            .iter()
            .map(|(from, lived, n)| block(*from, Some(from + lived), Bytes::new(*n)))
            .collect();
        allocations.sort_by_key(|it| it.from);
        let view = TraceView { allocations: &allocations, ..view(span, moment) };
        let chart = trace_levels(&levels, &view);
        for TraceBand { rect, .. } in &chart.bands {
            prop_assert!(rect.y >= 21.0 && rect.y + rect.height <= 199.0, "{rect:?}");
        }
        for item in &chart.scene.items {
            if let Item::Fill { rect, .. } = item {
                prop_assert!(rect.y.is_finite() && rect.height >= -1e-6);
            }
        }
    }
}

fn range(depth: usize, start: u64, duration: u64) -> TraceRange {
    TraceRange {
        name: "forward".to_owned(),
        is_step: depth == 0,
        parent_idx: None,
        depth,
        start: Nanos::new(start),
        duration: Nanos::new(duration),
        memory: Vec::new(),
    }
}

fn changes(changes: &[(u64, i64)]) -> TraceLevels {
    TraceLevels {
        times: changes.iter().map(|it| Nanos::new(it.0)).collect(),
        allocated: changes.iter().map(|it| ByteDelta::new(it.1)).collect(),
        ..TraceLevels::default()
    }
}

fn profiler_view(span: (f64, f64)) -> ProfilerView<'static> {
    ProfilerView {
        width: 278.0,
        density: Density(1.0),
        span,
        chosen: None,
        cursor: None,
        calls: &[],
        ranges: &[],
        lanes: &[],
        units: Units::Binary,
    }
}

/// Of 200 columns, how many have each role.
fn n_columns(chart: &ProfilerChart, wanted: Role) -> usize {
    let items = chart.scene.items.iter();
    let fills = items.filter(|item| match item {
        Item::Fill { rect, role, .. } => *role == wanted && rect.height > 0.0,
        _ => false,
    });
    fills.count()
}

#[test]
fn columns_are_marked_while_a_call_runs() {
    let levels = changes(&[(0, 100), (500, 200)]);
    let calls = [
        (Nanos::new(100), Nanos::new(199)),
        (Nanos::new(150), Nanos::new(299)),
    ];
    let view = ProfilerView {
        calls: &calls,
        ..profiler_view((0.0, 1000.0))
    };
    let chart = profiler_chart(Some(&levels), &view);
    // Above, and in the strip of calls.
    assert_eq!(n_columns(&chart, Role::Kept), 2 * 40);
    assert_eq!(n_columns(&chart, Role::KeptArea), 160);
    let later = profiler_chart(
        Some(&levels),
        &ProfilerView {
            span: (300.0, 1000.0),
            ..view
        },
    );
    assert_eq!(n_columns(&later, Role::Kept), 0);
}

#[test]
fn a_short_peak_is_drawn_and_levels_hold_until_a_change() {
    let levels = changes(&[(0, 100), (500, 6400), (501, 100)]);
    let chart = profiler_chart(Some(&levels), &profiler_view((0.0, 1_000_000.0)));
    assert!(chart.scene.description.contains("at most 6.25 KiB"));
    let chart = profiler_chart(Some(&levels), &profiler_view((600.0, 900.0)));
    assert!(chart.scene.description.contains("at most 100 B"));
}

#[test]
fn a_range_is_found_where_it_is_drawn() {
    let ranges = [range(0, 0, 1000), range(1, 500, 250)];
    let lanes = lanes(&ranges);
    let view = ProfilerView {
        ranges: &ranges,
        lanes: &lanes,
        ..profiler_view((0.0, 1000.0))
    };
    let chart = profiler_chart(None, &view);
    let found: Vec<_> = chart
        .ranges
        .iter()
        .map(|(rect, idx)| (rect.x, rect.width, *idx))
        .collect();
    assert_eq!(found, [(66.0, 199.0, 0), (166.0, 49.0, 1)]);
    let (rect, _) = chart.ranges[1];
    assert_eq!(chart.at(Point::new(rect.x + 5.0, rect.y + 5.0)), Some(1));
    assert_eq!(chart.at(Point::new(rect.x - 5.0, rect.y + 5.0)), None);
}

#[test]
fn of_a_thousand_ranges_in_a_pixel_one_is_drawn() {
    let ranges: Vec<TraceRange> = (0..1000).map(|at| range(0, at, 1)).collect();
    let lanes = lanes(&ranges);
    let view = ProfilerView {
        ranges: &ranges,
        lanes: &lanes,
        ..profiler_view((0.0, 1_000_000.0))
    };
    assert!(profiler_chart(None, &view).ranges.len() <= 2);
}

#[test]
fn an_instant_has_the_digits_that_its_step_shows() {
    let check = |at, step, words| assert_eq!(instant_words(at, step), words);
    check(1_234_567.0, 1000.0, "1.235 ms");
    check(2_000_000_000.0, 1e8, "2 s");
    check(7.0, 1.0, "7 ns");
}

proptest! {
    #[test]
    fn any_view_of_any_profile_is_drawn(
        at in prop::collection::vec((0_u64..1000, i64::MIN..i64::MAX), 0..50),
        spans in prop::collection::vec((0_usize..20, 0_u64..1000, 0_u64..1000), 0..50),
        (from, length) in (0.0..900.0_f64, 0.0..1000.0_f64),
    ) {
        let mut at = at;
        at.sort_unstable();
        let mut ranges: Vec<TraceRange> = spans.iter().map(|it| range(it.0, it.1, it.2)).collect();
        ranges.sort_by_key(|range| range.start);
        let lanes = lanes(&ranges);
        let calls: Vec<_> = ranges.iter().map(|it| (it.start, it.start + it.duration)).collect();
        let view = ProfilerView {
            ranges: &ranges,
            lanes: &lanes,
            calls: &calls,
            chosen: Some((from, from + 1.0)),
            ..profiler_view((from, from + length))
        };
        let chart = profiler_chart(Some(&changes(&at)), &view);
        for item in &chart.scene.items {
            if let Item::Fill { rect, .. } = item {
                prop_assert!(rect.y.is_finite() && rect.height >= -1e-6 && rect.width >= 0.0);
            }
        }
    }
}
