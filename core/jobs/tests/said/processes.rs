use gpumem_analyzer::testing::{run, session};
use gpumem_jobs::processes::*;
use gpumem_model::recording::{
    Cell, CellIdx, Device, DeviceIdx, DeviceKind, Finish, Frame, Header, Reading, Recording, Run,
    RunIdx, RunKind, RunLevels, Sample, Samples, Series, SourceHash, Status,
};
use gpumem_model::rules::Rules;
use gpumem_model::units::{ByteDelta, Bytes, Nanos};
use gpumem_report as report;

/// A child whose level goes so, in MiB, one reading every 10 ms from `from` on.
fn child(name: &str, pid: u32, from: Nanos, levels_mib: &[u64]) -> ChildProcess {
    let process = [("pid", pid.to_string()), ("name", name.to_owned())];
    let process = process
        .map(|(name, value)| (name.to_owned(), value))
        .to_vec();
    let mut recording = Recording::new(Header {
        process,
        ..Header::default()
    });
    let points = levels_mib.iter().zip(0..).map(|(mib, n)| Sample {
        at: from + Nanos::millis(10 * n),
        ordinal: n,
        process_used: Some(Bytes::mib(*mib)),
        ..Sample::default()
    });
    let samples = Samples {
        run: RunIdx(0),
        device: DeviceIdx(0),
        series: Series::Sampled,
        points: points.collect(),
    };
    let frames = [
        Frame::Device(Device {
            idx: DeviceIdx(0),
            key: "host".into(),
            label: "host".to_owned(),
            name: String::new(),
            kind: DeviceKind::Host,
            outside: None,
        }),
        Frame::Cell(Cell {
            idx: CellIdx(0),
            id: name.to_owned(),
            revisions: Vec::new(),
        }),
        Frame::Run(Run {
            idx: RunIdx(0),
            cell: CellIdx(0),
            revision: SourceHash(0),
            parent: None,
            kind: RunKind::Block,
            label: Some(name.to_owned()),
            execution_count: None,
            started: from,
            ended: None,
            status: Status::Running,
            levels: vec![RunLevels {
                device: DeviceIdx(0),
                before: Reading::default(),
                after: None,
                peak_reset: false,
            }],
            oom: None,
            overlaps: Vec::new(),
            beside_unrecorded: false,
        }),
        Frame::Samples(samples),
    ];
    for frame in frames {
        recording.apply(frame).expect("it fits");
    }
    ChildProcess {
        recording,
        ..ChildProcess::default()
    }
}

fn rising(mib_per_reading: u64, n: u64) -> Vec<u64> {
    (0..n).map(|n| 100 + mib_per_reading * n).collect()
}

#[track_caller]
fn check(parent: &Recording, children: &[ChildProcess], expected: &[&str]) {
    let found = processes(parent, children, &Rules::default());
    assert_eq!(report::process_findings(parent, &found), expected);
}

#[test]
fn a_worker_that_grows_is_named() {
    let flat = || child("DataLoader worker 0", 10, Nanos::ZERO, &[100; 64]);
    let leaking = child("DataLoader worker 3", 13, Nanos::ZERO, &rising(2, 64));
    check(
        &Recording::default(),
        &[flat(), leaking],
        &["▲ DataLoader worker 3 (pid 13) keeps 200 MiB a second: 126 MiB more after 630 ms"],
    );
    check(&Recording::default(), &[flat()], &[]);
}

#[test]
fn one_cause_is_one_finding() {
    let workers = (0..8).map(|n| {
        let levels = if n < 6 { rising(2, 64) } else { vec![100; 64] };
        child(&format!("ForkPoolWorker-{n}"), 10 + n, Nanos::ZERO, &levels)
    });
    let workers: Vec<ChildProcess> = workers.collect();
    check(
        &Recording::default(),
        &workers,
        &[
            "▲ 6 of 8 ForkPoolWorkers keep up to 200 MiB a second each (0, 1, 2, 3, 4, 5): 756 MiB more together",
        ],
    );
}

#[test]
fn ray_ends_its_workers_with_an_exit_code() {
    let ended = |runtime: Option<&str>| {
        let mut child = child("Ray worker", 7, Nanos::ZERO, &[100; 64]);
        let header = child.recording.header().clone();
        let runtime = runtime.map(|it| ("runtime".to_owned(), it.to_owned()));
        let process = header.process.iter().cloned().chain(runtime).collect();
        let header = Frame::Header(Header { process, ..header });
        child.recording.apply(header).expect("it fits");
        let at = Nanos::millis(640);
        child.exit = Some(Exit { at, code: Some(1) });
        child
    };
    check(&Recording::default(), &[ended(Some("ray"))], &[]);
    check(
        &Recording::default(),
        &[ended(None)],
        &["◆ Ray worker (pid 7) failed with exit code 1; it held 100 MiB"],
    );
}

#[test]
fn what_the_driver_lists_of_a_child_has_a_column() {
    let table = |device_used: Vec<(Nanos, Bytes)>| {
        let child = ChildProcess {
            device_used,
            ..child("w-0", 7, Nanos::ZERO, &[100; 64])
        };
        report::processes(
            &processes(&Recording::default(), &[child], &Rules::default()),
            100,
        )
    };
    let noted = [96, 32].map(|mib| (Nanos::millis(mib), Bytes::mib(mib)));
    assert!(table(noted.to_vec()).contains("100 MiB    32 MiB  not known"));
    assert!(!table(Vec::new()).contains("GPU"));
}

#[test]
fn copies_of_the_parents_memory_are_no_leak() {
    let mut reader = child("w-0", 7, Nanos::ZERO, &[]);
    let points = (0..64).map(|n| Sample {
        at: Nanos::millis(10 * n),
        ordinal: n,
        process_used: Some(Bytes::mib(100 + 2 * n)),
        allocated: Some(Bytes::mib(500)),
        ..Sample::default()
    });
    let samples = Samples {
        run: RunIdx(0),
        device: DeviceIdx(0),
        series: Series::Sampled,
        points: points.collect(),
    };
    reader
        .recording
        .apply(Frame::Samples(samples))
        .expect("it fits");
    check(&Recording::default(), &[reader.clone()], &[]);
    let found = processes(&Recording::default(), &[reader], &Rules::default());
    assert_eq!(found.rows[0].copied, Some(Bytes::mib(126)));
    let text = report::processes(&found, 80);
    assert!(text.contains("126 MiB of this are copies"), "{text}");
}

#[test]
fn levels_are_laid_on_the_runs_of_the_parent() {
    let (parent, _) = session(&[("f()", &vec![run(0); 20])]);
    let first = parent.runs()[0].started;
    let last = parent.runs()[19].ended.expect("it ended");
    let n = last.since(first).get() / Nanos::millis(10).get() + 10;
    let step = n / 20;
    let levels: Vec<u64> = (0..n).map(|n| 100 + 12 * (n / step)).collect();
    let found = processes(
        &parent,
        &[child("w-1", 7, first, &levels)],
        &Rules::default(),
    );
    let growing = found.rows[0].growth.as_ref().expect("it is judged");
    assert_eq!((growing.per, growing.n_steps), (Per::Run, 20));
    assert_eq!(growing.bytes_per_step, ByteDelta::new(12 << 20));
}

#[test]
fn how_a_child_ended_is_concluded() {
    let check = |exit: Option<i32>, was_killed, finished: bool, expected| {
        let mut child = child("w", 7, Nanos::ZERO, &[1, 2]);
        let at = Nanos::millis(30);
        child.exit = exit.map(|code| Exit {
            at,
            code: Some(code),
        });
        child.was_killed = was_killed;
        if finished {
            let frame = Frame::Finish(Finish { at });
            child.recording.apply(frame).expect("it fits");
        }
        assert_eq!(ChildEnding::for_child(&child), expected);
    };
    check(None, false, true, ChildEnding::InOrder);
    check(Some(0), true, false, ChildEnding::InOrder);
    check(Some(3), false, false, ChildEnding::Failed(3));
    check(Some(-9), false, false, ChildEnding::Killed(9));
    check(Some(-9), true, false, ChildEnding::KilledBySystem);
    check(None, false, false, ChildEnding::Lost);
}

#[test]
fn a_killed_child_is_named_with_its_cell() {
    let (parent, _) = session(&[("f()", &[run(0)])]);
    let first = &parent.runs()[0];
    let mut killed = child("w", 7, first.started, &[1, 2]);
    killed.exit = Some(Exit {
        at: first.started + Nanos::millis(30),
        code: Some(-9),
    });
    check(
        &parent,
        &[killed],
        &["◆ w (pid 7) was killed by SIGKILL 30 ms into In [1]; it held 2 MiB"],
    );
}

#[test]
fn an_end_that_is_noted_late_is_of_the_run_that_waited_for_it() {
    let (parent, _) = session(&[("f()", &[run(0)])]);
    let first = &parent.runs()[0];
    let ended = first.ended.expect("it ended");
    let noted = |late_ms: u64| {
        let mut killed = child("w", 7, ended, &[1]);
        killed.exit = Some(Exit {
            at: ended + Nanos::millis(late_ms),
            code: Some(-9),
        });
        killed
    };
    let line = "◆ w (pid 7) was killed by SIGKILL 1.0 s into In [1]; it held 1 MiB";
    check(&parent, &[noted(40)], &[line]);
    // Then it lived on after the run.
    let line = "◆ w (pid 7) was killed by SIGKILL; it held 1 MiB";
    check(&parent, &[noted(900)], &[line]);
}
