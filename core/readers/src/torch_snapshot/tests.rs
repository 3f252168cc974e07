//! Summaries of small snapshots, damage, and arbitrary bytes.

use proptest::prelude::*;

use super::{
    Explorer, Flame, FlamePart, Lived, Side, SnapshotChange, Summary, summary, summary_in,
};
use crate::cell_files::CellFiles;
use gpumem_model::units::Bytes;

/// Writes values as Python's pickle of protocol 2 does, without a memo.
#[derive(Clone)]
enum Value {
    Int(i64),
    True,
    Text(&'static str),
    List(Vec<Value>),
    Dict(Vec<(&'static str, Value)>),
}

use Value::{Dict, Int, List, Text, True};

fn put(value: &Value, into: &mut Vec<u8>) {
    match value {
        Int(number) => {
            into.extend(b"\x8a\x08");
            into.extend(number.to_le_bytes());
        }
        True => into.push(0x88),
        Text(text) => {
            into.push(b'X');
            into.extend((text.len() as u32).to_le_bytes());
            into.extend(text.as_bytes());
        }
        List(items) => {
            into.extend(b"](");
            for item in items {
                put(item, into);
            }
            into.push(b'e');
        }
        Dict(entries) => {
            into.extend(b"}(");
            for (key, value) in entries {
                put(&Text(key), into);
                put(value, into);
            }
            into.push(b'u');
        }
    }
}

fn pickled(value: &Value) -> Vec<u8> {
    let mut bytes = b"\x80\x02".to_vec();
    put(value, &mut bytes);
    bytes.push(b'.');
    bytes
}

#[track_caller]
fn read(value: &Value) -> Summary {
    summary(&pickled(value)).unwrap()
}

const MIB: i64 = 1 << 20;

fn frames(line: i64) -> Value {
    let frame = |name, file, line| {
        Dict(vec![
            ("name", Text(name)),
            ("filename", Text(file)),
            ("line", Int(line)),
        ])
    };
    List(vec![
        frame("malloc", "CUDACachingAllocator.cpp", 0),
        frame(
            "linear",
            "/env/lib/python3.12/site-packages/torch/nn/functional.py",
            9,
        ),
        frame("step", "/srv/ada/lm/train.py", line),
        frame("<module>", "/srv/ada/lm/main.py", 1),
    ])
}

fn block(address: i64, mib: i64, state: &'static str, line: i64) -> Value {
    Dict(vec![
        ("address", Int(address)),
        ("size", Int(mib * MIB)),
        ("requested_size", Int(mib * MIB - 12)),
        ("state", Text(state)),
        ("frames", frames(line)),
    ])
}

fn segment(device: i64, mib: i64, blocks: Vec<Value>) -> Value {
    Dict(vec![
        ("device", Int(device)),
        ("address", Int(1 << 40)),
        ("total_size", Int(mib * MIB)),
        ("blocks", List(blocks)),
    ])
}

fn event(action: &'static str, address: i64, size: i64, line: i64) -> Value {
    Dict(vec![
        ("action", Text(action)),
        (
            if action == "oom" {
                "device_free"
            } else {
                "addr"
            },
            Int(address),
        ),
        ("size", Int(size)),
        ("time_us", Int(1_000_000 + address)),
        ("frames", frames(line)),
    ])
}

/// 20 MiB reserved: 6 MiB of line 7, 2 MiB that await a stream, a hole of 12 MiB.
fn some_segment(device: i64) -> Value {
    segment(
        device,
        20,
        vec![
            block(1, 6, "active_allocated", 7),
            block(2, 2, "active_pending_free", 8),
            block(3, 12, "inactive", 9),
        ],
    )
}

fn with_trace(events: Vec<Value>) -> Value {
    Dict(vec![
        ("segments", List(vec![some_segment(0)])),
        ("device_traces", List(vec![List(events)])),
    ])
}

#[test]
fn totals_are_those_of_the_blocks() {
    let summary = read(&List(vec![
        some_segment(0),
        segment(0, 4, vec![block(4, 4, "inactive", 1)]),
    ]));
    let device = &summary.devices[0];
    assert_eq!(device.reserved, Bytes::mib(24));
    assert_eq!(device.allocated, Bytes::mib(6));
    assert_eq!(device.active, Bytes::mib(8));
    assert_eq!(device.inactive, Bytes::mib(16));
    assert_eq!(device.releasable, Bytes::mib(4));
    assert_eq!(device.largest_hole, Bytes::mib(12));
    assert_eq!(
        (
            device.n_segments,
            device.n_blocks,
            device.n_allocated_blocks
        ),
        (2, 4, 1)
    );
    assert!(!device.is_inconsistent);
}

/// A segment with more fields than sizes.
fn with_fields(segment: Value, fields: Vec<(&'static str, Value)>) -> Value {
    match segment {
        Dict(mut all) => {
            all.extend(fields);
            Dict(all)
        }
        other => other,
    }
}

#[test]
fn of_an_expandable_segment_unused_parts_can_be_returned() {
    // 100 MiB: 30 in use, 50 unused from 30 to 80, 20 in use; the parts from 40 to 80 are whole.
    let parts = segment(
        0,
        100,
        vec![
            block(1 << 40, 30, "active_allocated", 7),
            block((1 << 40) + 30 * MIB, 50, "inactive", 8),
            block((1 << 40) + 80 * MIB, 20, "active_allocated", 9),
        ],
    );
    let expandable = |type_of| {
        let fields = vec![("is_expandable", True), ("segment_type", Text(type_of))];
        let summary = read(&List(vec![with_fields(parts.clone(), fields)]));
        summary.devices[0].releasable
    };
    assert_eq!(expandable("large"), Bytes::mib(40));
    assert_eq!(expandable("small"), Bytes::mib(50));
    assert_eq!(read(&List(vec![parts])).devices[0].releasable, Bytes::ZERO);
}

#[test]
fn a_request_stands_against_the_holes_that_can_serve_it() {
    let hole = |fields| with_fields(segment(0, 90, vec![block(1, 90, "inactive", 1)]), fields);
    let failed = Dict(vec![
        ("action", Text("oom")),
        ("size", Int(64 << 20)),
        ("device_free", Int(0)),
        ("stream", Int(0)),
    ]);
    let largest = |fields| {
        let snapshot = Dict(vec![
            ("segments", List(vec![some_segment(0), hole(fields)])),
            ("device_traces", List(vec![List(vec![failed.clone()])])),
        ]);
        read(&snapshot).devices[0].failed[0].largest_hole
    };
    assert_eq!(largest(vec![("stream", Int(0))]), Bytes::mib(90));
    assert_eq!(largest(vec![("stream", Int(7))]), Bytes::mib(12));
    let pool = List(vec![Int(0), Int(1)]);
    assert_eq!(largest(vec![("segment_pool_id", pool)]), Bytes::mib(12));
}

#[test]
fn bytes_belong_to_the_innermost_line_of_the_user() {
    let summary = read(&List(vec![some_segment(0)]));
    let owner = &summary.devices[0].owners[0];
    assert_eq!(
        owner.line.as_ref().unwrap().short(),
        "lm/train.py:7 in step"
    );
    assert_eq!((owner.bytes, owner.n_blocks), (Bytes::mib(6), 1));
}

#[test]
fn a_stack_without_python_is_told_by_its_operator() {
    let owner = |name| {
        let frame = |name| Dict(vec![("name", Text(name)), ("filename", Text("??"))]);
        let frames = List(vec![
            frame("torch::unwind::unwind()"),
            frame(name),
            frame("clone"),
        ]);
        let mut block = vec![("size", Int(8)), ("state", Text("active_allocated"))];
        block.push(("frames", frames));
        let summary = read(&List(vec![segment(0, 1, vec![Dict(block)])]));
        summary.devices[0].owners[0].line.as_ref().unwrap().short()
    };
    assert_eq!(
        owner("torch::autograd::generated::BmmBackward0::apply(std::vector<at::Tensor>)"),
        "BmmBackward0 in a backward pass"
    );
    assert_eq!(
        owner("main"),
        "no frame of Python: a backward pass, or another thread"
    );
}

#[test]
fn devices_come_in_order() {
    let summary = read(&List(vec![
        some_segment(3),
        some_segment(0),
        some_segment(3),
    ]));
    let devices = summary.devices.iter();
    let shown: Vec<_> = devices
        .map(|device| (device.device.to_string(), device.n_segments))
        .collect();
    assert_eq!(shown, [("cuda:0".to_owned(), 1), ("cuda:3".to_owned(), 2)]);
}

#[test]
fn the_peak_is_counted_back_from_the_end() {
    // At the end 6 MiB - 12 B live at address 1, which the trace does not allocate.
    let summary = read(&with_trace(vec![
        event("free_requested", 50, 3000, 1),
        event("alloc", 60, 500, 21),
        event("alloc", 70, 9000, 22),
        event("free_requested", 60, 500, 1),
        event("free_completed", 60, 500, 1),
        event("free_requested", 70, 9000, 1),
    ]));
    let timeline = summary.devices[0].timeline.as_ref().unwrap();
    let end = u64::try_from(6 * MIB - 12).unwrap();
    assert_eq!(timeline.at_end, Bytes::new(end));
    assert_eq!(timeline.at_start, Bytes::new(end + 3000));
    assert_eq!(timeline.peak, Bytes::new(end + 9500));
    assert_eq!(timeline.peak_event, Some(2));
    assert_eq!(timeline.peak_after_micros, Some(20));
    assert_eq!(timeline.n_bytes_from_before, Bytes::ZERO);
    let owners = timeline.owners.iter();
    let owners: Vec<_> = owners
        .map(|owner| {
            (
                owner.line.as_ref().unwrap().line.unwrap(),
                owner.bytes.get(),
            )
        })
        .collect();
    assert_eq!(owners, [(7, end), (22, 9000), (21, 500)]);
    assert!(!timeline.is_lower_bound);
}

#[test]
fn what_was_freed_without_its_allocation_has_no_owner() {
    let summary = read(&with_trace(vec![
        event("alloc", 60, 100, 21),
        event("free_requested", 50, 3000, 1),
        event("free_requested", 60, 100, 1),
    ]));
    let timeline = summary.devices[0].timeline.as_ref().unwrap();
    assert_eq!(timeline.peak_event, Some(0));
    assert_eq!(timeline.n_bytes_from_before, Bytes::new(3000));
}

#[test]
fn a_failed_request_knows_what_came_after_it() {
    let summary = read(&with_trace(vec![
        event("oom", 5 * MIB, 13 * MIB, 33),
        event("alloc", 60, 100, 21),
        event("oom", 6 * MIB, 14 * MIB, 34),
    ]));
    let failed = &summary.devices[0].failed;
    let shown: Vec<_> = failed
        .iter()
        .map(|failed| (failed.wanted, failed.driver_free.unwrap(), failed.n_later))
        .collect();
    assert_eq!(
        shown,
        [
            (Bytes::mib(13), Bytes::mib(5), 1),
            (Bytes::mib(14), Bytes::mib(6), 0)
        ]
    );
}

#[track_caller]
fn check_error(value: &Value, expected: &str) {
    assert_eq!(summary(&pickled(value)).unwrap_err().to_string(), expected);
}

#[test]
fn what_is_no_snapshot_says_what_it_is() {
    check_error(
        &Dict(vec![("model", Int(1)), ("epoch", Int(2))]),
        "byte 2: not a memory snapshot of PyTorch: a pickled dict with model, epoch",
    );
    check_error(
        &List(vec![Int(1), Int(2)]),
        "byte 2: not a memory snapshot of PyTorch: a pickled list of 2 items",
    );
    check_error(
        &Int(3),
        "byte 0: not a memory snapshot of PyTorch: a pickled int",
    );
}

#[test]
fn a_wrong_field_is_told_with_the_offset_of_its_record() {
    check_error(
        &List(vec![Dict(vec![("total_size", Text("large"))])]),
        "byte 4: `total_size` is a str, not a int",
    );
    check_error(
        &List(vec![Dict(vec![("total_size", Int(-1))])]),
        "byte 4: `total_size` is -1, not a number from 0 to 2^64-1",
    );
    check_error(
        &Dict(vec![("segments", Int(1))]),
        "byte 2: `segments` is a int, not a list",
    );
}

#[test]
fn a_list_that_is_shared_a_million_times_ends() {
    // Memo 0: a segment with 20,000 blocks, each the same dict of memo 1; then 20,000 times the segment.
    let mut file = b"](}(X\x06\x00\x00\x00blocks](}\x94".to_vec();
    file.extend(b"h\x00".repeat(20_000));
    file.extend(b"eu\x94");
    file.extend(b"h\x01".repeat(20_000));
    file.extend(b"e.");
    let error = summary(&file).unwrap_err();
    assert!(
        error
            .to_string()
            .ends_with("shared so often that they would not end"),
        "{error}"
    );
}

proptest! {
    #[test]
    fn mutated_snapshots_never_panic(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
        cut in any::<prop::sample::Index>(),
        is_cut in any::<bool>(),
    ) {
        let events = vec![event("alloc", 60, 100, 21), event("oom", 50, 3000, 1), event("free_requested", 60, 100, 2)];
        let mut bytes = pickled(&with_trace(events));
        for (at, byte) in changes {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        if is_cut {
            bytes.truncate(cut.index(bytes.len()));
        }
        if let Err(error) = summary(&bytes) {
            prop_assert!(error.offset <= bytes.len());
        }
    }
}

fn explore(value: &Value) -> Explorer {
    Explorer::open(&pickled(value), &CellFiles::default()).unwrap()
}

/// `function bytes`, for each node below the first.
fn named(explorer: &Explorer, flame: &Flame) -> Vec<String> {
    let nodes = flame.nodes.iter().skip(1).map(|node| {
        let frame = node.part.frame().map(|frame| &explorer.frames[frame]);
        let name = match node.part {
            FlamePart::Holder(idx) => &explorer.holders[idx as usize],
            _ => frame.map_or("unknown", |frame| &frame.line.function),
        };
        format!("{name} {}", node.bytes)
    });
    nodes.collect()
}

#[test]
fn any_moment_of_the_trace_can_be_explored() {
    let explorer = explore(&with_trace(vec![
        event("segment_alloc", 1, 20 * MIB, 1),
        event("alloc", 70, MIB, 5),
        event("oom", 9, 64 * MIB, 6),
        event("free_requested", 70, MIB, 5),
    ]));
    let (start, mib) = (Bytes::new(6 * (1 << 20) - 12), Bytes::mib(1));
    let levels = explorer.levels(0);
    assert_eq!(
        levels.allocated,
        [start, start, start + mib, start + mib, start]
    );
    let reserved = [0, 20, 20, 20, 20].map(Bytes::mib);
    assert_eq!(levels.reserved, reserved);
    assert_eq!(explorer.failures(0), [3]);
    assert_eq!(explorer.micros(0, 1), Some(69));
    let flame = explorer.flame(0, 2, Side::Outside);
    assert_eq!(flame.nodes[0].bytes, start + mib);
    let shown = [
        "<module> 7 MiB",
        "step 6 MiB",
        "linear 6 MiB",
        "step 1 MiB",
        "linear 1 MiB",
    ];
    let mut found = named(&explorer, &flame);
    found.sort_by_key(|it| shown.iter().position(|name| name == it));
    assert_eq!(found, shown, "frames of C++ are left out");
    assert_eq!(flame.above(2).len(), 2);
    let inside = explorer.flame(0, 4, Side::Inside);
    assert_eq!(
        named(&explorer, &inside),
        ["linear 6 MiB", "step 6 MiB", "<module> 6 MiB"]
    );
}

proptest! {
    #[test]
    fn what_lives_is_what_the_level_says(
        steps in prop::collection::vec((0_i64..12, 1_i64..1 << 30), 0..60),
    ) {
        let mut live = std::collections::BTreeMap::new();
        let mut events = Vec::new();
        for (address, size) in steps {
            let address = 1000 + address;
            if let Some(size) = live.remove(&address) {
                events.push(event("free_requested", address, size, 5));
            } else {
                live.insert(address, size);
                events.push(event("alloc", address, size, 5));
            }
        }
        let n_events = events.len();
        let blocks = live.iter().map(|(address, size)| {
            Dict(vec![
                ("address", Int(*address)),
                ("size", Int(*size)),
                ("state", Text("active_allocated")),
            ])
        });
        let size = live.values().sum::<i64>();
        let segment = Dict(vec![
            ("device", Int(0)),
            ("total_size", Int(size)),
            ("blocks", List(blocks.collect())),
        ]);
        let explorer = explore(&Dict(vec![
            ("segments", List(vec![segment])),
            ("device_traces", List(vec![List(events)])),
        ]));
        let levels = explorer.levels(0);
        prop_assert_eq!(levels.allocated.len(), n_events + 1);
        for (at, level) in levels.allocated.iter().enumerate() {
            let flame = explorer.flame(0, at, Side::Outside);
            prop_assert_eq!(flame.nodes[0].bytes, *level);
            for node in &flame.nodes {
                let below: Bytes = node.children.iter().map(|it| flame.nodes[*it].bytes).sum();
                prop_assert!(below <= node.bytes);
            }
        }
    }
}

/// An event at that microsecond.
fn at(micros: i64, event: Value) -> Value {
    let Dict(mut fields) = event else {
        unreachable!("events are dicts")
    };
    for (name, value) in &mut fields {
        if *name == "time_us" {
            *value = Int(micros);
        }
    }
    Dict(fields)
}

#[test]
fn lines_are_told_how_long_their_blocks_lived() {
    let summary = read(&with_trace(vec![
        at(0, event("alloc", 60, 100, 5)),
        at(10, event("alloc", 70, 100, 5)),
        at(20, event("alloc", 1, 6 * MIB, 7)),
        at(30, event("free_requested", 60, 100, 5)),
        at(31, event("free_completed", 60, 100, 5)),
        at(40, event("free_requested", 70, 100, 5)),
        at(50, event("oom", 9, 64 * MIB, 6)),
        at(90, event("free_completed", 70, 100, 5)),
    ]));
    let [held, freed] = summary.devices[0].lifetimes.as_slice() else {
        panic!("two lines allocate: {:?}", summary.devices[0].lifetimes)
    };
    let lived = |n_events, micros| Lived {
        n_events,
        micros: Some(micros),
    };
    let line = |it: &super::Lifetimes| it.line.as_ref().unwrap().line;
    assert_eq!(
        (line(held), line(freed)),
        (Some(7), Some(5)),
        "by bytes × time"
    );
    assert_eq!(
        (held.n_blocks, held.n_left, held.left),
        (1, 1, Bytes::mib(6))
    );
    assert_eq!((held.longest, held.longest_wait), (lived(5, 70), None));
    assert_eq!(
        (freed.n_blocks, freed.n_left, freed.bytes),
        (2, 0, Bytes::new(200))
    );
    assert_eq!((freed.median, freed.longest), (lived(3, 30), lived(4, 30)));
    let waited = "a free that is done at once is no wait";
    assert_eq!(freed.longest_wait, Some(lived(2, 50)), "{waited}");
}

#[test]
fn two_snapshots_are_compared_by_stack() {
    let with = |blocks| read(&List(vec![segment(0, 20, blocks)]));
    let before = with(vec![
        block(1, 6, "active_allocated", 7),
        block(2, 4, "active_allocated", 8),
        block(3, 3, "active_allocated", 9),
    ]);
    let after = with(vec![
        block(1, 6, "active_allocated", 7),
        block(3, 2, "active_allocated", 9),
        block(5, 5, "active_allocated", 9),
        block(6, 7, "inactive", 9),
    ]);
    let change = SnapshotChange::between(&before, &after);
    let [device] = change.devices.as_slice() else {
        panic!("one device: {change:?}")
    };
    assert_eq!(device.reserved, (Bytes::mib(20), Bytes::mib(20)));
    assert_eq!(device.allocated, (Bytes::mib(13), Bytes::mib(13)));
    let shown = device.stacks.iter().map(|it| {
        let lines: Vec<_> = it.whose.iter().filter_map(|frame| frame.line).collect();
        (lines, it.grown().to_string(), it.n_blocks)
    });
    let expected = [
        (vec![8, 1], "−4 MiB".to_owned(), (1, 0)),
        (vec![9, 1], "+4 MiB".to_owned(), (1, 2)),
    ];
    assert_eq!(
        shown.collect::<Vec<_>>(),
        expected,
        "line 7 has what it had"
    );
}

#[test]
fn a_device_of_one_snapshot_alone_is_compared_with_nothing() {
    let after = read(&List(vec![some_segment(0), some_segment(1)]));
    let before = read(&List(vec![some_segment(0)]));
    let change = SnapshotChange::between(&before, &after);
    let reserved: Vec<_> = change.devices.iter().map(|it| it.reserved).collect();
    let mib = Bytes::mib;
    assert_eq!(reserved, [(mib(20), mib(20)), (Bytes::ZERO, mib(20))]);
    assert_eq!(change.devices[1].stacks[0].n_blocks, (0, 1));
}

#[test]
fn cells_are_named_in_place_of_their_files() {
    let frame = |name, line| {
        Dict(vec![
            ("name", Text(name)),
            ("filename", Text("/tmp/ipykernel_4711/3427300630.py")),
            ("line", Int(line)),
        ])
    };
    let block = Dict(vec![
        ("size", Int(MIB)),
        ("state", Text("active_allocated")),
        ("frames", List(vec![frame("step", 2), frame("<module>", 5)])),
    ]);
    let file = pickled(&List(vec![segment(0, 1, vec![block])]));
    let cells = CellFiles::of([("x = 1", "In [3]")]);
    let summary = summary_in(&file, &cells).unwrap();
    let frames = summary.devices[0].stacks[0].frames.iter();
    let frames: Vec<_> = frames.map(|it| it.short()).collect();
    assert_eq!(frames, ["In [3]:2 in step", "In [3]:5"]);
    let explorer = Explorer::open(&file, &cells).unwrap();
    assert!(explorer.frames.iter().all(|frame| frame.is_user));
}

#[test]
fn what_holds_a_block_is_below_its_stack_while_it_lives() {
    let named = |address, name| {
        let frame = Dict(vec![
            ("name", Text(name)),
            ("filename", Text("held by")),
            ("line", Int(0)),
        ]);
        Dict(vec![
            ("address", Int(address)),
            ("size", Int(MIB)),
            ("state", Text("active_allocated")),
            ("frames", List(vec![frame])),
        ])
    };
    let explorer = explore(&Dict(vec![
        (
            "segments",
            List(vec![segment(
                0,
                2,
                vec![named(60, "losses[0]"), named(61, "losses[7]")],
            )]),
        ),
        (
            "device_traces",
            List(vec![List(vec![
                event("alloc", 60, MIB, 5),
                event("free_requested", 60, MIB, 5),
                event("alloc", 60, MIB, 6),
            ])]),
        ),
    ]));
    let shown = |n_events| named_parts(&explorer, n_events);
    assert_eq!(
        shown(1).last().unwrap(),
        "losses[] 1 MiB",
        "of the one that stays"
    );
    assert!(!shown(1).contains(&"losses[] 2 MiB".to_owned()));
    let end = explorer.flame(0, 3, Side::Inside);
    assert_eq!(self::named(&explorer, &end)[0], "losses[] 2 MiB");
}

fn named_parts(explorer: &Explorer, n_events: usize) -> Vec<String> {
    let mut named = named(explorer, &explorer.flame(0, n_events, Side::Outside));
    named.sort_by_key(|it| it.starts_with("losses"));
    named
}
