//! Small captures: levels, failures, ranges.

use proptest::prelude::*;

use gpumem_explorer::formats::Content;
use gpumem_model::units::{ByteDelta, Bytes, Nanos};
use gpumem_readers::level_log::LevelKind;
use gpumem_readers::nsight::{
    CallTally, Capture, FailedCall, MemoryEvent, NsightExport, NvtxRange,
};

const PID: u64 = 4211 << 24;

fn event(at_nanos: i64, address: u64, mib: u64, is_free: bool) -> MemoryEvent {
    MemoryEvent {
        at_nanos,
        global_pid: PID,
        device: 0,
        address,
        bytes: mib << 20,
        kind: 2,
        is_free,
    }
}

fn range(start_nanos: i64, end_nanos: Option<i64>, name: &str) -> NvtxRange {
    NvtxRange {
        start_nanos,
        end_nanos,
        global_tid: PID + 7,
        name: name.into(),
    }
}

fn captured(events: Vec<MemoryEvent>, ranges: Vec<NvtxRange>) -> Capture {
    Capture {
        has_memory: true,
        events,
        ranges,
        ..Capture::default()
    }
}

fn summed_up(events: Vec<MemoryEvent>, ranges: Vec<NvtxRange>) -> NsightExport {
    captured(events, ranges).summed_up()
}

/// The report of events on a device of `capacity_mib`.
fn text_of(events: Vec<MemoryEvent>, capacity_mib: u64) -> String {
    let mut capture = captured(events, vec![]);
    capture.devices = [(0, (None, Some(Bytes::mib(capacity_mib))))].into();
    capture.summed_up().text(200)
}

/// First, peak and last in MiB.
#[track_caller]
fn check_level(export: &NsightExport, kind: LevelKind, expected: [u64; 3]) {
    let device = &export.log.devices[0];
    let named = device.levels.iter().find(|it| it.kind == kind).unwrap();
    let it = &named.series;
    let mib = [it.first, it.peak, it.last].map(|bytes| bytes.get() >> 20);
    assert_eq!(mib, expected);
}

#[test]
fn events_are_levels_in_the_order_of_time() {
    let export = summed_up(
        vec![
            event(30, 1, 5, true),
            event(10, 1, 5, false),
            event(20, 2, 3, false),
        ],
        vec![],
    );
    check_level(&export, LevelKind::Device, [5, 8, 3]);
    assert_eq!(export.log.devices[0].processes[0].pid, 4211);
    assert_eq!(export.log.notes, [""; 0]);
}

#[test]
fn levels_before_the_capture_are_not_negative() {
    let export = summed_up(vec![event(10, 9, 4, true), event(20, 1, 1, false)], vec![]);
    check_level(&export, LevelKind::Device, [4, 4, 1]);
    assert_eq!(export.log.notes.len(), 1);
}

#[test]
fn a_block_that_is_only_freed_was_there_before() {
    let events = vec![
        event(1, 0x10, 100, false),
        event(2, 0x20, 50, true),
        event(3, 0x30, 10, false),
        // Its allocation was lost: it did not exist before.
        event(4, 0x20, 50, true),
    ];
    let export = summed_up(events, vec![range(0, Some(9), "step")]);
    check_level(&export, LevelKind::Device, [50, 150, 110]);
    let process = &export.log.devices[0].processes[0].levels[0].series;
    assert_eq!(
        (process.first, process.last),
        (Bytes::mib(50), Bytes::mib(110))
    );
    assert_eq!(export.ranges[0].kept, ByteDelta::new(60 << 20));
    assert_eq!(export.log.notes.len(), 1);
}

#[test]
fn addresses_of_two_processes_are_separate() {
    for address in [0x20, 0] {
        let other = MemoryEvent {
            global_pid: 4212 << 24,
            ..event(1, address, 100, false)
        };
        let export = summed_up(vec![other, event(2, address, 100, true)], vec![]);
        check_level(&export, LevelKind::Device, [100, 200, 100]);
        let processes = &export.log.devices[0].processes;
        let shown = processes.iter().map(|it| {
            let series = &it.levels[0].series;
            (it.pid, series.first.get() >> 20, series.last.get() >> 20)
        });
        assert_eq!(
            shown.collect::<Vec<_>>(),
            [(4211, 100, 0), (4212, 100, 100)]
        );
    }
}

#[test]
fn a_small_rise_is_reported() {
    let events = vec![event(1, 1, 100, false), event(2, 2, 150, false)];
    let text = text_of(events, 40 << 10);
    let words =
        "no device's memory rose clearly: GPU 0 by 150 MiB, and less than 410 MiB does not count";
    assert!(text.contains(words), "{text}");
    assert!(!text.contains("hardly changed"), "{text}");
}

#[test]
fn a_free_has_its_allocation_s_size_and_lost_blocks_go() {
    let export = summed_up(
        vec![
            event(1, 1, 5, false),
            event(2, 1, 2, false),
            event(3, 1, 0, true),
        ],
        vec![],
    );
    check_level(&export, LevelKind::Device, [5, 5, 0]);
}

#[test]
fn pinned_memory_is_a_level_of_its_own() {
    let pinned = MemoryEvent {
        kind: 1,
        ..event(15, 7, 64, false)
    };
    let export = summed_up(
        vec![event(10, 1, 5, false), pinned],
        vec![range(0, None, "all")],
    );
    check_level(&export, LevelKind::Device, [5, 5, 5]);
    check_level(&export, LevelKind::Pinned, [64, 64, 64]);
    assert_eq!(export.ranges[0].kept, ByteDelta::new(5 << 20));
}

#[test]
fn ranges_are_runs() {
    let export = summed_up(
        vec![
            event(10, 1, 5, false),
            event(15, 2, 9, false),
            event(16, 2, 9, true),
            event(30, 3, 1, false),
            event(50, 3, 1, true),
        ],
        vec![
            range(9, Some(20), "step"),
            range(29, Some(40), "step"),
            range(45, None, "step"),
            range(0, Some(5), "load"),
        ],
    );
    let step = &export.ranges[0];
    assert_eq!((step.name.as_str(), step.n, step.n_grew), ("step", 3, 2));
    assert_eq!(
        (step.kept, step.most_kept),
        (ByteDelta::new(5 << 20), ByteDelta::new(5 << 20))
    );
    assert_eq!((step.peak, step.duration), (Bytes::mib(14), Nanos::new(27)));
    assert_eq!(export.ranges[1].kept, ByteDelta::ZERO);
    assert_eq!(export.n_ranges, 4);
}

#[test]
fn a_failed_call_has_the_levels_of_its_time() {
    let ranges = vec![
        range(0, Some(100), "epoch"),
        range(15, Some(30), "step"),
        range(31, None, "x"),
    ];
    let mut capture = captured(vec![event(10, 1, 5, false)], ranges);
    capture.failed.push(FailedCall {
        at_nanos: 20,
        global_tid: PID + 7,
        function: "cudaMalloc_v3020".to_owned(),
        code: 2,
    });
    let export = capture.clone().summed_up();
    let failure = &export.failed[0];
    assert_eq!(
        (failure.function.as_str(), failure.pid),
        ("cudaMalloc", 4211)
    );
    assert_eq!(failure.allocated, Some(Bytes::mib(5)));
    assert_eq!(failure.ranges, ["epoch", "step"]);
    let text = export.text(200);
    let line = "▲ out of memory: cudaMalloc of process 4211 failed 20 ns after the start · it had 5 MiB · in epoch › step";
    assert!(text.contains(line), "{text}");
    capture.has_memory = false;
    capture.events.clear();
    let text = capture.summed_up().text(100);
    assert!(
        text.contains("`nsys profile --cuda-memory-usage=true`"),
        "{text}"
    );
}

#[test]
fn without_memory_calls_are_counted() {
    let mut malloc = CallTally::new("cudaMalloc_v3020");
    malloc.add(Nanos::new(1000));
    malloc.add(Nanos::new(3000));
    let mut free = CallTally::new("cudaFree_v3020");
    free.add(Nanos::new(9000));
    let capture = Capture {
        has_results: true,
        calls: Some(vec![malloc, free]),
        ..Capture::default()
    };
    let text = capture.summed_up().text(100);
    let table = "\
no allocation failed

   calls       time    longest  call
       1       9 µs       9 µs  cudaFree
       2       4 µs       3 µs  cudaMalloc";
    assert!(text.ends_with(table), "{text}");
}

#[test]
fn without_results_no_call_succeeded() {
    let text = Capture::default().summed_up().text(100);
    let words =
        "whether an allocation failed was not recorded: this takes `nsys profile --trace=cuda`";
    assert!(text.contains(words), "{text}");
    assert!(!text.contains("no allocation failed"), "{text}");
}

#[test]
fn pinned_memory_is_no_share_of_the_device() {
    let pinned = MemoryEvent {
        kind: 1,
        ..event(2, 2, 900, false)
    };
    let later = MemoryEvent {
        at_nanos: 3,
        address: 9,
        ..pinned
    };
    let held = [event(1, 1, 10, false), event(2, 3, 90, false)];
    let text = text_of([&held[..], &[pinned, later]].concat(), 1000);
    assert!(text.contains("peak 100 MiB (10 %)"), "{text}");
    assert!(text.contains("peak 1.76 GiB · "), "{text}");
    // Pinned memory alone fills no device.
    let text = text_of(vec![pinned], 900);
    assert!(!text.contains("nearly full"), "{text}");
}

proptest! {
    #[test]
    fn the_peak_of_ranges_is_that_of_a_plain_loop(
        sizes in prop::collection::vec((any::<bool>(), 0_u64..5), 1..1500),
        start in 0_i64..1500,
        length in 0_i64..1500,
    ) {
        let mut events = Vec::new();
        for (at, (is_free, mib)) in (0_i64..).zip(&sizes) {
            events.push(event(at, 0, *mib, *is_free));
        }
        let end = start + length;
        let export = summed_up(events, vec![range(start, Some(end), "r")]);
        let (mut level, mut levels) = (0_i64, vec![0]);
        for (is_free, mib) in &sizes {
            let mib = mib.cast_signed();
            level += if *is_free { -mib } else { mib };
            levels.push(level);
        }
        let lowest = *levels.iter().min().unwrap();
        let until = |at: i64| (at as usize + 1).min(sizes.len());
        let peak = levels[until(start)..=until(end)].iter().max().unwrap() - lowest;
        prop_assert_eq!(export.ranges[0].peak.get() >> 20, peak.cast_unsigned());
        let kept = levels[until(end)] - levels[until(start)];
        prop_assert_eq!(export.ranges[0].kept, ByteDelta::new(kept << 20));
    }
}
