//! Summaries of small snapshots, damage, and arbitrary bytes.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::{
    Explorer, Flame, FlamePart, FlameSide, SnapshotChange, TorchSnapshotSummary, TraceDuration,
    summary,
};
use crate::cell_files::CellFiles;
use gpumem_model::units::Bytes;

/// Writes values as Python's pickle of protocol 2 does, without a memo.
fn put(value: &Value, into: &mut Vec<u8>) {
    match value {
        Value::Bool(yes) => into.push(if *yes { 0x88 } else { 0x89 }),
        Value::String(text) => {
            into.push(b'X');
            into.extend((text.len() as u32).to_le_bytes());
            into.extend(text.as_bytes());
        }
        Value::Array(items) => {
            into.extend(b"](");
            for item in items {
                put(item, into);
            }
            into.push(b'e');
        }
        Value::Object(entries) => {
            into.extend(b"}(");
            for (key, value) in entries {
                put(&json!(key), into);
                put(value, into);
            }
            into.push(b'u');
        }
        number => {
            into.extend(b"\x8a\x08");
            into.extend(number.as_i64().unwrap().to_le_bytes());
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
fn read(value: &Value) -> TorchSnapshotSummary {
    summary(&pickled(value), &CellFiles::default()).unwrap()
}

const MIB: i64 = 1 << 20;

fn frame(name: &str, file: &str, line: i64) -> Value {
    json!({"name": name, "filename": file, "line": line})
}

fn frames(line: i64) -> Value {
    let library = "/env/lib/python3.12/site-packages/torch/nn/functional.py";
    json!([
        frame("malloc", "CUDACachingAllocator.cpp", 0),
        frame("linear", library, 9),
        frame("step", "/srv/ada/lm/train.py", line),
        frame("<module>", "/srv/ada/lm/main.py", 1),
    ])
}

fn block(address: i64, mib: i64, state: &str, line: i64) -> Value {
    json!({
        "address": address, "size": mib * MIB, "requested_size": mib * MIB - 12,
        "state": state, "frames": frames(line),
    })
}

/// A held block of this size in bytes, without more fields.
fn held(address: i64, size: i64) -> Value {
    json!({"address": address, "size": size, "state": "active_allocated"})
}

fn segment(device: i64, mib: i64, blocks: impl IntoIterator<Item = Value>) -> Value {
    let blocks: Vec<Value> = blocks.into_iter().collect();
    json!({"device": device, "address": 1_i64 << 40, "total_size": mib * MIB, "blocks": blocks})
}

fn event(action: &str, address: i64, size: i64, line: i64) -> Value {
    at(1_000_000 + address, action, address, size, line)
}

/// An event at that microsecond.
fn at(micros: i64, action: &str, address: i64, size: i64, line: i64) -> Value {
    let place = if action == "oom" {
        "device_free"
    } else {
        "addr"
    };
    json!({"action": action, place: address, "size": size, "time_us": micros, "frames": frames(line)})
}

/// 20 MiB reserved: 6 MiB of line 7, 2 MiB that await a stream, a hole of 12 MiB.
fn some_segment(device: i64) -> Value {
    let blocks = [
        block(1, 6, "active_allocated", 7),
        block(2, 2, "active_pending_free", 8),
        block(3, 12, "inactive", 9),
    ];
    segment(device, 20, blocks)
}

fn with_trace(events: &[Value]) -> Value {
    json!({"segments": [some_segment(0)], "device_traces": [events]})
}

#[test]
fn totals_are_those_of_the_blocks() {
    let unused = segment(0, 4, [block(4, 4, "inactive", 1)]);
    let summary = read(&json!([some_segment(0), unused]));
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
fn with_fields(mut segment: Value, fields: Value) -> Value {
    let Value::Object(fields) = fields else {
        panic!("{fields} is no object")
    };
    segment.as_object_mut().unwrap().extend(fields);
    segment
}

#[test]
fn of_an_expandable_segment_unused_parts_can_be_returned() {
    // 100 MiB: 30 in use, 50 unused from 30 to 80, 20 in use; the parts from 40 to 80 are whole.
    let blocks = [
        block(1 << 40, 30, "active_allocated", 7),
        block((1 << 40) + 30 * MIB, 50, "inactive", 8),
        block((1 << 40) + 80 * MIB, 20, "active_allocated", 9),
    ];
    let parts = segment(0, 100, blocks);
    let expandable = |type_of: &str| {
        let fields = json!({"is_expandable": true, "segment_type": type_of});
        read(&json!([with_fields(parts.clone(), fields)])).devices[0].releasable
    };
    assert_eq!(expandable("large"), Bytes::mib(40));
    assert_eq!(expandable("small"), Bytes::mib(50));
    assert_eq!(read(&json!([parts])).devices[0].releasable, Bytes::ZERO);
}

#[test]
fn a_request_stands_against_the_holes_that_can_serve_it() {
    let hole = |fields| with_fields(segment(0, 90, [block(1, 90, "inactive", 1)]), fields);
    let failed = json!({"action": "oom", "size": 64 << 20, "device_free": 0, "stream": 0});
    let largest = |fields| {
        let segments = json!([some_segment(0), hole(fields)]);
        let snapshot = json!({"segments": segments, "device_traces": [[failed]]});
        read(&snapshot).devices[0].failed[0].largest_hole
    };
    assert_eq!(largest(json!({"stream": 0})), Bytes::mib(90));
    assert_eq!(largest(json!({"stream": 7})), Bytes::mib(12));
    assert_eq!(largest(json!({"segment_pool_id": [0, 1]})), Bytes::mib(12));
}

#[test]
fn bytes_belong_to_the_innermost_line_of_the_user() {
    let summary = read(&json!([some_segment(0)]));
    let owner = &summary.devices[0].owners[0];
    assert_eq!(
        owner.line.as_ref().unwrap().short(),
        "lm/train.py:7 in step"
    );
    assert_eq!((owner.bytes, owner.n_blocks), (Bytes::mib(6), 1));
}

/// A block of this size in KiB, allocated by the line of the file's function; `None` means no stack.
fn sized(kib: i64, place: Option<(&str, &str, i64)>) -> Value {
    let block = json!({
        "size": kib << 10, "requested_size": kib << 10, "state": "active_allocated",
    });
    match place {
        Some((file, name, line)) => {
            with_fields(block, json!({"frames": [frame(name, file, line)]}))
        }
        None => block,
    }
}

#[test]
fn what_an_optimizer_keeps_for_each_parameter_is_a_set() {
    const ADAM: &str = "/env/lib/python3.12/site-packages/torch/optim/adam.py";
    const SGD: &str = r"C:\env\Lib\site-packages\torch\optim\sgd.py";
    let check = |file: &str, lines: &[i64], parameters: &[i64], expected| {
        let sizes = [400, 100, 8, 8];
        let place = |line| Some((file, "_init_group", line));
        let state = lines
            .iter()
            .flat_map(|line| sizes.map(|kib| sized(kib, place(*line))));
        // A step's number for each, and activations.
        let steps = sizes.map(|_| sized(1, place(7)));
        let others = [sized(900, Some(("train.py", "forward", 3)))];
        let parameters = parameters.iter().map(|kib| sized(*kib, None));
        let blocks = state.chain(steps).chain(others).chain(parameters);
        let device = &read(&json!([segment(0, 20, blocks)])).devices[0];
        let found = device.equal_sets.as_ref().map(|it| {
            assert_eq!((it.n_blocks, it.bytes), (4, Bytes::new(516 << 10)));
            let optimizer = it.optimizer.clone().unwrap();
            (it.n_sets, optimizer, it.are_as_parameters)
        });
        assert_eq!(found, expected);
    };
    let adam = |as_parameters| Some((2, "adam".to_owned(), as_parameters));
    check(ADAM, &[1, 2], &[400, 100, 8, 8], adam(true));
    check(ADAM, &[1, 2], &[200, 50, 4, 4], adam(false));
    check(
        SGD,
        &[1],
        &[400, 100, 8, 8, 32],
        Some((1, "sgd".to_owned(), true)),
    );
    check(SGD, &[1], &[400, 100], None);
}

#[test]
fn without_stacks_sizes_that_repeat_are_sets() {
    let check = |sizes: &[(i64, usize)], expected| {
        let blocks = sizes
            .iter()
            .flat_map(|(kib, n)| vec![sized(*kib, None); *n]);
        let device = &read(&json!([segment(0, 20, blocks)])).devices[0];
        let found = device.equal_sets.as_ref();
        assert_eq!(found.map(|it| (it.n_sets, it.n_blocks)), expected);
    };
    // Twelve layers, an embedding, and a batch that is small.
    let sets = |n: usize| [(400, 12 * n), (100, 12 * n), (3000, n), (9, 1)];
    check(&sets(3), Some((3, 25)));
    check(&sets(4), Some((4, 25)));
    check(&sets(1), None);
    // Three layers of one size are not a model and its averages.
    check(&[(400, 3), (100, 3)], None);
    check(&[(400, 3), (100, 3), (8, 3), (900, 2)], None);
}

#[test]
fn a_stack_without_python_has_its_operator() {
    let owner = |name: &str| {
        let frame = |name| json!({"name": name, "filename": "??"});
        let frames = json!([
            frame("torch::unwind::unwind()"),
            frame(name),
            frame("clone")
        ]);
        let block = json!({"size": 8, "state": "active_allocated", "frames": frames});
        let summary = read(&json!([segment(0, 1, [block])]));
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
    let summary = read(&json!([3, 0, 3].map(some_segment)));
    let devices = summary.devices.iter();
    let shown: Vec<_> = devices
        .map(|device| (device.device.to_string(), device.n_segments))
        .collect();
    assert_eq!(shown, [("cuda:0".to_owned(), 1), ("cuda:3".to_owned(), 2)]);
}

#[test]
fn the_peak_is_counted_back_from_the_end() {
    // At the end 6 MiB - 12 B live at address 1, which the trace does not allocate.
    let summary = read(&with_trace(&[
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
    let summary = read(&with_trace(&[
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
    let summary = read(&with_trace(&[
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
    let error = summary(&pickled(value), &CellFiles::default()).unwrap_err();
    assert_eq!(error.to_string(), expected);
}

#[test]
fn an_error_describes_a_pickle_of_something_else() {
    for (value, expected) in [
        (
            json!({"epoch": 2, "model": 1}),
            "byte 2|dict with epoch, model",
        ),
        (json!([1, 2]), "byte 2|list of 2 items"),
        (json!(3), "byte 0|int"),
    ] {
        let words = expected.replace('|', ": not a memory snapshot of PyTorch: a pickled ");
        check_error(&value, &words);
    }
}

#[test]
fn a_wrong_field_names_the_offset_of_its_record() {
    for (value, expected) in [
        (
            json!([{"total_size": "large"}]),
            "byte 4: `total_size` is a str, not a int",
        ),
        (
            json!([{"total_size": -1}]),
            "byte 4: `total_size` is -1, not a number from 0 to 2^64-1",
        ),
        (
            json!({"segments": 1}),
            "byte 2: `segments` is a int, not a list",
        ),
    ] {
        check_error(&value, expected);
    }
}

#[test]
fn a_list_that_is_shared_a_million_times_ends() {
    // Memo 0: a segment with 20,000 blocks, each the same dict of memo 1; then 20,000 times the segment.
    let mut file = b"](}(X\x06\x00\x00\x00blocks](}\x94".to_vec();
    file.extend(b"h\x00".repeat(20_000));
    file.extend(b"eu\x94");
    file.extend(b"h\x01".repeat(20_000));
    file.extend(b"e.");
    let error = summary(&file, &CellFiles::default()).unwrap_err();
    assert!(
        error
            .to_string()
            .ends_with("shared so often that they would not end"),
        "{error}"
    );
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
    let explorer = explore(&with_trace(&[
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
    let flame = explorer.flame(0, 2, FlameSide::Outside);
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
    let inside = explorer.flame(0, 4, FlameSide::Inside);
    assert_eq!(
        named(&explorer, &inside),
        ["linear 6 MiB", "step 6 MiB", "<module> 6 MiB"]
    );
    let allocations = explorer.allocations(0);
    let lives = allocations.iter().map(|it| {
        let line = explorer.line(it.stack).and_then(|line| line.line);
        (it.from, it.until, it.bytes, line, it.owner)
    });
    let expected = [(0, None, start, Some(7), 0), (2, Some(4), mib, Some(5), 1)];
    assert_eq!(lives.collect::<Vec<_>>(), expected);
    assert_eq!(explorer.lived(0, &allocations[1]).n_events, 2);
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
        let blocks: Vec<_> = live.iter().map(|(address, size)| held(*address, *size)).collect();
        let segment = json!({"device": 0, "total_size": live.values().sum::<i64>(), "blocks": blocks});
        let explorer = explore(&json!({"segments": [segment], "device_traces": [events]}));
        let levels = explorer.levels(0);
        prop_assert_eq!(levels.allocated.len(), n_events + 1);
        for (at, level) in levels.allocated.iter().enumerate() {
            let flame = explorer.flame(0, at, FlameSide::Outside);
            prop_assert_eq!(flame.nodes[0].bytes, *level);
            for node in &flame.nodes {
                let below: Bytes = node.children.iter().map(|it| flame.nodes[*it].bytes).sum();
                prop_assert!(below <= node.bytes);
            }
        }
    }
}

#[test]
fn lines_have_the_lifetimes_of_their_blocks() {
    let summary = read(&with_trace(&[
        at(0, "alloc", 60, 100, 5),
        at(10, "alloc", 70, 100, 5),
        at(20, "alloc", 1, 6 * MIB, 7),
        at(30, "free_requested", 60, 100, 5),
        at(31, "free_completed", 60, 100, 5),
        at(40, "free_requested", 70, 100, 5),
        at(50, "oom", 9, 64 * MIB, 6),
        at(90, "free_completed", 70, 100, 5),
    ]));
    let [held, freed] = summary.devices[0].lifetimes.as_slice() else {
        panic!("two lines allocate: {:?}", summary.devices[0].lifetimes)
    };
    let lived = |n_events, micros| TraceDuration {
        n_events,
        micros: Some(micros),
    };
    let line = |it: &super::LineLifetimes| it.line.as_ref().unwrap().line;
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
    let with = |blocks: &[Value]| read(&json!([segment(0, 20, blocks.to_vec())]));
    let before = with(&[
        block(1, 6, "active_allocated", 7),
        block(2, 4, "active_allocated", 8),
        block(3, 3, "active_allocated", 9),
    ]);
    let after = with(&[
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
    let after = read(&json!([some_segment(0), some_segment(1)]));
    let before = read(&json!([some_segment(0)]));
    let change = SnapshotChange::between(&before, &after);
    let reserved: Vec<_> = change.devices.iter().map(|it| it.reserved).collect();
    let mib = Bytes::mib;
    assert_eq!(reserved, [(mib(20), mib(20)), (Bytes::ZERO, mib(20))]);
    assert_eq!(change.devices[1].stacks[0].n_blocks, (0, 1));
}

#[test]
fn cells_are_named_in_place_of_their_files() {
    let frame = |name, line| frame(name, "/tmp/ipykernel_4711/3427300630.py", line);
    let frames = json!({"frames": [frame("step", 2), frame("<module>", 5)]});
    let block = with_fields(held(1, MIB), frames);
    let file = pickled(&json!([segment(0, 1, [block])]));
    let cells = CellFiles::new([("x = 1", "In [3]")]);
    let summary = summary(&file, &cells).unwrap();
    let frames = summary.devices[0].stacks[0].frames.iter();
    let frames: Vec<_> = frames.map(|it| it.short()).collect();
    assert_eq!(frames, ["In [3]:2 in step", "In [3]:5"]);
    let explorer = Explorer::open(&file, &cells).unwrap();
    assert!(explorer.frames.iter().all(|frame| frame.is_user));
}

#[test]
fn what_holds_a_block_is_below_its_stack_while_it_lives() {
    let named = |address, name| {
        with_fields(
            held(address, MIB),
            json!({"frames": [frame(name, "held by", 0)]}),
        )
    };
    let explorer = explore(&json!({
        "segments": [segment(0, 2, [named(60, "losses[0]"), named(61, "losses[7]")])],
        "device_traces": [[
            event("alloc", 60, MIB, 5),
            event("free_requested", 60, MIB, 5),
            event("alloc", 60, MIB, 6),
        ]],
    }));
    let shown = |n_events| named_parts(&explorer, n_events);
    assert_eq!(
        shown(1).last().unwrap(),
        "losses[] 1 MiB",
        "of the one that stays"
    );
    assert!(!shown(1).contains(&"losses[] 2 MiB".to_owned()));
    let end = explorer.flame(0, 3, FlameSide::Inside);
    assert_eq!(self::named(&explorer, &end)[0], "losses[] 2 MiB");
}

fn named_parts(explorer: &Explorer, n_events: usize) -> Vec<String> {
    let mut named = named(explorer, &explorer.flame(0, n_events, FlameSide::Outside));
    named.sort_by_key(|it| it.starts_with("losses"));
    named
}
