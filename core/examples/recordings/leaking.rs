// The recording that examples in the crate's documentation analyze. They include it in hidden lines:
//
//     # mod example { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/recordings/leaking.rs")); }
//     # use example::leaking;

/// Twelve runs of a cell that appends to `losses`: each keeps 2 MiB of `cuda:0`. The holders and
/// the segments were recorded after the last run.
pub(super) fn leaking() -> gpumem_model::recording::Recording {
    use gpumem_model::holders::{DeviceHolders, Holder, StorageUse, RootKind};
    use gpumem_model::recording::{AllocatorLevels, Cell, CellIdx, Device, DeviceIdx, DeviceKind, DriverLevels, Frame, Header, HolderSnapshot, Reading, Recording, Revision, Run, RunIdx, RunLevels, Sample, Samples, SegmentSnapshot, Series, Source, Status};
    use gpumem_model::segments::{Block, BlockState, Pool, Segment, Segments};
    use gpumem_model::source_text;
    use gpumem_model::units::{Bytes, Nanos};

    let text = "losses.append(step(batch))";
    let hash = source_text::hash(text);
    let reading = |mib: u64| Reading {
        driver: DriverLevels {
            device_used: Bytes::mib(900).into(),
            process_used: Bytes::mib(400).into(),
            capacity: Bytes::gib(16).into(),
            ..DriverLevels::default()
        },
        allocators: vec![AllocatorLevels {
            allocated: Bytes::mib(mib).into(),
            reserved: Bytes::mib(64).into(),
            ..AllocatorLevels::unread(Source::Torch)
        }],
    };
    let run = |n: u32| Run {
        idx: RunIdx(n),
        revision: hash,
        execution_count: Some(n + 1),
        started: Nanos::millis(3000 * u64::from(n)),
        ended: Some(Nanos::millis(3000 * u64::from(n) + 2000)),
        status: Status::Ok,
        levels: vec![RunLevels {
            before: reading(2 * u64::from(n)),
            after: Some(reading(2 * u64::from(n) + 2)),
            ..RunLevels::default()
        }],
        ..Run::default()
    };
    let samples = |n: u32| Samples {
        run: RunIdx(n),
        device: DeviceIdx(0),
        series: Series::Sampled,
        points: [0, 7, 2]
            .into_iter()
            .zip(0..)
            .map(|(mib, second)| Sample {
                at: Nanos::millis(3000 * u64::from(n) + 1000 * second),
                ordinal: second,
                allocated: Some(Bytes::mib(2 * u64::from(n) + mib)),
                ..Sample::default()
            })
            .collect(),
    };
    let held = DeviceHolders {
        device: "cuda:0".to_owned(),
        n_bytes: Bytes::mib(24),
        n_storages: 12,
        roots: vec![Holder::new(RootKind::Variable, "losses", Bytes::mib(24))],
        parts: vec![(StorageUse::Names, Bytes::mib(24))],
        ..DeviceHolders::default()
    };
    let segment = Segment {
        pool: Pool::Large,
        stream: 0,
        blocks: vec![
            Block::new(BlockState::Held, Bytes::mib(24)),
            Block::new(BlockState::Free, Bytes::mib(40)),
        ],
    };

    let mut frames = vec![
        Frame::Device(Device {
            key: "GPU-0".into(),
            label: "cuda:0".to_owned(),
            name: "Tesla T4".to_owned(),
            kind: DeviceKind::Gpu,
            ..Device::default()
        }),
        Frame::Cell(Cell {
            idx: CellIdx(0),
            id: "cell-0".to_owned(),
            revisions: vec![Revision {
                hash,
                text: Some(text.to_owned()),
                ..Revision::default()
            }],
        }),
    ];
    frames.extend((0..12).flat_map(|n| [Frame::Run(run(n)), Frame::Samples(samples(n))]));
    frames.push(Frame::Holders(Box::new(HolderSnapshot {
        run: RunIdx(11),
        device: DeviceIdx(0),
        inside_at: None,
        holders: held,
    })));
    frames.push(Frame::Segments(Box::new(SegmentSnapshot {
        run: RunIdx(11),
        device: DeviceIdx(0),
        found: Ok(Segments::new(vec![segment])),
    })));
    let mut recording = Recording::new(Header::default());
    for frame in frames {
        recording.apply(frame).expect("frames in order");
    }
    recording
}
