//! Recordings that no session makes, but a file may hold.

use gpumem_model::recording::{
    AllocatorLevels, Cell, CellIdx, Device, DeviceIdx, DeviceKind, DriverLevels, Frame, Header,
    Reading, Recording, Revision, Run, RunIdx, RunKind, RunLevels, Sample, Samples, Series, Source,
    SourceHash, Status,
};
use gpumem_model::units::{Bytes, Nanos};

/// One cell and many devices.
pub(crate) fn begun(n_devices: u32) -> Recording {
    let devices = (0..n_devices).map(|idx| {
        Frame::Device(Device {
            idx: DeviceIdx(idx),
            key: format!("GPU-{idx}").into(),
            label: format!("cuda:{idx}"),
            name: "Tesla T4".to_owned(),
            kind: DeviceKind::Gpu,
            outside: None,
        })
    });
    let cell = Frame::Cell(Cell {
        idx: CellIdx(0),
        id: "cell".to_owned(),
        revisions: vec![Revision {
            hash: SourceHash(0),
            text: Some("train()".to_owned()),
            ..Revision::default()
        }],
    });
    let mut recording = Recording::new(Header::default());
    add(&mut recording, devices.chain([cell]));
    recording
}

/// Nested runs that have all ended, or all go on.
pub(crate) fn nested(n_runs: u32, have_ended: bool) -> Recording {
    let mut recording = begun(1);
    let runs = (0..n_runs).map(|idx| {
        let run = run(idx, [DeviceIdx(0)]);
        Frame::Run(Run {
            parent: idx.checked_sub(1).map(RunIdx),
            kind: RunKind::Block,
            label: Some("b".to_owned()),
            ended: run.ended.filter(|_| have_ended),
            ..run
        })
    });
    let points = Frame::Samples(Samples {
        run: RunIdx(n_runs - 1),
        device: DeviceIdx(0),
        series: Series::Sampled,
        points: [sample(n_runs)].into_iter().collect(),
    });
    add(&mut recording, runs.chain([points]));
    recording
}

/// A cell that was edited before each run.
pub(crate) fn edited(n_runs: u32) -> Recording {
    let mut recording = begun(1);
    for idx in 0..n_runs {
        let revision = SourceHash(u64::from(idx) + 1);
        let cell = Cell {
            revisions: vec![Revision {
                hash: revision,
                text: Some(format!("train({idx})")),
                ..Revision::default()
            }],
            idx: CellIdx(0),
            id: "cell".to_owned(),
        };
        let run = Run {
            revision,
            ..run(idx, [DeviceIdx(0)])
        };
        add(
            &mut recording,
            [Frame::Cell(cell), Frame::Run(run)].into_iter(),
        );
    }
    recording
}

/// Cells that run in turn, several times.
pub(crate) fn cells(n_cells: u32, n_times: u32) -> Recording {
    let mut recording = begun(1);
    let cells = (1..n_cells).map(|idx| {
        Frame::Cell(Cell {
            idx: CellIdx(idx),
            id: format!("cell-{idx}"),
            revisions: vec![Revision {
                hash: SourceHash(idx.into()),
                text: Some(format!("train({idx})")),
                ..Revision::default()
            }],
        })
    });
    add(&mut recording, cells);
    let runs = (0..n_cells * n_times).map(|idx| {
        let cell = idx % n_cells;
        Frame::Run(Run {
            cell: CellIdx(cell),
            revision: SourceHash(cell.into()),
            ..run(idx, [DeviceIdx(0)])
        })
    });
    add(&mut recording, runs);
    recording
}

/// Runs, followed by points of each of them, the last run's points first.
pub(crate) fn falling(n_runs: u32) -> Vec<Frame> {
    let mut recording = begun(1);
    add(
        &mut recording,
        (0..n_runs).map(|idx| Frame::Run(run(idx, []))),
    );
    let points = (0..n_runs).rev().map(|idx| {
        Frame::Samples(Samples {
            run: RunIdx(idx),
            device: DeviceIdx(0),
            series: Series::Sampled,
            points: [sample(idx)].into_iter().collect(),
        })
    });
    recording.frames().chain(points).collect()
}

/// Devices with levels and points in every run.
pub(crate) fn crowded(n_devices: u32, n_runs: u32) -> Recording {
    let mut recording = begun(n_devices);
    let devices = || (0..n_devices).map(DeviceIdx);
    add(
        &mut recording,
        (0..n_runs).map(|idx| Frame::Run(run(idx, devices()))),
    );
    let places = (0..n_runs).flat_map(|idx| devices().map(move |device| (idx, device)));
    let points = places.map(|(idx, device)| {
        Frame::Samples(Samples {
            run: RunIdx(idx),
            device,
            series: Series::Sampled,
            points: [sample(idx)].into_iter().collect(),
        })
    });
    add(&mut recording, points);
    recording
}

fn add(recording: &mut Recording, frames: impl Iterator<Item = Frame>) {
    for frame in frames {
        recording.apply(frame).expect("the frames fit each other");
    }
}

fn run(idx: u32, devices: impl IntoIterator<Item = DeviceIdx>) -> Run {
    let levels = devices.into_iter().map(|device| RunLevels {
        device,
        before: reading(idx),
        after: Some(reading(idx + 1)),
        peak_reset: false,
    });
    Run {
        idx: RunIdx(idx),
        execution_count: Some(idx + 1),
        started: Nanos::millis(u64::from(idx) * 1000),
        ended: Some(Nanos::millis(u64::from(idx) * 1000 + 500)),
        status: Status::Ok,
        levels: levels.collect(),
        ..Run::default()
    }
}

fn sample(run: u32) -> Sample {
    Sample {
        at: Nanos::millis(u64::from(run) * 1000 + 250),
        device_used: Some(Bytes::mib(u64::from(run) + 500)),
        ..Sample::default()
    }
}

fn reading(n_mib: u32) -> Reading {
    let allocated = Bytes::mib(n_mib.into());
    Reading {
        driver: DriverLevels {
            device_used: (allocated + Bytes::mib(500)).into(),
            process_used: (allocated + Bytes::mib(400)).into(),
            capacity: Bytes::gib(160).into(),
            ..DriverLevels::default()
        },
        allocators: vec![AllocatorLevels {
            allocated: allocated.into(),
            reserved: (allocated + Bytes::mib(64)).into(),
            ..AllocatorLevels::unread(Source::Torch)
        }],
    }
}
