//! Writes the recordings of the fuzzers' corpus: `fuzz_seeds tests/fuzz/corpus`.

use std::env;
use std::error::Error;
use std::fs;
use std::path::Path;

use gpumem_analyzer::Severity;
use gpumem_explorer::process_page::{BadEnd, PageCause, PageRow, ProcessPage};
use gpumem_heap::{HeapSearchResult, Holders};
use gpumem_model::downsample::LevelPoint;
use gpumem_model::holders::{DeviceHolders, Holder, RootKind, StorageUse};
use gpumem_model::recording::{
    AllocationTally, DeviceIdx, Finish, Frame, Framework, LifetimeClass, LineTally, Missing,
    ModuleTally, OomFigures, OomHolder, OtherProcess, OutOfMemory, RunIdx, Sample, StackTally,
    Status, Trace, TracedPeak,
};
use gpumem_model::units::{Bytes, Nanos};
use gpumem_wire::{encode, encode_found, encode_frames};

mod recordings {
    mod example {
        include!("../../examples/recordings/leaking.rs");
    }
    pub(super) fn leaking() -> gpumem_model::recording::Recording {
        example::leaking()
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let corpus = env::args().nth(1).ok_or("usage: fuzz_seeds FOLDER")?;
    let recording = recordings::leaking();
    let mut few: Vec<Frame> = recording
        .frames()
        .filter(|frame| frame.run().is_none_or(|run| run.0 < 2))
        .collect();
    for frame in &mut few {
        if let Frame::Run(run) = frame
            && run.idx == RunIdx(1)
        {
            run.status = Status::OutOfMemory;
            run.oom = Some(Box::new(ran_out()));
        }
    }
    few.push(Frame::Trace(Box::new(trace())));
    few.push(Frame::Missing(Missing {
        words: "some".to_owned(),
    }));
    few.push(Frame::Finish(Finish {
        at: Nanos::millis(9000),
    }));
    for reader in ["recording", "salvage"] {
        let folder = Path::new(&corpus).join(reader);
        fs::create_dir_all(&folder)?;
        fs::write(folder.join("leaking"), encode(&recording))?;
        fs::write(folder.join("few"), encode_frames(few.clone()))?;
    }
    let folder = Path::new(&corpus).join("found");
    fs::create_dir_all(&folder)?;
    fs::write(folder.join("losses"), encode_found(&found()))?;
    let folder = Path::new(&corpus).join("process_page");
    fs::create_dir_all(&folder)?;
    fs::write(folder.join("ranks"), page().to_bytes())?;
    Ok(())
}

/// Two ranks, of which one leaks and runs out of memory.
fn page() -> ProcessPage {
    let levels = |mib: u64| {
        let levels = (0..4).map(|n| LevelPoint {
            at: Nanos::millis(10 * n),
            level: Bytes::mib(100 + mib * n),
        });
        levels.collect()
    };
    let ill = PageRow {
        name: "rank 1".to_owned(),
        machine: "node-1".to_owned(),
        device: "cuda:1".to_owned(),
        latest: Some(Bytes::mib(220)),
        growth: "+40 MiB a step".to_owned(),
        per_step: Some(Bytes::mib(40).since(Bytes::ZERO)),
        n_steps: Some(3),
        ending: "out of memory at 30 ms".to_owned(),
        end: Some(BadEnd::OutOfMemory),
        until: Nanos::millis(30),
        severity: Some(Severity::Critical),
        levels: levels(40),
        ..PageRow::default()
    };
    let healthy = PageRow {
        name: "rank 0".to_owned(),
        ending: "in order".to_owned(),
        pid: Some(4123),
        levels: levels(0),
        ..PageRow::default()
    };
    ProcessPage {
        noun: "rank".to_owned(),
        title: "2 ranks".to_owned(),
        step: "step".to_owned(),
        span: Nanos::millis(40),
        causes: vec![PageCause {
            severity: Severity::Critical,
            words: "rank 1 keeps 40 MiB a step".to_owned(),
            command: "jupyter gpumem report 1".to_owned(),
            rows: vec![0],
        }],
        rows: vec![ill, healthy],
        notes: vec!["a note".to_owned()],
        ..ProcessPage::default()
    }
}

fn tally() -> AllocationTally {
    AllocationTally {
        n_allocations: 3,
        allocated: Bytes::mib(3),
        retained: Bytes::mib(1),
        at_peak: Bytes::mib(2),
        longest: Nanos::millis(7),
        ..AllocationTally::default()
    }
}

fn trace() -> Trace {
    let step = |millis, mib| Sample {
        at: Nanos::millis(millis),
        allocated: Some(Bytes::mib(mib)),
        ..Sample::default()
    };
    Trace {
        run: RunIdx(0),
        device: DeviceIdx(0),
        steps: vec![step(1, 2), step(3, 7), step(5, 4)],
        n_events: 6,
        total: tally(),
        peak: TracedPeak {
            at: Nanos::millis(3),
            low: Bytes::mib(6),
            high: Bytes::mib(7),
            ..TracedPeak::default()
        },
        lines: vec![
            LineTally {
                line: Some(1),
                tally: tally(),
            },
            LineTally::default(),
        ],
        modules: vec![ModuleTally {
            path: "model.fc".to_owned(),
            tally: tally(),
        }],
        stacks: vec![StackTally {
            frames: vec!["train.py:7 step".to_owned()],
            tally: tally(),
        }],
        lifetimes: vec![
            LifetimeClass {
                up_to: Some(Nanos::millis(1)),
                n_blocks: 2,
                bytes: Bytes::mib(1),
            },
            LifetimeClass {
                up_to: None,
                n_blocks: 1,
                bytes: Bytes::mib(2),
            },
        ],
        ..Trace::default()
    }
}

fn ran_out() -> OutOfMemory {
    OutOfMemory {
        at: Nanos::millis(4500),
        device: Some(DeviceIdx(0)),
        framework: Some(Framework::Torch),
        figures: OomFigures {
            wanted: Some(Bytes::gib(20)),
            free: Some(Bytes::gib(1)),
            total: Some(Bytes::gib(16)),
            others: vec![OtherProcess {
                pid: 41,
                used: Some(Bytes::gib(2)),
            }],
            ..OomFigures::default()
        },
        holders: vec![OomHolder {
            name: "losses".to_owned(),
            kind: RootKind::Variable,
            used: Bytes::mib(4),
            n_storages: 3,
        }],
        message: Some("CUDA out of memory".to_owned()),
        ..OutOfMemory::default()
    }
}

fn found() -> HeapSearchResult {
    let device = DeviceHolders {
        device: "cuda:0".to_owned(),
        n_bytes: Bytes::mib(24),
        n_storages: 12,
        roots: vec![Holder::new(RootKind::Variable, "losses", Bytes::mib(24))],
        parts: vec![(StorageUse::Names, Bytes::mib(24))],
        ..DeviceHolders::default()
    };
    HeapSearchResult {
        holders: Holders {
            devices: vec![device],
        },
        n_objects: 7,
        notes: vec!["an object was skipped".to_owned()],
        ..HeapSearchResult::default()
    }
}
