//! Writes the recording of a long session: `long_session FILE RUNS SAMPLES CELLS`.
//!
//! More than a recorder keeps, so that what the report costs is measured beyond what it meets.

use std::env;
use std::error::Error;
use std::fs;

use gpumem_model::recording::{
    AllocatorLevels, Cell, CellIdx, Device, DeviceIdx, DeviceKind, DriverLevels, Frame, Header,
    Reading, Recording, Revision, Run, RunIdx, RunKind, RunLevels, Sample, Samples, Series, Source,
    Status,
};
use gpumem_model::source_text;
use gpumem_model::units::{Bytes, Nanos};
use gpumem_wire as wire;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let [path, n_runs, n_samples, n_cells] = arguments.as_slice() else {
        return Err("usage: long_session FILE RUNS SAMPLES CELLS".into());
    };
    let recording = recorded(n_runs.parse()?, n_samples.parse()?, n_cells.parse()?)?;
    fs::write(path, wire::encode(&recording))?;
    Ok(())
}

fn recorded(n_runs: u32, n_samples: u64, n_cells: u32) -> Result<Recording, Box<dyn Error>> {
    let mut recording = Recording::new(Header::default());
    recording.apply(Frame::Device(Device {
        idx: DeviceIdx(0),
        key: "GPU-0".into(),
        label: "cuda:0".to_owned(),
        name: "Tesla T4".to_owned(),
        kind: DeviceKind::Gpu,
        outside: None,
    }))?;
    for idx in 0..n_cells {
        let text = text(idx);
        recording.apply(Frame::Cell(Cell {
            idx: CellIdx(idx),
            id: format!("cell-{idx}"),
            revisions: vec![Revision {
                hash: source_text::hash(&text),
                text: Some(text),
                ..Revision::default()
            }],
        }))?;
    }
    let per_run = n_samples / u64::from(n_runs);
    for idx in 0..n_runs {
        let started = Nanos::millis(u64::from(idx) * 3000);
        recording.apply(Frame::Run(run(idx, n_cells, started)))?;
        recording.apply(Frame::Samples(Samples {
            run: RunIdx(idx),
            device: DeviceIdx(0),
            series: Series::Sampled,
            points: (0..per_run)
                .map(|n| sample(kept(idx, n_cells), started, n, per_run))
                .collect(),
        }))?;
    }
    Ok(recording)
}

fn text(cell: u32) -> String {
    format!("losses_{cell}.append(model_{cell}(batch).sum())")
}

/// Every fourth cell keeps 1 MiB more in each of its runs.
fn kept(run: u32, n_cells: u32) -> u64 {
    let n_before = u64::from(run / n_cells * (n_cells / 4) + (run % n_cells).div_ceil(4));
    n_before << 20
}

fn run(idx: u32, n_cells: u32, started: Nanos) -> Run {
    let cell = idx % n_cells;
    Run {
        idx: RunIdx(idx),
        cell: CellIdx(cell),
        revision: source_text::hash(&text(cell)),
        parent: None,
        kind: RunKind::Cell,
        label: None,
        execution_count: Some(idx + 1),
        started,
        ended: Some(started + Nanos::millis(2000)),
        status: Status::Ok,
        oom: None,
        overlaps: Vec::new(),
        beside_unrecorded: false,
        levels: vec![RunLevels {
            device: DeviceIdx(0),
            before: reading(kept(idx, n_cells)),
            after: Some(reading(kept(idx + 1, n_cells))),
            peak_reset: false,
        }],
    }
}

fn reading(allocated: u64) -> Reading {
    Reading {
        driver: DriverLevels {
            device_used: Bytes::new(allocated + (900 << 20)).into(),
            process_used: Bytes::new(allocated + (400 << 20)).into(),
            capacity: Bytes::gib(16).into(),
            ..DriverLevels::default()
        },
        allocators: vec![AllocatorLevels {
            allocated: Bytes::new(allocated).into(),
            reserved: Bytes::new(allocated + (64 << 20)).into(),
            ..AllocatorLevels::unread(Source::Torch)
        }],
    }
}

fn sample(kept: u64, started: Nanos, n: u64, of: u64) -> Sample {
    // Up and down again, with a little noise that no reduction may lose.
    let up = n.min(of - n) * (256 << 20) / of;
    let noise = (n.wrapping_mul(2_654_435_761) % 1024) << 10;
    let level = kept + up + noise;
    Sample {
        at: started + Nanos::new(2_000_000_000 / of * n),
        ordinal: n,
        allocated: None,
        reserved: None,
        device_used: Some(Bytes::new(level + (900 << 20))),
        process_used: Some(Bytes::new(level + (400 << 20))),
    }
}
