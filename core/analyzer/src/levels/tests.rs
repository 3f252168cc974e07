use super::peak::allocator_peak;
use super::*;
use crate::row::Peak;
use crate::testing;
use crate::{Rules, analyze};
use gpumem_model::recording::{Frame, LoopIdx, RunIdx, Sample, Samples, Source, Status};

/// One allocator: its level before, its peak before and after, what it allocated between.
struct Counters {
    start: u64,
    peaks: [u64; 2],
    allocated_in_run: Option<u64>,
}

fn levels(counters: &[Counters], reset: bool) -> RunLevels {
    let reading = |idx: usize| Reading {
        allocators: counters
            .iter()
            .zip(Source::ALL)
            .map(|(counters, source)| AllocatorLevels {
                allocated: Bytes::new(counters.start).into(),
                peak_allocated: Bytes::new(counters.peaks[idx]).into(),
                total_allocated: counters.allocated_in_run.map_or(Level::default(), |n| {
                    Bytes::new(1000 + n * idx as u64).into()
                }),
                ..AllocatorLevels::unread(source)
            })
            .collect(),
        ..Reading::default()
    };
    RunLevels {
        device: DeviceIdx(0),
        before: reading(0),
        after: Some(reading(1)),
        peak_reset: reset,
    }
}

#[track_caller]
fn check(counters: &[Counters], reset: bool, seen: u64, expected: Peak) {
    let found = allocator_peak(&levels(counters, reset), Bytes::new(seen));
    assert_eq!(found, expected);
}

fn peaks(before: u64, after: u64) -> Counters {
    Counters {
        start: 10,
        peaks: [before, after],
        allocated_in_run: None,
    }
}

fn allocating(before: u64, after: u64, in_run: u64) -> Counters {
    Counters {
        allocated_in_run: Some(in_run),
        ..peaks(before, after)
    }
}

const fn between(low: u64, high: u64) -> Peak {
    Peak::Between {
        low: Bytes::new(low),
        high: Bytes::new(high),
    }
}

#[test]
fn a_peak_is_exact_only_where_the_counter_rose_or_was_reached() {
    let bytes = Bytes::new;
    check(&[peaks(50, 80)], false, 60, Peak::Exact(bytes(80)));
    check(&[peaks(50, 50)], false, 50, Peak::Exact(bytes(50)));
    check(&[peaks(50, 50)], false, 40, between(40, 50));
    check(&[peaks(50, 30)], true, 20, Peak::AtLeast(bytes(30)));
}

#[test]
fn what_a_run_allocated_bounds_its_peak_from_above() {
    let bytes = Bytes::new;
    check(&[allocating(50, 50, 15)], false, 20, between(20, 25));
    check(&[allocating(50, 50, 90)], false, 20, between(20, 50));
    check(&[allocating(50, 30, 90)], true, 20, between(30, 100));
    check(&[allocating(50, 50, 0)], false, 10, Peak::Exact(bytes(10)));
}

/// What a run kept on a device with these allocators at its ends.
fn kept(before: &[AllocatorLevels], after: &[AllocatorLevels]) -> Option<i64> {
    let totals = |allocators: &[AllocatorLevels]| {
        Totals::from_reading(&Reading {
            allocators: allocators.to_vec(),
            ..Reading::default()
        })
    };
    let (before, after) = (totals(before), totals(after));
    let start = start_of(Metric::Allocated, &before, &after)?;
    Some(after.allocated?.since(start).get())
}

#[test]
fn an_unread_allocator_s_level_is_not_the_run_s_allocation() {
    let levels = |n: u64| AllocatorLevels {
        allocated: Bytes::new(n).into(),
        ..AllocatorLevels::unread(Source::Torch)
    };
    let asleep = AllocatorLevels::unread(Source::Torch);
    let failed = AllocatorLevels::failed(Source::Torch, "no answer");
    assert_eq!(kept(&[levels(5)], &[levels(8)]), Some(3));
    assert_eq!(kept(&[], &[levels(8)]), Some(8));
    assert_eq!(kept(&[asleep], &[levels(8)]), Some(8));
    assert_eq!(kept(&[failed], &[levels(8)]), None);
}

#[test]
fn allocators_of_one_device_need_not_peak_together() {
    let bytes = Bytes::new;
    check(&[peaks(50, 80), peaks(20, 30)], false, 60, between(80, 110));
    let unknown_and_known = [peaks(50, 30), peaks(20, 30)];
    check(&unknown_and_known, true, 60, Peak::AtLeast(bytes(60)));
}

#[test]
fn a_run_that_goes_on_has_risen_since_its_allocator_was_read() {
    let play = testing::run(0).status(Status::Running);
    let (mut recording, _) = testing::session(&[("f()", &[play])]);
    let begun = recording.run(RunIdx(0)).started.get();
    let sample = |at: u64, allocated: Option<u64>, used: u64| Sample {
        at: Nanos::new(begun + at),
        allocated: allocated.map(Bytes::gib),
        process_used: Some(Bytes::gib(used)),
        ..Sample::default()
    };
    let sampled = [
        sample(80, None, 5),
        sample(90, None, 6),
        sample(200, None, 7),
    ];
    let in_loop = [sample(50, Some(4), 5), sample(100, Some(5), 5)];
    for (series, points) in [
        (Series::Sampled, &sampled[..]),
        (Series::Loop(LoopIdx(0)), &in_loop),
    ] {
        let samples = Samples {
            run: RunIdx(0),
            device: DeviceIdx(0),
            series,
            points: points.iter().copied().collect(),
        };
        recording.apply(Frame::Samples(samples)).expect("it fits");
    }
    let analysis = analyze(&recording, &Rules::default());
    assert_eq!(analysis.rows[0].so_far, Some(Bytes::gib(6)));
}
