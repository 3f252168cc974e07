//! What is judged from run to run is what is judged afresh.

use proptest::prelude::*;

use super::*;
use crate::analyze;
use crate::testing::{Play, run, session};
use gpumem_model::recording::{
    AllocatorLevels, CellIdx, Device, DeviceIdx, DeviceKind, Frame, OutOfMemory, Reading, RunKind,
    RunLevels, Samples, Series, Source, SourceHash, Status,
};
use gpumem_model::units::{Bytes, Nanos};

const SOURCES: [&str; 4] = ["a()", "b()", "c()", "model(batch)"];

/// One run of a script: what it does beside keeping memory.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Also {
    Nothing,
    Steps,
    Names,
    Displays,
    Fails,
    IsTraced,
    IsUnknown,
    /// It is a block in the outermost run before it.
    IsNested,
    RunsOut,
    Flushes,
    IsSampled,
    /// Nobody tells of its end.
    GoesOn,
    /// The run before it, if neither is nested, ends in the middle of it.
    Overlaps,
    /// Afterwards an earlier run turns out to have left more.
    CorrectsTheFirst,
    /// Afterwards the samples of an earlier run are gone but for one.
    ThinsTheFirst,
    /// Afterwards the latest block has another name.
    RenamesABlock,
}

#[derive(Debug, Clone, Copy)]
struct Scripted {
    cell: usize,
    kept_mib: i64,
    reserved_mib: u64,
    also: Also,
    /// A line is printed after it.
    is_reported: bool,
}

fn also() -> impl Strategy<Value = Also> {
    use Also::{
        CorrectsTheFirst, Displays, Fails, Flushes, GoesOn, IsNested, IsSampled, IsTraced,
        IsUnknown, Names, Nothing, Overlaps, RenamesABlock, RunsOut, Steps, ThinsTheFirst,
    };
    prop_oneof![
        12 => Just(Nothing),
        3 => Just(Steps),
        3 => Just(Names),
        2 => Just(Displays),
        2 => Just(Fails),
        2 => Just(IsTraced),
        1 => Just(IsUnknown),
        4 => Just(IsNested),
        1 => Just(RunsOut),
        1 => Just(Flushes),
        2 => Just(IsSampled),
        1 => Just(CorrectsTheFirst),
        1 => Just(ThinsTheFirst),
        1 => Just(GoesOn),
        3 => Just(Overlaps),
        1 => Just(RenamesABlock),
    ]
}

fn scripted() -> impl Strategy<Value = Scripted> {
    let kept = prop_oneof![2 => Just(0_i64), 4 => 8_i64..12, 2 => -30_i64..40];
    let fields = (0..SOURCES.len(), kept, 0_u64..4, also(), 0..4_u8);
    fields.prop_map(|(cell, kept_mib, reserved_mib, also, reported)| Scripted {
        cell,
        kept_mib,
        reserved_mib,
        also,
        is_reported: reported > 0,
    })
}

fn play(scripted: &Scripted) -> Play {
    let kept = scripted.kept_mib;
    let play = run(kept).peak(kept.max(0) + 20).blocks(kept.signum());
    match scripted.also {
        Also::Steps => play.steps_keeping(&[kept, 3, kept, 3, 3, 3, 3, 3, 3, 3]),
        Also::Names => play.held_by("losses", "list"),
        Also::Displays => play.displayed(),
        Also::Fails => play.status(Status::Error),
        Also::IsTraced => play.traced(),
        Also::IsUnknown => play.unknown(),
        Also::RunsOut => play.status(Status::OutOfMemory),
        Also::IsSampled | Also::ThinsTheFirst | Also::GoesOn => play.sampled(20).seconds(30),
        _ => play,
    }
}

/// The frames of each run in the order in which a recorder tells them: begin, inside, end.
fn frames(script: &[Scripted]) -> (Recording, Vec<Vec<Frame>>) {
    let plays: Vec<Play> = script.iter().map(play).collect();
    let cells: Vec<(&str, &[Play])> = script
        .iter()
        .zip(plays.chunks(1))
        .map(|(scripted, play)| (SOURCES[scripted.cell], play))
        .collect();
    let (whole, _) = session(&cells);
    let mut begun = Recording::new(whole.header().clone());
    let mut of_runs: Vec<Vec<Frame>> = vec![Vec::new(); script.len()];
    let mut ends = Vec::new();
    let mut n_flushes = 0;
    let mut outermost = None;
    for frame in whole.frames() {
        match frame {
            Frame::Run(mut run) => {
                let scripted = script[run.idx.get()];
                n_flushes += u64::from(scripted.also == Also::Flushes);
                elaborate(&mut run, &scripted, n_flushes);
                match outermost {
                    Some(parent) if scripted.also == Also::IsNested => nest(&mut run, parent),
                    _ => outermost = Some((run.idx, run.cell, run.revision)),
                }
                let mut begin = run.clone();
                (begin.status, begin.ended, begin.oom) = (Status::Running, None, None);
                begin
                    .levels
                    .iter_mut()
                    .for_each(|levels| levels.after = None);
                of_runs[run.idx.get()].push(Frame::Run(begin));
                if scripted.also != Also::GoesOn {
                    ends.push(run);
                }
            }
            Frame::Samples(samples) => {
                let of_run = &mut of_runs[samples.run.get()];
                if samples.series != Series::Sampled {
                    // A loop of a single step, which is none to be judged.
                    of_run.push(Frame::Samples(Samples {
                        series: Series::Marked("validation".to_owned()),
                        points: samples.points.first().into_iter().collect(),
                        ..samples.clone()
                    }));
                }
                of_run.push(Frame::Samples(samples));
            }
            Frame::Trace(trace) => of_runs[trace.run.get()].push(Frame::Trace(trace)),
            Frame::Holders(held) => of_runs[held.run.get()].push(Frame::Holders(held)),
            frame => begun.apply(frame).expect("it names no run"),
        }
    }
    let host = Device {
        idx: DeviceIdx(1),
        key: "host".into(),
        label: "host".to_owned(),
        kind: DeviceKind::Host,
        ..Device::default()
    };
    begun.apply(Frame::Device(host)).expect("the next device");
    for mut run in ends {
        let place = run.idx.get();
        let overlapping = script
            .get(place + 1)
            .is_some_and(|it| it.also == Also::Overlaps);
        if overlapping && run.parent.is_none() {
            overlap(&mut run, &mut of_runs[place + 1]);
        } else {
            of_runs[place].push(Frame::Run(run));
        }
    }
    for of_run in &mut of_runs {
        let overlaps = of_run.iter().find_map(|frame| match frame {
            Frame::Run(run) if !run.overlaps.is_empty() => Some(run.idx),
            _ => None,
        });
        let own = of_run.iter_mut().filter_map(|frame| match frame {
            Frame::Run(run) if overlaps.is_some_and(|other| other < run.idx) => Some(run),
            _ => None,
        });
        own.for_each(|run| run.overlaps.extend(overlaps));
    }
    (begun, of_runs)
}

/// A run ends in the middle of the next one, whose frames so far begin with its begin.
fn overlap(run: &mut Run, of_next: &mut Vec<Frame>) {
    let next = of_next.iter().find_map(|frame| match frame {
        Frame::Run(next) => Some((next.idx, next.started)),
        _ => None,
    });
    let (next, started) = next.expect("it has begun");
    run.overlaps.push(next);
    let mut goes_on = run.clone();
    (goes_on.status, goes_on.ended, goes_on.oom) = (Status::Running, None, None);
    goes_on
        .levels
        .iter_mut()
        .for_each(|levels| levels.after = None);
    run.ended = Some(started + Nanos::millis(300));
    of_next.insert(1, Frame::Run(goes_on));
    of_next.push(Frame::Run(run.clone()));
}

/// On the host as well, with a cache, and with what went wrong.
fn elaborate(run: &mut Run, scripted: &Scripted, n_flushes: u64) {
    let levels = &mut run.levels[0];
    let driver = |reading: &Reading| Reading {
        driver: reading.driver.clone(),
        allocators: Vec::new(),
    };
    let of_host = RunLevels {
        device: DeviceIdx(1),
        before: driver(&levels.before),
        after: levels.after.as_ref().map(driver),
        peak_reset: false,
    };
    let cached = |allocator: &mut AllocatorLevels, n: u64, flushes: u64| {
        if let Some(allocated) = allocator.allocated.known() {
            let more = Bytes::mib(u64::from(run.idx.0 + 1) * n);
            allocator.reserved = (allocated + more).into();
        }
        allocator.n_retries = Some(flushes);
    };
    let is_flushed = scripted.also == Also::Flushes;
    let before = levels.before.allocators.iter_mut();
    before.for_each(|it| cached(it, 0, n_flushes - u64::from(is_flushed)));
    let after = levels.after.iter_mut().flat_map(|it| &mut it.allocators);
    after.for_each(|it| cached(it, scripted.reserved_mib, n_flushes));
    run.levels.push(of_host);
    if scripted.also == Also::RunsOut {
        run.oom = Some(Box::new(OutOfMemory {
            device: Some(DeviceIdx(0)),
            ..OutOfMemory::default()
        }));
    }
}

fn nest(run: &mut Run, (parent, cell, revision): (RunIdx, CellIdx, SourceHash)) {
    (run.parent, run.cell, run.revision) = (Some(parent), cell, revision);
    (run.kind, run.label) = (RunKind::Block, Some("epoch".to_owned()));
}

/// What happens to an earlier run after another one ended.
fn late(recording: &Recording, also: Also) -> Option<Frame> {
    let first = recording.runs().first()?;
    match also {
        Also::CorrectsTheFirst => {
            let mut run = first.clone();
            let after = run.levels[0].after.as_mut()?;
            after.allocators = vec![AllocatorLevels {
                allocated: Bytes::mib(40).into(),
                ..AllocatorLevels::unread(Source::Sim)
            }];
            Some(Frame::Run(run))
        }
        Also::ThinsTheFirst => {
            let points = recording.samples(first.idx, DeviceIdx(0), &Series::Sampled);
            Some(Frame::Samples(Samples {
                run: first.idx,
                device: DeviceIdx(0),
                series: Series::Sampled,
                points: points.first().into_iter().collect(),
            }))
        }
        Also::RenamesABlock => {
            let block = recording.runs().iter().rfind(|run| run.parent.is_some())?;
            Some(Frame::Run(Run {
                label: Some("validation".to_owned()),
                ..block.clone()
            }))
        }
        _ => None,
    }
}

proptest! {
    #[test]
    fn after_each_run_the_verdicts_are_those_of_a_fresh_analysis(
        script in prop::collection::vec(scripted(), 1..70),
        min_runs in prop::collection::vec(4_usize..12, 2),
    ) {
        let (mut recording, of_runs) = frames(&script);
        let mut incremental = RunAnalyzer::default();
        let mut changed = BTreeSet::new();
        for (idx, (frames, scripted)) in (0..).zip(of_runs.into_iter().zip(&script)) {
            for frame in frames {
                changed.extend(frame.run());
                recording.apply(frame).expect("frames in order");
            }
            if let Some(frame) = late(&recording, scripted.also) {
                changed.extend(frame.run());
                recording.apply(frame).expect("of an earlier run");
            }
            if !scripted.is_reported {
                continue;
            }
            let rules = Rules {
                min_runs: min_runs[usize::from(idx > 40)],
                ..Rules::default()
            };
            let run = recording.outermost(RunIdx(idx));
            let found = incremental.after(&recording, &changed, run, &rules);
            changed.clear();
            let mut expected = analyze(&recording, &rules);
            expected.warnings.clear();
            expected.rows.retain(|row| row.run == run);
            expected.findings.retain(|finding| {
                finding.runs.iter().any(|it| recording.outermost(*it) == run)
            });
            prop_assert_eq!(found, expected);
        }
    }
}
