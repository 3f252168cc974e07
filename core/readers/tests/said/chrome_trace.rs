//! Small traces, damage, and arbitrary changes of valid files.

use proptest::prelude::*;

use gpumem_analyzer::GrowthVerdict;
use gpumem_explorer::formats::torch_trace;
use gpumem_model::units::{ByteDelta, Bytes, Nanos};
use gpumem_readers::cell_files::CellFiles;
use gpumem_readers::chrome_trace::{
    GroupBy, OperatorColumn, OperatorView, RowKind, TraceExplorer, TraceSummary, summary,
};
use gpumem_readers::json_file::JsonError;

fn read(events: &[String]) -> TraceSummary {
    let file = format!(
        r#"{{"schemaVersion": 1, "traceEvents": [{}]}}"#,
        events.join(",")
    );
    parse(&file).expect("it is whole")
}

fn parse(file: &str) -> Result<TraceSummary, JsonError> {
    summary(file.as_bytes(), &CellFiles::default())
}

fn span(category: &str, name: &str, thread: u32, (start, end): (u32, u32)) -> String {
    let duration = end - start;
    format!(
        r#"{{"ph": "X", "cat": "{category}", "name": "{name}", "pid": 1, "tid": {thread}, "ts": {start}, "dur": {duration}}}"#
    )
}

fn op(name: &str, thread: u32, extent: (u32, u32)) -> String {
    span("cpu_op", name, thread, extent)
}

fn memory(at: u32, bytes: i64, total: Option<i64>) -> String {
    let total = total.map_or_else(String::new, |total| {
        format!(r#", "Total Allocated": {total}, "Total Reserved": 9000"#)
    });
    let address = bytes.abs() * 1024;
    format!(
        r#"{{"ph": "i", "name": "[memory]", "pid": 1, "tid": 7, "ts": {at}, "args": {{"Device Type": 1, "Device Id": 0, "Addr": {address}, "Bytes": {bytes}{total}}}}}"#
    )
}

fn with_args(event: &str, args: &str) -> String {
    let end = event.len() - 1;
    format!(r#"{}, "args": {{{args}}}}}"#, &event[..end])
}

fn linked(category: &str, name: &str, extent: (u32, u32), link: i64) -> String {
    let args = format!(r#""correlation": {link}"#);
    with_args(&span(category, name, 7, extent), &args)
}

fn shaped(name: &str, dims: &str, extent: (u32, u32)) -> String {
    with_args(&op(name, 7, extent), &format!(r#""Input Dims": {dims}"#))
}

#[track_caller]
fn check_levels(events: &[String], expected: [i64; 3]) -> TraceSummary {
    let summary = read(events);
    let device = &summary.devices[0];
    let found = [device.at_start, device.peak, device.at_end];
    assert_eq!(found, expected.map(ByteDelta::new));
    summary
}

#[track_caller]
fn check_own(events: &[String], expected: &[(&str, u64, u64)]) {
    let summary = read(events);
    let rows = summary.operators.iter();
    let rows: Vec<_> = rows
        .map(|row| (&*row.name, row.total.get() / 1000, row.own.get() / 1000))
        .collect();
    assert_eq!(rows, expected);
}

#[test]
fn levels_are_in_the_order_of_time() {
    let events = [
        memory(30, -200, Some(1000)),
        memory(10, 200, Some(1200)),
        memory(20, 50, Some(1250)),
    ];
    let summary = check_levels(&events, [1000, 1250, 1000]);
    let device = &summary.devices[0];
    assert!(device.is_absolute);
    assert_eq!(device.peak_reserved, Some(Bytes::new(9000)));
    assert_eq!(
        device.peak_place.as_ref().map(|place| place.after),
        Some(Nanos::new(10_000))
    );
}

#[test]
fn without_totals_levels_are_relative() {
    let events = [
        memory(10, 200, None),
        memory(20, -500, None),
        memory(30, 100, None),
    ];
    let summary = check_levels(&events, [0, 200, -200]);
    assert!(!summary.devices[0].is_absolute);
}

#[test]
fn own_time_is_without_operators_inside() {
    let nested = [
        op("inner", 7, (20, 30)),
        op("outer", 7, (10, 50)),
        op("inner", 7, (30, 35)),
    ];
    check_own(&nested, &[("outer", 40, 25), ("inner", 15, 15)]);
    // Ranges between them do not count.
    let ranged = [
        op("outer", 7, (10, 50)),
        span("user_annotation", "part", 7, (10, 50)),
        op("inner", 7, (10, 50)),
    ];
    check_own(&ranged, &[("inner", 40, 40), ("outer", 40, 0)]);
    let threads = [op("one", 7, (10, 50)), op("two", 8, (20, 30))];
    check_own(&threads, &[("one", 40, 40), ("two", 10, 10)]);
    // A call inside of its like takes no further time.
    let alike = [op("mean", 7, (0, 100)), op("mean", 7, (10, 60))];
    check_own(&alike, &[("mean", 100, 100)]);
}

#[test]
fn kernels_belong_to_the_operator_that_launched_them() {
    let events = [
        op("aten::mm", 7, (0, 50)),
        linked("cuda_runtime", "cudaLaunchKernel", (10, 12), 5),
        linked("kernel", "sgemm", (100, 170), 5),
    ];
    let summary = read(&events);
    let rows: Vec<_> = summary
        .operators
        .iter()
        .map(|row| (&*row.name, row.on_device))
        .collect();
    let nothing = Nanos::new(0);
    assert_eq!(
        rows,
        [
            ("aten::mm", Nanos::new(70_000)),
            ("cudaLaunchKernel", nothing)
        ]
    );
    assert_eq!(summary.kernels[0].total, Nanos::new(70_000));
    assert_eq!(summary.duration, Nanos::new(170_000));
}

#[test]
fn what_is_never_freed_has_an_owner() {
    let events = [
        op("aten::linear", 7, (0, 50)),
        op("aten::empty", 7, (5, 20)),
        memory(10, 300, Some(800)),
        memory(60, 20, Some(820)),
        memory(70, -20, Some(800)),
    ];
    let summary = check_levels(&events, [500, 820, 800]);
    let owners = summary.devices[0]
        .owners_at_end
        .as_deref()
        .expect("addresses are there");
    let [owner] = owners else {
        panic!("{owners:?}");
    };
    assert_eq!((owner.bytes, owner.n_blocks), (Bytes::new(300), 1));
    assert_eq!(owner.operator.as_deref(), Some("aten::linear"));
    assert_eq!(owner.allocated_by.as_deref(), Some("aten::empty"));
    let text = torch_trace(&summary, GroupBy::Name, 100);
    assert!(text.contains("aten::linear › aten::empty"), "{text}");
    assert!(
        text.contains("500 B                allocated before the trace"),
        "{text}"
    );
}

fn steps(n: u32, kept: i64) -> Vec<String> {
    let step = |n: u32| {
        let (at, total) = (100 * n, i64::from(n) * kept + 500_000_000);
        [
            span(
                "user_annotation",
                &format!("ProfilerStep#{n}"),
                7,
                (at, at + 90),
            ),
            span("user_annotation", "forward", 7, (at + 5, at + 40)),
            memory(at + 10, kept + 77, Some(total + kept + 77)),
            memory(at + 50, -77, Some(total + kept)),
        ]
    };
    (0..n).flat_map(step).collect()
}

#[test]
fn steps_and_ranges_have_what_they_kept() {
    let summary = read(&steps(3, 4096));
    let found: Vec<_> = summary
        .ranges
        .iter()
        .map(|range| {
            let memory = range.memory[0];
            (
                &*range.name,
                range.is_step,
                range.parent_idx,
                memory.kept.get(),
                memory.peak.get() - 500_000_000,
            )
        })
        .collect();
    assert_eq!(
        found,
        [
            ("ProfilerStep#0", true, None, 4096, 4173),
            ("forward", false, Some(0), 4173, 4173),
            ("ProfilerStep#1", true, None, 4096, 8269),
            ("forward", false, Some(2), 4173, 8269),
            ("ProfilerStep#2", true, None, 4096, 12365),
            ("forward", false, Some(4), 4173, 12365),
        ]
    );
}

#[track_caller]
fn check_growth(events: &[String], expected: GrowthVerdict, words: &str) {
    let summary = read(events);
    let growth = summary.devices[0].growth.as_ref().expect("there are steps");
    assert_eq!(growth.state, expected);
    let text = torch_trace(&summary, GroupBy::Name, 100);
    assert!(text.contains(words), "{text}");
}

#[test]
fn growth_from_step_to_step_is_judged_as_for_cells() {
    check_growth(
        &steps(12, 7 << 20),
        GrowthVerdict::Leak,
        "▲ cuda:0 grows: +7 MiB every step, over 12 steps",
    );
    check_growth(
        &steps(12, 0),
        GrowthVerdict::Stable,
        "cuda:0 does not grow from step to step, over 12 steps",
    );
    check_growth(
        &steps(3, 7 << 20),
        GrowthVerdict::NotEnoughData,
        "cuda:0 changed by +14 MiB over 3 steps; 6 more steps would",
    );
}

#[test]
fn shapes_and_modules_make_rows_of_their_own() {
    let events = [
        span("python_function", "nn.Module: Linear_0", 7, (0, 8)),
        shaped("mm", "[[2, 3], []]", (1, 6)),
        shaped("mm", "[[9, 9]]", (10, 15)),
        shaped("mm", "[[9, 9]]", (20, 25)),
    ];
    let summary = read(&events);
    let rows = |by| -> Vec<_> {
        let rows = summary.operators_by(by).iter();
        rows.map(|row| (row.within.as_deref(), row.n_calls))
            .collect()
    };
    assert_eq!(rows(GroupBy::Name), [(None, 3)]);
    assert_eq!(
        rows(GroupBy::Shapes),
        [(Some("[[9, 9]]"), 2), (Some("[[2, 3], []]"), 1)]
    );
    assert_eq!(rows(GroupBy::Module), [(None, 2), (Some("Linear_0"), 1)]);
}

#[test]
fn modules_that_differ_in_their_number_are_one_owner() {
    let mut events = Vec::new();
    for (at, (module, bytes)) in (0..).zip([
        ("Linear_0", 1000),
        ("Linear_1", 2000),
        ("Linear_39", 3000),
        ("Block_7", 10),
    ]) {
        let start = 10 * at;
        let name = format!("nn.Module: {module}");
        events.push(span("python_function", &name, 7, (start, start + 8)));
        events.push(op("aten::empty", 7, (start + 1, start + 7)));
        events.push(memory(start + 2, bytes, Some(9000)));
    }
    let summary = read(&events);
    let owners = summary.devices[0].owners_at_end.as_ref().unwrap();
    let shown: Vec<_> = owners
        .iter()
        .map(|it| (it.module.as_deref().unwrap(), it.bytes.get(), it.n_blocks))
        .collect();
    assert_eq!(shown, [("Linear_0 … 39", 6000, 3), ("Block_7", 10, 1)]);
}

#[test]
fn functions_make_rows_and_cells_are_named() {
    let step = "/tmp/ipykernel_4711/3427300630.py(9): step";
    let events = [
        span("python_function", "train.py(30): main", 7, (0, 40)),
        span("python_function", step, 7, (10, 30)),
        span("python_function", "torch/_tensor.py(4): sum", 7, (12, 20)),
        op("aten::sum", 7, (13, 19)),
        memory(14, 4096, Some(4096)),
        op("aten::ones", 7, (31, 35)),
    ];
    let file = format!(r#"{{"traceEvents": [{}]}}"#, events.join(","));
    let cells = CellFiles::new([("x = 1", "In [3]")]);
    let summary = summary(file.as_bytes(), &cells).expect("it is whole");
    let rows = summary.operators_by(GroupBy::Function).iter();
    let rows: Vec<_> = rows
        .map(|row| (&*row.name, row.within.as_deref()))
        .collect();
    let expected = [
        ("aten::sum", Some("step (In [3]:9)")),
        ("aten::ones", Some("main (train.py:30)")),
    ];
    assert_eq!(rows, expected);
    let text = torch_trace(&summary, GroupBy::Function, 100);
    assert!(text.contains("aten::sum · step (In [3]:9)"), "{text}");
    assert!(
        text.contains(", in aten::sum, in step (In [3]:9)"),
        "{text}"
    );
    assert!(read(&events[3..]).by_function.is_empty());
}

#[test]
fn a_trace_of_another_program_is_refused() {
    let event = r#"{"ph": "X", "name": "fib", "pid": 7, "tid": 7, "ts": 1, "dur": 2}"#;
    let refused = parse(&format!(r#"{{"traceEvents": [{event}]}}"#));
    let refused = refused.expect_err("not PyTorch's").to_string();
    assert!(
        refused.contains("it has 1 event, but no operator"),
        "{refused}"
    );
    assert!(parse(&format!(r#"{{"traceEvents": [{event}], "trace_id": "F"}}"#)).is_ok());
}

#[test]
fn a_trace_with_memory_gives_no_hint_to_profile_it() {
    let text = |header: &str| {
        let file = format!(r#"{{{header}"traceEvents": []}}"#);
        torch_trace(&parse(&file).expect("it is whole"), GroupBy::Name, 100)
    };
    assert!(text("").contains("profile with `profile_memory=True`"));
    let text = text(r#""profile_memory": 1, "#);
    assert!(text.contains("no memory was allocated or freed"), "{text}");
}

#[test]
fn failed_requests_come_first() {
    let event = memory(40, 4096, Some(100)).replace("[memory]", "[OutOfMemory]");
    let text = torch_trace(&read(&[event]), GroupBy::Name, 100);
    assert!(
        text.contains("\n▲ out of memory on cuda:0: 4 KiB wanted, 100 B allocated"),
        "{text}"
    );
}

#[track_caller]
fn check_refused(file: &str, words: &str) {
    let error = parse(file).expect_err("it is no trace").to_string();
    assert!(error.contains(words), "{error}");
}

#[test]
fn an_error_describes_a_file_of_something_else() {
    let form = "a trace of PyTorch's profiler, which is an object or a list of events";
    for (file, words) in [
        (
            r#"{"cells": [], "metadata": {}}"#,
            "a JSON object with cells, metadata, without `traceEvents`",
        ),
        ("{}", "a JSON object with nothing"),
        ("7", form),
        (
            r#"{"traceEvents": [7]}"#,
            "byte 17: invalid type: integer `7`, expected an event",
        ),
        (
            r#"{"traceEvents": [{"ph": "X""#,
            "byte 27: the file ends inside the JSON",
        ),
    ] {
        check_refused(file, words);
    }
}

#[test]
fn deep_nesting_is_no_trouble() {
    let n = 30_000;
    let events: Vec<String> = (0..n).map(|n| op("deep", 7, (n, 100_000 - n))).collect();
    assert_eq!(read(&events).operators[0].n_calls, n as usize);
    let lists = format!(r#"{{"traceEvents": [{{"args": {}"#, "[".repeat(1 << 20));
    check_refused(&lists, "the file ends inside the JSON");
}

proptest! {
    #[test]
    fn a_peak_is_never_below_a_level(changes in prop::collection::vec((0_u32..50, -99_i64..99), 1..60), start in 0_u32..50, length in 0_u32..50) {
        let mut events: Vec<String> = changes.iter().map(|(at, bytes)| memory(*at, *bytes, None)).collect();
        events.push(span("user_annotation", "part", 7, (start, start + length)));
        let summary = read(&events);
        let device = &summary.devices[0];
        prop_assert!(device.peak >= device.at_end && device.peak >= device.at_start);
        let mut sorted = changes;
        sorted.sort_by_key(|(at, _)| *at);
        let level = |until: &dyn Fn(u32) -> bool| -> i64 {
            sorted.iter().filter(|(at, _)| until(*at)).map(|(_, bytes)| bytes).sum()
        };
        let before = level(&|at| at < start);
        let within = sorted.iter().filter(|(at, _)| (start..=start + length).contains(at));
        let peak = within.scan(before, |level, (_, bytes)| { *level += bytes; Some(*level) }).max();
        let memory = summary.ranges[0].memory[0];
        prop_assert_eq!(memory.kept.get(), level(&|at| at <= start + length) - before);
        prop_assert_eq!(memory.peak.get(), peak.unwrap_or(before).max(before));
    }
}

/// Two calls of `linear`, each with one of `mm`, and a kernel.
fn explorer() -> TraceExplorer {
    let events = [
        span("user_annotation", "step", 7, (0, 100)),
        shaped("linear", "[[0]]", (0, 40)),
        memory(5, 100, None),
        shaped("mm", "[[10]]", (10, 30)),
        memory(15, 1000, None),
        linked("cuda_runtime", "launch", (20, 22), 5),
        linked("kernel", "Gemm", (50, 57), 5),
        shaped("linear", "[[60]]", (60, 90)),
        shaped("mm", "[[70]]", (70, 80)),
        memory(75, -400, None),
    ];
    let file = format!(r#"{{"traceEvents": [{}]}}"#, events.join(","));
    TraceExplorer::open(file.as_bytes(), &CellFiles::default()).expect("it is whole")
}

fn by(column: OperatorColumn, search: &str) -> OperatorView {
    OperatorView {
        search: search.to_owned(),
        is_kernel: None,
        column,
        is_descending: true,
    }
}

/// Rows by total time: name, calls, total and own time in microseconds, bytes and own bytes.
#[track_caller]
fn check_rows(within: Option<(u64, u64)>, expected: &[&str]) {
    let explorer = explorer();
    let table = explorer.table(GroupBy::Name, 0);
    let within = within.map(|(from, to)| (Nanos::new(from * 1000), Nanos::new(to * 1000)));
    let figures = table.figures(&explorer, within);
    let shown = table.shown(&explorer, &figures, &by(OperatorColumn::TotalTime, ""));
    let rows = shown.iter().map(|&row| {
        let it = &figures[row];
        let (total, own) = (it.total.get() / 1000, it.own.get() / 1000);
        let (bytes, own_bytes) = (it.memory.get(), it.own_memory.get());
        let name = table.name(&explorer, row);
        format!("{name} {} {total} {own} {bytes} {own_bytes}", it.n_calls)
    });
    assert_eq!(rows.collect::<Vec<_>>(), expected);
}

#[test]
fn calls_of_a_part_include_memory_of_operators_inside() {
    let all = [
        "linear 2 70 40 700 100",
        "mm 2 30 28 600 600",
        "Gemm 1 7 7 0 0",
        "launch 1 2 2 0 0",
    ];
    check_rows(None, &all);
    check_rows(
        Some((60, 100)),
        &["linear 1 30 20 -400 0", "mm 1 10 10 -400 -400"],
    );
    check_rows(Some((30, 59)), &["Gemm 1 7 7 0 0"]);
    check_rows(Some((95, 100)), &[]);
}

#[test]
fn all_calls_have_the_figures_of_the_summary() {
    let explorer = explorer();
    for by in [GroupBy::Name, GroupBy::Shapes] {
        let table = explorer.table(by, 0);
        let figures = table.figures(&explorer, None);
        for row in (0..table.n_rows()).filter(|row| table.kind(*row) != RowKind::Kernel) {
            let name = (table.name(&explorer, row), table.within(&explorer, row));
            let mut rows = explorer.summary.operators_by(by).iter();
            let same =
                rows.find(|it| (&*it.name, it.within.as_deref().unwrap_or_default()) == name);
            let same = same.expect("it is in the summary");
            let kept = same
                .memory_on(0)
                .map_or(ByteDelta::ZERO, |memory| memory.kept);
            let it = &figures[row];
            assert_eq!(
                (it.n_calls, it.total, it.own, it.on_device, it.own_memory),
                (same.n_calls, same.total, same.own, same.on_device, kept)
            );
        }
    }
}

#[test]
fn rows_are_sorted_by_any_column_and_found_by_letters_and_kind() {
    use OperatorColumn::{Calls, DeviceTime, Name, SelfMemory, Within};
    let ascending = |column| OperatorView {
        is_descending: false,
        ..by(column, "")
    };
    let kernels = OperatorView {
        is_kernel: Some(true),
        ..by(Name, "")
    };
    let explorer = explorer();
    let check = |group, view: &OperatorView, expected: &str| {
        let table = explorer.table(group, 0);
        let shown = table.shown(&explorer, &table.figures(&explorer, None), view);
        let names: Vec<_> = shown
            .iter()
            .map(|row| table.name(&explorer, *row))
            .collect();
        assert_eq!(names.join(" "), expected);
    };
    for (view, expected) in [
        // Equal ones by name.
        (by(Calls, ""), "linear mm Gemm launch"),
        (ascending(Name), "Gemm launch linear mm"),
        (ascending(SelfMemory), "Gemm launch linear mm"),
        (by(DeviceTime, ""), "Gemm mm launch linear"),
        (by(Name, "M"), "mm Gemm"),
        (kernels, "Gemm"),
        (by(Name, "conv"), ""),
    ] {
        check(GroupBy::Name, &view, expected);
    }
    check(GroupBy::Shapes, &by(Within, "[[70"), "mm");
}
