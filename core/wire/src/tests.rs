//! What was written reads the same; what was not written by us never panics.

use proptest::prelude::*;
use serde::Deserialize as _;
use serde_json::{Map, Value, json};

use super::*;
use gpumem_analyzer::{Rules, Warning, analyze};
use gpumem_model::downsample::{Downsampler, Spacing};
use gpumem_model::holders::{
    Bound, DeviceHolders, GrowsIn, Holder, HolderBranch, HolderOrigin, IpythonRetention, Keeper,
    LibraryObject, NameLevel, Outlived, Remainder, RootKind, SharedMemory, StorageUse, Traits,
    Twin, WayOut,
};
use gpumem_model::recording::{
    AllocationTally, AllocatorLevels, Cell, CellIdx, Changes, ChildGroup, ChildHandle, Device,
    DeviceIdx, DeviceKind, DriverLevels, Finish, FrameOrigin, Framework, HolderSnapshot, Level,
    LifetimeClass, LineTally, Loop, LoopIdx, LoopKind, ModuleTally, OomFigures, OomHolder,
    OtherProcess, OutOfMemory, OutsideReading, Points, Reading, Revision, Run, RunIdx, RunKind,
    RunLevels, Sample, Samples, SegmentSnapshot, Series, Source, SourceHash, SourceState,
    StackTally, Status, Trace, TracedPeak, Unknown,
};
use gpumem_model::segments::{self, Block, BlockState, Pool, Segment, Segments};
use gpumem_model::units::{ByteDelta, Bytes, Nanos};

fn level() -> impl Strategy<Value = Level> {
    prop_oneof![
        any::<u64>().prop_map(|n| Level::Known(Bytes::new(n))),
        Just(Level::Unknown(Unknown::NotRead)),
        Just(Level::Unknown(Unknown::NotReported)),
        Just(Level::Unknown(Unknown::NotPermitted)),
        ".*".prop_map(|words| Level::Unknown(Unknown::Withheld(words.into()))),
        ".*".prop_map(|words| Level::Unknown(Unknown::Failed(words.into()))),
    ]
}

prop_compose! {
    fn child_group()(
        began_in in prop::option::of(Just(RunIdx(0))),
        handle in prop::sample::select(ChildHandle::ALL.as_slice()),
        [n, pid] in any::<[u32; 2]>(),
        [n_bytes, age] in any::<[u64; 2]>(),
        name in ".*",
    ) -> ChildGroup {
        let (n_bytes, age) = (Bytes::new(n_bytes), Nanos::new(age));
        ChildGroup { began_in, handle, n, n_bytes, pid, name: printable(&name), age }
    }
}

prop_compose! {
    fn driver()(
        used in [level(), level(), level(), level()],
        kept in [level(), level(), level(), level(), level()],
        limits in [level(), level(), level()],
        children in prop::collection::vec(child_group(), 0..3),
    ) -> DriverLevels {
        let [device_used, process_used, children_used, driver_reserved] = used;
        let [capacity, pool_used, pool_reserved, graph_used, graph_reserved] = kept;
        let [container_limit, service_limit, host_limit] = limits;
        DriverLevels {
            device_used, process_used, capacity, container_limit, service_limit, host_limit,
            children_used, children, driver_reserved,
            pool_used, pool_reserved, graph_used, graph_reserved,
        }
    }
}

prop_compose! {
    fn allocator()(
        source in prop::sample::select(Source::ALL.as_slice()),
        levels in [level(), level(), level(), level(), level(), level()],
        [total_allocated, requested, limit] in [level(), level(), level()],
        n_blocks in any::<Option<u64>>(),
        n_peak_resets in any::<Option<u64>>(),
        n_retries in any::<Option<u64>>(),
        n_ooms in any::<Option<u64>>(),
    ) -> AllocatorLevels {
        let [allocated, active, reserved, inactive_split, largest_free, peak_allocated] = levels;
        AllocatorLevels {
            source, allocated, requested, active, reserved, inactive_split, largest_free,
            peak_allocated, total_allocated, limit, n_blocks, n_peak_resets, n_retries, n_ooms,
        }
    }
}

prop_compose! {
    fn reading()(driver in driver(), allocators in prop::collection::vec(allocator(), 0..3)) -> Reading {
        Reading { driver, allocators }
    }
}

prop_compose! {
    fn run_levels()(
        before in reading(),
        after in prop::option::of(reading()),
        peak_reset in any::<bool>(),
    ) -> RunLevels {
        RunLevels { device: DeviceIdx(0), before, after, peak_reset }
    }
}

prop_compose! {
    fn sample()(
        step in 0_u64..1 << 40,
        levels in any::<[Option<u64>; 4]>(),
    ) -> LevelStep {
        (step, levels.map(|level| level.map(Bytes::new)))
    }
}

fn points() -> impl Strategy<Value = Vec<Sample>> {
    prop::collection::vec(sample(), 1..20).prop_map(|steps| {
        let mut at = 0;
        let points = steps.into_iter().enumerate().map(|(idx, (step, levels))| {
            at += step;
            sample_at(at, 3 * idx as u64, levels)
        });
        points.collect()
    })
}

fn sample_at(at: u64, ordinal: u64, levels: [Option<Bytes>; 4]) -> Sample {
    let [allocated, reserved, device_used, process_used] = levels;
    Sample {
        at: Nanos::new(at),
        ordinal,
        allocated,
        reserved,
        device_used,
        process_used,
    }
}

prop_compose! {
    fn tally()(numbers in any::<[u64; 6]>()) -> AllocationTally {
        let [n_allocations, allocated, retained, at_peak, long_lived, longest] = numbers;
        AllocationTally {
            n_allocations,
            allocated: Bytes::new(allocated),
            retained: Bytes::new(retained),
            at_peak: Bytes::new(at_peak),
            long_lived: Bytes::new(long_lived),
            longest: Nanos::new(longest),
        }
    }
}

prop_compose! {
    fn held()(
        words in prop::array::uniform5(".*"),
        kind in 0..RootKind::ALL.len(),
        part in 0..StorageUse::ALL.len(),
        bytes in prop::array::uniform4(any::<u32>()),
        grown in any::<Option<i64>>(),
        flags in any::<[bool; 3]>(),
        depth in 0_usize..5,
    ) -> HolderSnapshot {
        let [name, path, what, step, type_name] = words;
        let [retained, graph, shared, rest] = bytes.map(|n| Bytes::new(n.into()));
        let [scalars, is_shared, is_cut] = flags;
        let more = Remainder { n: 3, n_bytes: rest };
        let branches = (0..depth).fold(Vec::new(), |branches, n| {
            let (step, what) = (step.clone(), what.clone());
            vec![HolderBranch { step, what, n: n as u64, n_bytes: graph, branches, more }]
        });
        HolderSnapshot {
            run: RunIdx(0),
            device: DeviceIdx(0),
            inside_at: scalars.then(|| Nanos::new(graph.get())),
            holders: DeviceHolders {
                device: name.clone(),
                n_bytes: retained,
                n_storages: 7,
                kept: vec![IpythonRetention {
                    place: RootKind::ALL[kind],
                    n_bytes: graph,
                    name: name.clone(),
                    path: path.clone(),
                    what: what.clone(),
                }],
                twins: vec![Twin {
                    name: name.clone(),
                    other: step.clone(),
                    n_alike: 7,
                    n_all: 8,
                    by_shape: scalars,
                }],
                outlived: vec![Outlived {
                    name: name.clone(),
                    is_rebound: is_shared,
                    had: shared,
                    n_bytes: graph,
                    kind: RootKind::ALL[kind],
                    holder: step.clone(),
                    is_alone: scalars,
                    path: path.clone(),
                    what: what.clone(),
                    keeper: grown.map(|_| Keeper::ALL[part % 4]),
                    way_out: grown.map(|_| WayOut::ALL[part % 7]),
                    code: step.clone(),
                    library_objects: vec![LibraryObject { class: step.clone(), version: name.clone(), object: path.clone(), rest: what.clone() }],
                }],
                given_back: vec![NameLevel {
                    kind: RootKind::ALL[kind],
                    name: name.clone(),
                    n_bytes: graph,
                    n_storages: 2,
                }],
                shared: vec![SharedMemory {
                    names: vec![name.clone()],
                    and_others: scalars,
                    n_bytes: shared,
                    path: path.clone(),
                    what: what.clone(),
                    part: grown.map(|_| StorageUse::ALL[part]),
                }],
                roots: vec![Holder {
                    name,
                    kind: RootKind::ALL[kind],
                    retained,
                    grown: grown.map(ByteDelta::new),
                    fresh: grown.map(|it| Bytes::new(it.unsigned_abs())),
                    origin: HolderOrigin::default(),
                    path,
                    what,
                    traits: Traits { grows_in: grown.map(|n| GrowsIn { path: type_name.clone(), is_all: is_shared, bound: Some(Bound { n: n.unsigned_abs(), most: 9 }), n_bytes: Bytes::new(n.unsigned_abs()) }), n_tensors: 5, scalars, graph, keeper: grown.map(|_| Keeper::ALL[part % 4]), is_shared, part: grown.map(|_| StorageUse::ALL[part]), tensor_type: type_name.clone(), filled_by: type_name.clone(), library_objects: vec![LibraryObject { class: type_name.clone(), version: String::new(), object: type_name.clone(), rest: type_name.clone() }], type_name, bound: grown.map(|n| Bound { n: n.unsigned_abs(), most: 7 }) },
                    branches,
                    more,
                }],
                changed: grown.map(|grown| NameLevel {
                    kind: RootKind::ALL[kind],
                    name: "a".to_owned(),
                    n_bytes: Bytes::new(grown.unsigned_abs()),
                    n_storages: 3,
                }).into_iter().collect(),
                growing_branches: grown.map(|grown| Holder {
                    fresh: Some(Bytes::new(grown.unsigned_abs())),
                    ..Holder::new(RootKind::ALL[kind], "a.b", graph)
                }).into_iter().collect(),
                sharing: grown.map(|grown| Holder {
                    grown: Some(ByteDelta::new(grown)),
                    ..Holder::new(RootKind::ALL[kind], "a", shared)
                }).into_iter().collect(),
                more,
                more_shared: more,
                parts: vec![(StorageUse::ALL[part], retained)],
                is_cut,
            },
        }
    }
}

prop_compose! {
    fn trace()(
        points in points(),
        n_events in any::<u64>(),
        is_cut in any::<bool>(),
        [total, of_line, of_module, of_stack] in [tally(), tally(), tally(), tally()],
        line in any::<Option<u32>>(),
        words in [".*", ".*"],
        peak in any::<[u32; 4]>(),
        up_to in any::<Option<u64>>(),
    ) -> Trace {
        let [path, frame] = words;
        let [at, low, above, from_before] = peak.map(u64::from);
        let exact = |point: Sample| Sample { device_used: None, process_used: None, ..point };
        Trace {
            run: RunIdx(0),
            device: DeviceIdx(0),
            steps: points.into_iter().map(exact).collect(),
            n_events,
            is_cut,
            total,
            peak: TracedPeak {
                at: Nanos::new(at),
                low: Bytes::new(low),
                high: Bytes::new(low + above),
                from_before: Bytes::new(from_before),
            },
            lines: vec![LineTally { line, tally: of_line }],
            modules: vec![ModuleTally { path, tally: of_module }],
            stacks: vec![StackTally { frames: vec![frame], tally: of_stack }],
            lifetimes: vec![LifetimeClass {
                up_to: up_to.map(Nanos::new),
                n_blocks: n_events,
                bytes: Bytes::new(low),
            }],
        }
    }
}

/// How much later than the one before, and the levels.
type LevelStep = (u64, [Option<Bytes>; 4]);

/// A series that grows point by point and is downsampled now and then, as the recorder writes it.
fn marked(steps: Vec<(LevelStep, bool)>) -> impl Iterator<Item = (Frame, bool)> {
    let mut series = Downsampler::new(20, Spacing::Ordinal);
    let mut at = 0;
    steps.into_iter().map(move |((step, levels), tells)| {
        at += step;
        let was_downsampled = series.push(sample_at(at, 0, levels));
        let from = if was_downsampled {
            0
        } else {
            series.points().len() - 1
        };
        let samples = Samples {
            run: RunIdx(0),
            device: DeviceIdx(0),
            series: Series::Marked("steps".to_owned()),
            points: series.points()[from..].iter().copied().collect(),
        };
        (Frame::Samples(samples), tells)
    })
}

fn series() -> impl Strategy<Value = Series> {
    prop_oneof![
        Just(Series::Sampled),
        ".*".prop_map(Series::Marked),
        any::<u32>().prop_map(|idx| Series::Loop(LoopIdx(idx))),
    ]
}

fn origin() -> impl Strategy<Value = (FrameOrigin, String)> {
    prop_oneof![
        Just((FrameOrigin::Own, String::new())),
        any::<u32>().prop_map(|number| (FrameOrigin::Cell(number), String::new())),
        ".*".prop_map(|file| (FrameOrigin::File, file)),
    ]
}

prop_compose! {
    fn counted()(
        idx in any::<u32>(),
        parent in any::<Option<u32>>(),
        (origin, file) in origin(),
        [text, function] in [".*", ".*"],
        line in any::<u32>(),
        numbers in any::<[u64; 4]>(),
        is in any::<[bool; 4]>(),
    ) -> Loop {
        let [n_iterations, from, last, n_marks] = numbers;
        let [is_calls, is_library, is_estimate, was_running] = is;
        Loop {
            run: RunIdx(0),
            idx: LoopIdx(idx),
            parent: parent.map(LoopIdx),
            kind: if is_calls { LoopKind::Calls } else { LoopKind::Loop },
            origin,
            file,
            line,
            text,
            function,
            is_library,
            n_iterations,
            is_estimate,
            was_running,
            counted_from: Nanos::new(from),
            last_at: Nanos::new(last),
            n_marks,
        }
    }
}

fn status() -> impl Strategy<Value = Status> {
    prop::sample::select(vec![
        Status::Running,
        Status::Ok,
        Status::Error,
        Status::Interrupted,
        Status::OutOfMemory,
        Status::Died,
    ])
}

prop_compose! {
    fn oom()(
        at in any::<u64>(),
        device in prop::option::of(Just(DeviceIdx(0))),
        framework in prop::option::of(prop::sample::select(Framework::ALL.as_slice())),
        [names_accelerator, survived] in any::<[bool; 2]>(),
        known in any::<[Option<u64>; 10]>(),
        others in prop::collection::vec(any::<(u64, Option<u64>)>(), 0..3),
        holder in prop::option::of((".*", prop::sample::select(RootKind::ALL.as_slice()))),
        message in prop::option::of(".*"),
    ) -> OutOfMemory {
        let known = known.map(|bytes| bytes.map(Bytes::new));
        let [wanted, free, total, limit, allocated, reserved, unallocated, ..] = known;
        let [.., private_pools, largest_free, this_process] = known;
        let others = others.into_iter();
        let others = others.map(|(pid, used)| OtherProcess { pid, used: used.map(Bytes::new) });
        OutOfMemory {
            at: Nanos::new(at), device, names_accelerator, framework, survived, message,
            holders: holder
                .map(|(name, kind)| OomHolder { name, kind, used: Bytes::new(at), n_storages: at })
                .into_iter()
                .collect(),
            figures: OomFigures {
                wanted, free, total, limit, allocated, reserved, unallocated, private_pools,
                largest_free, this_process, others: others.collect(),
            },
        }
    }
}

prop_compose! {
    fn segment()(
        pool in prop::sample::select(Pool::ALL.as_slice()),
        stream in any::<u32>(),
        blocks in prop::collection::vec(
            (prop::sample::select(BlockState::ALL.as_slice()), any::<[u64; 3]>(), any::<bool>()),
            0..6,
        ),
    ) -> Segment {
        let blocks = blocks.into_iter().map(|(state, [size, n_blocks, holes], is_one)| {
            let size = Bytes::new(size);
            let one = Block::new(state, size);
            let several = Block { n_blocks, holes: size.min(Bytes::new(holes)), ..one };
            if is_one { one } else { several }
        });
        Segment { pool, stream, blocks: blocks.collect() }
    }
}

fn mapped() -> impl Strategy<Value = SegmentSnapshot> {
    let segments = prop::collection::vec(segment(), 0..6);
    let found = (segments, any::<[u64; 6]>()).prop_map(|(segments, numbers)| {
        let [n_segments, size, split, unused, n_blocks, largest_free] = numbers;
        Segments {
            segments,
            rest: segments::SmallSegments {
                n_segments,
                size: Bytes::new(size),
                split: Bytes::new(split.min(size)),
                unused: Bytes::new(unused.min(size)),
            },
            n_blocks,
            largest_free: Bytes::new(largest_free),
        }
    });
    let found = prop_oneof![found.prop_map(Ok), ".*".prop_map(Err)];
    found.prop_map(|found| SegmentSnapshot {
        run: RunIdx(0),
        device: DeviceIdx(0),
        found,
    })
}

prop_compose! {
    fn recording()(
        words in [".*", ".*", ".*"],
        levels in prop::collection::vec(run_levels(), 0..3),
        status in status(),
        ended in any::<Option<u64>>(),
        points in points(),
        (series, counted) in (series(), prop::option::of(counted())),
        trace in prop::option::of(trace()),
        held in prop::option::of(held()),
        mapped in prop::option::of(mapped()),
        texts in prop::collection::vec(prop::option::of(".*"), 0..4),
        missing in prop::option::of(".*"),
        outside in prop::option::of((any::<u64>(), reading().boxed())).boxed(),
        finish in any::<Option<u64>>(),
        oom in prop::option::of(oom()),
        overlaps in prop::collection::vec(any::<u32>(), 0..3),
        beside_unrecorded: bool,
        (min_runs, share) in (3_u32.., 0.0..=1.0),
    ) -> Recording {
        let [session, label, text] = words;
        let outside = outside.map(|(at, reading)| Box::new(OutsideReading { at: Nanos::new(at), reading }));
        let mut recording = Recording::new(Header {
            session: session.clone(),
            wall_anchor: Nanos::new(7),
            versions: [("gpumem".to_owned(), session)].into(),
            sources: vec![SourceState { source: Source::Sim, used: true, reason: text.clone() }],
            rules: rules(min_runs, share),
            process: vec![("rank".to_owned(), "2".to_owned())],
            expected: vec![label.clone()],
        });
        let frames = [
            Frame::Device(Device {
                idx: DeviceIdx(0),
                key: "sim:0".into(),
                label: label.clone(),
                name: text.clone(),
                kind: DeviceKind::Simulated,
                outside,
            }),
            Frame::Cell(Cell {
                idx: CellIdx(0),
                id: label.clone(),
                revisions: vec![Revision { hash: SourceHash(u64::MAX), text: Some(text), file: Some(label.clone()) }],
            }),
            Frame::Cell(Cell {
                idx: CellIdx(0),
                id: label.clone(),
                revisions: (0..).zip(texts).map(|(n, text)| Revision { hash: SourceHash(n), text, ..Revision::default() }).collect(),
            }),
            Frame::Run(Run {
                idx: RunIdx(0),
                cell: CellIdx(0),
                revision: SourceHash(u64::MAX),
                parent: None,
                kind: RunKind::Cell,
                label: Some(label),
                execution_count: Some(18),
                started: Nanos::new(3),
                ended: ended.map(Nanos::new),
                status,
                levels,
                oom: oom.map(Box::new),
                overlaps: overlaps.into_iter().map(RunIdx).collect(),
                beside_unrecorded,
            }),
            Frame::samples(RunIdx(0), DeviceIdx(0), series, points),
        ];
        for frame in frames {
            recording.apply(frame).expect("the frames are in order");
        }
        if let Some(counted) = counted {
            recording.apply(Frame::Loop(Box::new(counted))).expect("of the run that is there");
        }
        if let Some(trace) = trace {
            recording.apply(Frame::Trace(Box::new(trace))).expect("of the run that is there");
        }
        if let Some(held) = held {
            recording.apply(Frame::Holders(Box::new(held))).expect("of the run that is there");
        }
        if let Some(mapped) = mapped {
            recording.apply(Frame::Segments(Box::new(mapped))).expect("of the run that is there");
        }
        if let Some(words) = missing {
            recording.apply(Frame::Missing(Missing { words })).expect("always fits");
        }
        if let Some(at) = finish {
            let finish = Finish { at: Nanos::new(at) };
            recording.apply(Frame::Finish(finish)).expect("always fits");
        }
        recording
    }
}

fn rules(min_runs: u32, share: f64) -> Rules {
    Rules {
        min_runs: min_runs as usize,
        fragmentation_ratio: share,
        ..Rules::default()
    }
}

/// What findings are judged by under a header with these rules.
fn rules_of(rules: &Value) -> Result<Rules, String> {
    let header = raw("header", &json!({"format": 1, "rules": rules}));
    let read = decode(&header).map_err(|error| error.to_string())?;
    Ok(read.header().rules)
}

#[test]
fn a_recording_is_judged_by_the_rules_that_stand_in_it() {
    let read = decode(&raw("header", &json!({"format": 1}))).expect("of an earlier gpumem");
    assert_eq!(read.header().rules, Rules::default());
    let read = rules_of(&json!({"min_runs": 12, "fragmentation_ratio": 0.5, "later": [1]}));
    assert_eq!(read, Ok(rules(12, 0.5)));
    let refused = rules_of(&json!({"min_runs": 1})).expect_err("too few");
    assert!(
        refused.contains("min_runs is 1: it must be a whole number of at least 3"),
        "{refused}"
    );
}

fn small() -> Recording {
    let mut recording = Recording::new(Header {
        session: "s".to_owned(),
        ..Header::default()
    });
    let cell = Cell {
        idx: CellIdx(0),
        id: "c".to_owned(),
        revisions: Vec::new(),
    };
    recording.apply(Frame::Cell(cell)).expect("the first cell");
    recording
}

#[track_caller]
fn check_error(bytes: &[u8], message: &str) {
    let error = decode(bytes).expect_err("the bytes are no recording");
    assert_eq!(error.to_string(), message);
}

/// A frame of any kind and body, with a right length and checksum.
fn raw(kind: &str, body: &impl Serialize) -> Vec<u8> {
    framed(kind, body)
}

/// The body of a frame as a general reader has it, its kind, and the bytes behind it.
fn taken_apart(bytes: &[u8]) -> (String, Value, &[u8]) {
    let payload = payload_at(bytes, 0).expect("a whole frame");
    let mut values = rmp_serde::Deserializer::new(payload);
    let mut next = || Value::deserialize(&mut values).expect("two values");
    let kind = next().as_str().expect("the kind is a string").to_owned();
    (kind, next(), &bytes[PREFIX + payload.len()..])
}

/// The frame has these fields, in this order.
#[track_caller]
fn check_fields(frame: &Frame, expected: &str) {
    let bytes = encode_frame(frame);
    let mut reader = Reader::alone(&bytes[PREFIX..]);
    reader.string().expect("the kind");
    let mut names = Vec::new();
    let read = reader.fields(&mut |name, value| {
        names.push(name.to_owned());
        value.skip()
    });
    read.expect("a map");
    assert_eq!(names.join(" "), expected);
}

/// Calls `change` with each map of a value, the innermost first, and with the field that leads to it.
fn each_map(at: &str, value: &mut Value, change: &mut impl FnMut(&str, &mut Map<String, Value>)) {
    match value {
        Value::Array(entries) => {
            for entry in entries {
                each_map(at, entry, change);
            }
        }
        Value::Object(fields) => {
            for (name, value) in &mut *fields {
                each_map(name, value, change);
            }
            change(at, fields);
        }
        _ => {}
    }
}

/// The same frames with something changed in each map of them.
fn changed(mut bytes: &[u8], mut change: impl FnMut(&str, &mut Map<String, Value>)) -> Vec<u8> {
    let mut changed = Vec::new();
    while !bytes.is_empty() {
        let (kind, mut body, rest) = taken_apart(bytes);
        each_map(&kind, &mut body, &mut change);
        changed.extend(raw(&kind, &body));
        bytes = rest;
    }
    changed
}

/// A device frame whose field `name` is something else.
#[track_caller]
fn check_device(name: &str, value: Option<&Value>, message: &str) {
    let device = Frame::Device(Device::default());
    let bytes = changed(&encode_frame(&device), |_, fields| {
        fields.remove(name);
        fields.extend(value.map(|value| (name.to_owned(), value.clone())));
    });
    let error = apply(&mut small(), &bytes).expect_err("the frame does not fit");
    assert_eq!(error.what.to_string(), message);
}

/// The field has one of a few names.
fn is_kind(name: &str) -> bool {
    ["class", "status", "part", "source", "framework"].contains(&name)
}

/// The free texts in the value of a field.
fn texts(value: &mut Value) -> Vec<&mut String> {
    match value {
        Value::String(text) if !["not_reported", "not_permitted"].contains(&&**text) => vec![text],
        Value::Array(values) => values.iter_mut().flat_map(texts).collect(),
        _ => Vec::new(),
    }
}

/// The numbers at which arithmetic fails.
fn number() -> impl Strategy<Value = u64> {
    prop::sample::select(vec![0, 1, 2, 7, 1 << 31, 1 << 53, u64::MAX >> 1, u64::MAX])
}

/// Whoever reads a recording asks for all of these.
fn report_all(recording: &Recording) {
    let rules = Rules::default();
    let analysis = analyze(recording, &rules);
    let _ = gpumem_report::text(recording, &analysis, 80);
    let _ = gpumem_report::json::report_json(recording, &analysis, &rules);
    let scene = gpumem_charts::report(recording, &analysis, 800.0);
    let _ = gpumem_scene::svg(&scene, gpumem_scene::Theme::Light);
}

fn frame_ends(bytes: &[u8]) -> Vec<usize> {
    let mut ends = Vec::new();
    let mut offset = 0;
    while offset < bytes.len() {
        offset += PREFIX + payload_at(bytes, offset).expect("a whole frame").len();
        ends.push(offset);
    }
    ends
}

fn ends_up_to(ends: &[usize], offset: usize) -> usize {
    ends.iter().filter(|end| **end <= offset).count()
}

#[derive(Serialize)]
struct Later {
    format: u32,
    session: &'static str,
    mood: &'static str,
}

proptest! {
    #[test]
    fn reading_what_was_written_gives_the_same(recording in recording()) {
        prop_assert_eq!(decode(&encode(&recording)), Ok(recording));
    }

    #[test]
    fn bytes_between_frames_cost_no_frame(recording in recording()) {
        let frames = recording.frames().flat_map(|frame| [vec![0xa3], encode_frames([frame])]);
        let found = salvage(&frames.flatten().collect::<Vec<u8>>(), &mut || true);
        let frames = |of: &Recording| -> Vec<Frame> {
            of.frames().filter(|it| !matches!(it, Frame::Missing(_))).collect()
        };
        let found = found.expect("it is of this version").recording;
        prop_assert_eq!(frames(&found), frames(&recording));
    }

    #[test]
    fn what_a_later_gpumem_adds_is_passed_over(recording in recording()) {
        let later = changed(&encode(&recording), |name, fields| {
            if !matches!(name, "versions" | "process") {
                fields.insert("mood".to_owned(), json!([{"idx": "blue"}, null, -1.5]));
            }
        });
        prop_assert_eq!(decode(&later), Ok(recording));
    }

    #[test]
    fn no_name_in_a_file_breaks_a_line_or_steers(recording in recording()) {
        let steering = changed(&encode(&recording), |_, fields| {
            for (name, value) in fields.iter_mut().filter(|(name, _)| !is_kind(name)) {
                let added = if name == "message" { "\u{202e}\u{1b}x" } else { "\n\u{202e}\u{1b}x" };
                for text in texts(value) {
                    text.push_str(added);
                }
            }
        });
        let found = decode(&steering).expect("names hold any text");
        changed(&encode(&found), |_, fields| {
            let as_it_is = ["text", "id", "key", "session"];
            let names = fields.iter_mut().filter(|(name, _)| !as_it_is.contains(&name.as_str()));
            for (name, value) in names {
                for text in texts(value) {
                    assert_eq!(*text, printable(text), "{name}");
                }
            }
        });
    }

    #[test]
    fn missing_fields_have_their_defaults(recording in recording()) {
        // Only what another frame refers to, or what says nothing without it, has to be there.
        let needed = ["format", "idx", "key", "class", "id", "hash", "cell", "started_nanos",
            "status", "device", "before", "run", "at_steps", "ordinal_steps", "path", "name",
            "step", "source", "part", "at_nanos", "words"];
        let sparse = changed(&encode(&recording), |_, fields| {
            fields.retain(|name, _| needed.contains(&name.as_str()));
        });
        let found = decode(&sparse).expect("the rest has defaults");
        prop_assert_eq!(found.runs().len(), recording.runs().len());
        prop_assert_eq!(&found.runs()[0].label, &None);
        prop_assert_eq!(&found.devices()[0].label, "");
    }

    #[test]
    fn a_frame_may_come_again(recording in recording()) {
        let bytes = encode(&recording);
        let mut twice = recording.clone();
        prop_assert_eq!(apply(&mut twice, &bytes), Ok(()));
        prop_assert_eq!(twice, recording);
    }

    #[test]
    fn an_update_brings_the_runs_that_are_not_known(earlier in recording()) {
        let mut later = earlier.clone();
        let run = Run { idx: RunIdx(1), ..earlier.run(RunIdx(0)).clone() };
        later.apply(Frame::Run(run)).expect("the next run");
        let update = encode_frames(Changes::since(&later, 1).take(&later));
        prop_assert!(update.len() < encode(&later).len());
        let mut updated = earlier;
        prop_assert_eq!(apply(&mut updated, &update), Ok(()));
        prop_assert_eq!(updated, later);
    }

    #[test]
    fn changes_sent_now_and_then_complete_a_copy(
        whole in recording(),
        steps in prop::collection::vec((sample(), any::<bool>()), 0..60),
    ) {
        let mut recording = Recording::new(Header::default());
        let mut copy = recording.clone();
        let mut changes = Changes::default();
        let mut frames: Vec<_> = whole.frames().map(|frame| (frame, false)).collect();
        frames.extend(marked(steps));
        for (frame, tells) in frames {
            changes.note(&frame);
            prop_assert_eq!(recording.apply(frame), Ok(()));
            if tells {
                prop_assert_eq!(apply(&mut copy, &encode_frames(changes.take(&recording))), Ok(()));
                prop_assert_eq!(&copy, &recording);
            }
        }
        prop_assert_eq!(apply(&mut copy, &encode_frames(changes.take(&recording))), Ok(()));
        prop_assert_eq!(copy, recording);
    }

    #[test]
    fn a_flipped_bit_is_found(recording in recording(), place in any::<prop::sample::Index>(), bit in 0_u8..8) {
        let mut bytes = encode(&recording);
        let idx = place.index(bytes.len());
        bytes[idx] ^= 1_u8 << bit;
        prop_assert!(decode(&bytes).is_err());
    }

    #[test]
    fn what_was_cut_off_has_its_whole_frames(recording in recording(), place in any::<prop::sample::Index>()) {
        let bytes = encode(&recording);
        let n_kept = place.index(bytes.len());
        let ends = frame_ends(&bytes);
        let n_whole = ends.iter().rfind(|end| **end <= n_kept).copied().unwrap_or(0);
        match decode(&bytes[..n_kept]) {
            // In front of the first payload nothing tells what it is.
            Err(error) if n_kept <= PREFIX => prop_assert_eq!((n_whole, error.offset), (0, 0)),
            Err(error) => prop_assert_eq!((n_whole, error.offset), (0, n_kept)),
            Ok(found) if n_kept == n_whole => prop_assert_eq!(found.frames().count(), ends_up_to(&ends, n_whole)),
            Ok(found) => {
                let mut whole = decode(&bytes[..n_whole]).expect("whole frames");
                let words = format!("the file was cut at byte {n_kept}: the rest is missing");
                whole.apply(Frame::Missing(Missing { words })).expect("always fits");
                prop_assert_eq!(found, whole);
            }
        }
    }

    #[test]
    fn what_is_read_is_reported_whatever_its_numbers_are(
        recording in recording(),
        numbers in prop::collection::vec(prop::option::weighted(0.1, number()), 1..200),
    ) {
        let mut numbers = numbers.iter().cycle();
        let changed = changed(&encode(&recording), |_, fields| {
            for value in fields.values_mut().filter(|value| value.is_u64()) {
                let number = *numbers.next().expect("they come again");
                // Mostly as it was: else no frame fits any other.
                if let Some(number) = number {
                    *value = json!(number);
                }
            }
        });
        if let Ok(recording) = decode(&changed) {
            report_all(&recording);
            prop_assert_eq!(decode(&encode(&recording)), Ok(recording));
        }
    }

    #[test]
    fn frames_in_any_order_are_refused_or_reported(
        recording in recording(),
        places in prop::collection::vec(any::<prop::sample::Index>(), 1..40),
    ) {
        let frames: Vec<Frame> = recording.frames().collect();
        let mut found = recording;
        for place in places {
            let _ = found.apply(place.get(&frames).clone());
        }
        report_all(&found);
        prop_assert_eq!(decode(&encode(&found)), Ok(found));
    }
}

#[test]
fn an_error_shows_how_other_files_begin() {
    check_error(
        b"",
        "byte 0: not a gpumem recording: it begins with nothing, not with a header",
    );
    check_error(
        b"null",
        "byte 0: not a gpumem recording: it begins with \"null\", not with a header",
    );
    check_error(
        b"PK\x03\x04 a zip",
        "byte 0: not a gpumem recording: it begins with \"PK   a z\", not with a header",
    );
    check_error(
        &encode_frame(&Frame::Finish(Finish::default())),
        "byte 0: not a gpumem recording: it begins with a finish frame, not with a header",
    );
}

#[test]
fn a_cut_recording_says_where_it_ends() {
    let bytes = encode(&small());
    let n_kept = bytes.len() - 5;
    let found = decode(&bytes[..n_kept]).expect("its header is whole");
    let words = format!("the file was cut at byte {n_kept}: the rest is missing");
    assert_eq!(found.missing().collect::<Vec<_>>(), [&words]);
    let warnings = analyze(&found, &Rules::default()).warnings;
    assert_eq!(warnings, [Warning::Missing(words)]);
    // It stays known when the recording is saved again.
    assert_eq!(decode(&encode(&found)), Ok(found));
}

#[test]
fn a_header_that_was_cut_off_is_no_recording() {
    let bytes = encode(&Recording::default());
    let n_kept = bytes.len() - 5;
    check_error(
        &bytes[..n_kept],
        &format!("byte {n_kept}: the recording ends inside a frame: 5 bytes are missing"),
    );
}

#[test]
fn a_live_update_is_never_cut() {
    let bytes = encode(&small());
    let error = apply(&mut small(), &bytes[..bytes.len() - 5]).expect_err("a frame is not whole");
    assert_eq!(error.what, WireFault::Truncated { n_missing: 5 });
}

#[test]
fn a_length_that_was_changed_is_no_cut() {
    let mut bytes = encode(&small());
    let length = bytes.len();
    bytes[3] |= 1;
    let error = decode(&bytes).expect_err("the header's length is damaged");
    assert_eq!(error.offset, 0);
    let end = frame_ends(&encode(&small()))[0];
    bytes[3] &= !1;
    bytes[end + 2] |= 1;
    let error = decode(&bytes).expect_err("the cell's length is damaged");
    let written = length - end - PREFIX;
    let found = written + (1 << 16);
    assert_eq!(
        (error.offset, error.what),
        (end, WireFault::Length { found, written })
    );
}

#[test]
fn a_cell_is_written_revision_by_revision() {
    let mut recording = small();
    let text = "x".repeat(1 << 20);
    for n in 0..70 {
        let revision = Revision {
            hash: SourceHash(n),
            text: Some(text.clone()),
            ..Revision::default()
        };
        let cell = Cell {
            revisions: vec![revision],
            ..recording.cell(CellIdx(0)).clone()
        };
        recording
            .apply(Frame::Cell(cell))
            .expect("the cell is known");
    }
    assert_eq!(decode(&encode(&recording)), Ok(recording));
}

#[test]
fn a_frame_of_an_earlier_gpumem_repeats_the_revisions_before() {
    let revision = |n: u64| Revision {
        hash: SourceHash(n),
        text: Some(n.to_string()),
        ..Revision::default()
    };
    let cell = |revisions| Cell {
        idx: CellIdx(0),
        id: "c".to_owned(),
        revisions,
    };
    let mut bytes = encode(&small());
    bytes.extend(encode_frame(&Frame::Cell(cell(vec![revision(5)]))));
    bytes.extend(encode_frame(&Frame::Cell(cell(vec![
        revision(5),
        revision(3),
    ]))));
    let found = decode(&bytes).expect("it fits");
    assert_eq!(found.cells(), [cell(vec![revision(5), revision(3)])]);
}

#[test]
fn a_text_that_no_frame_has_room_for_is_cut_with_a_note() {
    let mut recording = small();
    let text = Some("é".repeat(MAX_FRAME / 2));
    let revision = Revision {
        hash: SourceHash(1),
        text,
        ..Revision::default()
    };
    let cell = Cell {
        revisions: vec![revision],
        ..recording.cell(CellIdx(0)).clone()
    };
    recording
        .apply(Frame::Cell(cell))
        .expect("the cell is known");
    let found = decode(&encode(&recording)).expect("what is written can be read");
    let text = found.cells()[0].revisions[0]
        .text
        .as_deref()
        .expect("it is kept");
    let n_bytes = MAX_FRAME - MAX_TEXT;
    assert!(text.ends_with(&format!("é\n# … {n_bytes} bytes more, left out by gpumem")));
}

/// What is too long is written so that it can be read, and says so.
#[track_caller]
fn check_too_long(frame: &Frame) {
    let kind = kind_of(frame);
    let mut recording = small();
    apply(&mut recording, &encode_frame(frame)).expect("what is written can be read");
    let missing: Vec<&str> = recording.missing().collect();
    let words = format!("a {kind} frame was too long to be written whole: ");
    assert!(
        missing.len() == 1 && missing[0].starts_with(&words),
        "{missing:?}"
    );
}

#[test]
fn a_frame_that_is_too_long_is_left_out_with_its_reason() {
    let long = || "x".repeat(MAX_FRAME);
    check_too_long(&Frame::Device(Device {
        name: long(),
        ..Device::default()
    }));
    let oom = OutOfMemory {
        message: Some(long()),
        ..OutOfMemory::default()
    };
    check_too_long(&Frame::Run(Run {
        oom: Some(Box::new(oom)),
        ..Run::default()
    }));
    let part = (StorageUse::Parameters, Bytes::ZERO);
    let holders = DeviceHolders {
        parts: vec![part; MAX_FRAME / 16],
        ..DeviceHolders::default()
    };
    check_too_long(&Frame::Holders(Box::new(HolderSnapshot {
        holders,
        ..HolderSnapshot::default()
    })));
}

#[test]
fn lists_take_no_more_memory_than_their_bytes_are_worth() {
    // 0x80 is a map of nothing.
    let mut payload = rmp_serde::to_vec(&"run").expect("a word");
    payload.extend(b"\x81\xa3oom\x81\xa6others\xdd");
    let n_entries = 1 << 20;
    payload.extend(u32::try_from(n_entries).expect("fewer").to_be_bytes());
    payload.resize(payload.len() + n_entries, 0x80);
    let mut frame = u32::try_from(payload.len())
        .expect("short")
        .to_le_bytes()
        .to_vec();
    frame.extend(checksum::crc32(&payload).to_le_bytes());
    frame.extend(payload);
    let error = apply(&mut small(), &frame).expect_err("it takes too much");
    let words =
        "oom: others: lists that take more than 12 bytes of memory for each byte of the file";
    assert_eq!(error.what, WireFault::Payload(words.to_owned()));
}

#[test]
fn a_run_may_change_its_cell_until_it_has_ended() {
    let mut recording = small();
    for idx in 0..2 {
        let cell = Cell {
            idx: CellIdx(idx),
            ..Cell::default()
        };
        recording.apply(Frame::Cell(cell)).expect("the next");
    }
    let run = |idx, cell, parent: Option<u32>, ended: Option<u64>| {
        Frame::Run(Run {
            idx: RunIdx(idx),
            cell: CellIdx(cell),
            parent: parent.map(RunIdx),
            ended: ended.map(Nanos::new),
            ..Run::default()
        })
    };
    let latest = |recording: &Recording, cell| {
        let run = recording.latest_run(CellIdx(cell));
        run.map(|run| run.idx.0)
    };
    for frame in [
        run(0, 0, None, Some(1)),
        run(1, 0, None, None),
        // What is nested in it has ended.
        run(2, 0, Some(1), Some(2)),
    ] {
        recording.apply(frame).expect("each is the next");
    }
    assert_eq!(
        (latest(&recording, 0), latest(&recording, 1)),
        (Some(1), None)
    );
    recording.apply(run(2, 1, Some(1), Some(2))).expect("moved");
    recording.apply(run(1, 1, None, Some(3))).expect("moved");
    assert_eq!(
        (latest(&recording, 0), latest(&recording, 1)),
        (Some(0), Some(1))
    );
    for frame in [run(1, 0, None, Some(3)), run(2, 0, Some(1), Some(2))] {
        let moved = recording.apply(frame).expect_err("it has ended");
        assert!(
            moved.to_string().starts_with("run frame moves run"),
            "{moved}"
        );
    }
}

#[test]
fn a_run_stays_where_it_began() {
    let mut recording = small();
    let run = |idx, parent| {
        Frame::Run(Run {
            idx: RunIdx(idx),
            parent,
            ..Run::default()
        })
    };
    for frame in [run(0, None), run(1, None), run(2, Some(RunIdx(1)))] {
        recording.apply(frame).expect("each is the next");
    }
    assert_eq!(recording.outermost(RunIdx(2)), RunIdx(1));
    let moved = recording
        .apply(run(2, Some(RunIdx(0))))
        .expect_err("it is in run 1");
    assert_eq!(moved.to_string(), "run frame moves run 2 to another place");
}

#[test]
fn a_later_format_names_its_version_and_the_way_out() {
    let later = Later {
        format: 2,
        session: "s",
        mood: "fine",
    };
    check_error(
        &raw("header", &later),
        "byte 8: recording of format 2, newer than this gpumem reads\nhint: upgrade jupyter-gpumem",
    );
}

#[test]
fn a_field_that_does_not_fit_is_named() {
    check_device("idx", None, "missing field `idx`");
    check_device("class", None, "missing field `class`");
    check_device(
        "idx",
        Some(&json!(-1)),
        "idx: -1 where a whole number belongs",
    );
    check_device(
        "idx",
        Some(&json!(1_u64 << 32)),
        "idx: 4294967296 where a number below 2^32 belongs",
    );
    check_device(
        "key",
        Some(&json!(null)),
        "key: nothing where a text belongs",
    );
    check_device(
        "class",
        Some(&json!("loom")),
        "class: nothing is named \"loom\" here",
    );
}

#[test]
fn a_level_that_does_not_fit_is_named_by_its_way() {
    let run = Run {
        levels: vec![RunLevels {
            before: Reading {
                driver: DriverLevels {
                    capacity: Level::Known(Bytes::mib(1)),
                    ..DriverLevels::default()
                },
                ..Reading::default()
            },
            ..RunLevels::default()
        }],
        ..Run::default()
    };
    let bytes = changed(&encode_frame(&Frame::Run(run)), |_, fields| {
        if let Some(level) = fields.get_mut("capacity") {
            *level = json!(true);
        }
    });
    let error = apply(&mut small(), &bytes).expect_err("a level is no yes or no");
    let words = "levels: before: capacity: true where a number of bytes or a reason belongs";
    assert_eq!(error.what, WireFault::Payload(words.to_owned()));
    assert!(bytes[..error.offset].ends_with(b"capacity\xc3"));
}

#[test]
fn fields_are_written_as_they_are_listed() {
    check_fields(
        &Frame::Device(Device::default()),
        "idx key label name class",
    );
    let run = |parent| {
        let run = Run::default();
        Frame::Run(Run { parent, ..run })
    };
    check_fields(
        &run(None),
        "idx cell revision class started_nanos status levels",
    );
    check_fields(
        &run(Some(RunIdx(0))),
        "idx cell revision parent class started_nanos status levels",
    );
}

#[test]
fn unknown_fields_and_kinds_are_skipped() {
    let mut bytes = raw(
        "header",
        &Later {
            format: 1,
            session: "s",
            mood: "fine",
        },
    );
    bytes.extend(raw("hologram", &[1, 2, 3]));
    let recording = decode(&bytes).expect("what is known is read");
    assert_eq!(recording.header().session, "s");
}

/// A version that knows no loops would take their points for the sampler's.
#[test]
fn points_of_loops_are_a_kind_of_their_own() {
    let kind = |series| {
        let (run, device, points) = (RunIdx(0), DeviceIdx(0), Points::new());
        kind_of(&Frame::samples(run, device, series, points))
    };
    assert_eq!(kind(Series::Sampled), "samples");
    assert_eq!(kind(Series::Marked("steps".to_owned())), "samples");
    assert_eq!(kind(Series::Loop(LoopIdx(0))), "iterations");
}

#[test]
fn a_frame_that_names_nothing_is_refused() {
    let mut recording = small();
    let samples = Samples {
        run: RunIdx(4),
        device: DeviceIdx(0),
        series: Series::Sampled,
        points: Points::new(),
    };
    let error = apply(&mut recording, &encode_frame(&Frame::Samples(samples)))
        .expect_err("there is no run 4");
    assert_eq!(
        error.to_string(),
        "byte 0: samples frame names run 4, but only 0 are known"
    );
    assert_eq!(recording, small());
}
