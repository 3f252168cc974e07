//! The allocator's history of a run, replayed, has the levels that the allocator had.

use std::collections::HashMap;

use proptest::prelude::*;

use gpumem_model::recording::{DeviceIdx, FrameOrigin, RunIdx, Trace};
use gpumem_model::trace::*;
use gpumem_model::trace::{AllocatorLayout, StackFrame};
use gpumem_model::units::{Bytes, Nanos};
use gpumem_sim::CachingAllocator;

const MIB: u64 = 1 << 20;

/// `3a+8` allocates 8 MiB as `a` in line 3 of the cell, `a-8` frees them, `s+20` and `s-20` are
/// a segment; one event a millisecond.
fn history(line: &str, before_mib: u64, rounding: Rounding) -> History {
    let before = HistoryLevels {
        allocated: Bytes::mib(before_mib),
        reserved: Bytes::mib(before_mib),
    };
    let mut history = History::new(before, rounding);
    for (at, word) in (1..).zip(line.split_whitespace()) {
        let digits = word.len() - word.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let (number, rest) = word.split_at(digits);
        let (name, sign, size) = (&rest[..1], &rest[1..2], &rest[2..]);
        let action = match (name, sign) {
            ("s", "+") => Action::SegmentAlloc,
            ("s", _) => Action::SegmentFree,
            (_, "+") => Action::Alloc,
            _ => Action::FreeRequested,
        };
        let stack = number.parse().ok().map(|line| stack(&mut history, line));
        history.events.push(AllocatorEvent {
            at: Nanos::millis(at),
            action,
            address: u64::from(name.as_bytes()[0]) << 40,
            size: Bytes::mib(size.parse().expect("a size")),
            stack,
        });
    }
    history
}

/// A line of the cell that calls into a library.
fn stack(history: &mut History, line: u32) -> StackIdx {
    let first = u32::try_from(history.frames.len()).expect("few frames");
    history.frames.push(StackFrame {
        name: "forward".to_owned(),
        file: "/env/lib/site-packages/torch/nn/modules/linear.py".to_owned(),
        line: 134,
        module: Some("Linear".to_owned()),
        ..StackFrame::default()
    });
    history.frames.push(StackFrame {
        name: "<module>".to_owned(),
        file: "cell".to_owned(),
        line,
        origin: FrameOrigin::Own,
        module: None,
    });
    history.frames.push(StackFrame {
        name: "run_code".to_owned(),
        file: "/env/lib/site-packages/IPython/core/interactiveshell.py".to_owned(),
        line: 3_500,
        ..StackFrame::default()
    });
    history.stacks.push(vec![first, first + 1, first + 2]);
    StackIdx(u32::try_from(history.stacks.len() - 1).expect("few stacks"))
}

fn whole(history: History) -> Trace {
    let place = (RunIdx(0), DeviceIdx(0));
    let to = Nanos::millis(1_000);
    Replay::new(history).trace(place, Nanos::new(0), to, TraceLimits::default())
}

/// Peak, retained, and `line:retained/at peak` in MiB.
#[track_caller]
fn check(line: &str, peak: u64, retained: u64, lines: &str) {
    let trace = whole(history(line, 100, Rounding::Exact));
    let mib = |bytes: Bytes| bytes.get() / MIB;
    assert_eq!(mib(trace.peak.low), peak, "peak");
    assert_eq!(trace.peak.low, trace.peak.high, "exact");
    assert_eq!(mib(trace.total.retained), retained, "retained");
    let shown = trace.lines.iter().map(|it| {
        let line = it.line.map_or("-".to_owned(), |line| line.to_string());
        format!(
            "{line}:{}/{}",
            mib(it.tally.retained),
            mib(it.tally.at_peak)
        )
    });
    assert_eq!(shown.collect::<Vec<_>>().join(" "), lines);
}

#[test]
fn bytes_are_grouped_by_the_line_that_allocated_them() {
    check("3a+8 4b+2 a-8 4c+1", 110, 3, "4:3/2 3:0/8");
    check("3a+8 a-8 3a+9 a-9 5b+9", 109, 9, "5:9/0 3:0/9");
    check("a+8 2b+1", 109, 9, "-:8/8 2:1/1");
    check("", 100, 0, "");
}

#[test]
fn a_block_of_before_counts_for_the_level_alone() {
    check("z-40 3a+8", 100, 8, "3:8/0");
    check("3a+8 z-40", 108, 8, "3:8/8");
}

#[test]
fn a_part_starts_from_where_the_run_stood() {
    let replay = Replay::new(history("1a+8 2b+4 b-4 a-8", 100, Rounding::Exact));
    let place = (RunIdx(1), DeviceIdx(0));
    let part = replay.trace(
        place,
        Nanos::millis(2),
        Nanos::millis(3),
        TraceLimits::of_a_part(),
    );
    assert_eq!(part.steps[0].allocated, Some(Bytes::mib(108)));
    assert_eq!(
        (part.peak.low, part.peak.from_before),
        (Bytes::mib(112), Bytes::mib(108))
    );
    assert_eq!(part.total.retained, Bytes::ZERO);
    let first = replay.trace(
        place,
        Nanos::millis(1),
        Nanos::millis(2),
        TraceLimits::of_a_part(),
    );
    assert_eq!(first.total.retained, Bytes::mib(12), "freed after the part");
}

#[test]
fn what_asks_for_a_size_gets_a_block_that_may_be_larger() {
    let native = Rounding::Native {
        unsplit: Bytes::mib(1),
        max_split: None,
    };
    let mut replayed = history("1a+8 a-8 1b+3", 0, native);
    replayed.events[2].size = Bytes::new(3 * MIB - 1);
    let trace = whole(replayed.clone());
    assert_eq!(
        (trace.peak.low, trace.peak.high),
        (Bytes::mib(8), Bytes::mib(9))
    );
    assert_eq!(trace.total.retained, Bytes::mib(3));
    // The allocator says how large the block became that is still there.
    replayed.blocks_after = HashMap::from([(u64::from(b'b') << 40, Bytes::mib(4))]);
    assert_eq!(whole(replayed).total.retained, Bytes::mib(4));
}

#[test]
fn where_memory_lay_tells_the_size_of_a_block_that_is_gone() {
    let native = |max_split| Rounding::Native {
        unsplit: Bytes::mib(1),
        max_split,
    };
    let check = |line: &str, rounding, peak: u64| {
        let mut replayed = history(line, 0, rounding);
        replayed.layout_before = Some(AllocatorLayout::default());
        for event in &mut replayed.events {
            event.address = 1 << 40;
            if event.action == Action::Alloc {
                event.size = event.size.saturating_sub(Bytes::new(700_000));
            }
        }
        let peak_of = whole(replayed).peak;
        let expected = Bytes::new(peak);
        assert_eq!((peak_of.low, peak_of.high), (expected, expected));
    };
    check("s+8 a+8 a-8", native(None), 8 * MIB);
    let rounded = (8 * MIB - 700_000).div_ceil(512) * 512;
    check("s+20 a+8 a-8", native(None), rounded);
    check("s+20 a+8 a-8", native(Some(Bytes::mib(4))), 20 * MIB);
}

#[test]
fn a_layout_that_does_not_lead_to_the_levels_after_is_dropped() {
    let native = Rounding::Native {
        unsplit: Bytes::mib(1),
        max_split: None,
    };
    let mut replayed = history("s+20 1a+8", 0, native);
    replayed.events[1].address = replayed.events[0].address;
    replayed.layout_before = Some(AllocatorLayout::default());
    replayed.after = Some(HistoryLevels {
        allocated: Bytes::new(8 * MIB + 512),
        reserved: Bytes::mib(20),
    });
    let trace = whole(replayed);
    assert!(!trace.is_cut);
    assert_eq!(
        (trace.peak.low, trace.peak.high),
        (Bytes::mib(8), Bytes::mib(9))
    );
}

#[test]
fn a_history_without_its_beginning_is_counted_from_its_end() {
    let mut cut = history("a+8 b+2 b-2", 0, Rounding::Exact);
    cut.after = Some(HistoryLevels {
        allocated: Bytes::mib(38),
        reserved: Bytes::mib(40),
    });
    let trace = whole(cut);
    assert!(trace.is_cut);
    let first = trace.steps[0];
    let levels = (first.allocated, first.reserved);
    assert_eq!(levels, (Some(Bytes::mib(30)), Some(Bytes::mib(40))));
    assert_eq!(trace.peak.low, Bytes::mib(40));
    let mut whole_one = history("a+8 b+2 b-2", 0, Rounding::Exact);
    whole_one.after = Some(HistoryLevels {
        allocated: Bytes::mib(8),
        reserved: Bytes::ZERO,
    });
    assert!(!whole(whole_one).is_cut);
}

#[test]
fn stacks_read_from_the_call_to_the_line_and_modules_by_class() {
    let trace = whole(history("7a+8", 0, Rounding::Exact));
    let frames = ["forward, torch/nn/modules/linear.py:134", "line 7"];
    assert_eq!(trace.stacks[0].frames, frames);
    assert_eq!(trace.modules[0].path, "Linear");
}

#[test]
fn long_lived_is_what_stands_at_the_peak_for_half_of_the_run() {
    let check = |to: u64, long_lived: u64| {
        let replay = Replay::new(history("3a+8 4b+2 b-2 4c+1 c-1 a-8", 0, Rounding::Exact));
        let place = (RunIdx(0), DeviceIdx(0));
        let trace = replay.trace(
            place,
            Nanos::new(0),
            Nanos::millis(to),
            TraceLimits::default(),
        );
        assert_eq!(trace.total.long_lived, Bytes::mib(long_lived));
    };
    check(8, 8);
    check(10, 8);
    check(11, 0);
}

#[test]
fn lifetimes_are_of_what_was_freed() {
    let trace = whole(history("a+8 b+1 b-1 c+1 a-8", 0, Rounding::Exact));
    let classes: Vec<u64> = trace.lifetimes.iter().map(|class| class.n_blocks).collect();
    assert_eq!(classes, [1, 1, 0, 0, 0, 0]);
    assert_eq!(trace.total.longest, Nanos::millis(4));
}

proptest! {
    /// The model's allocator counts its levels and peaks itself: a replay of what it logged
    /// agrees to the byte, whatever was done before the log began.
    #[test]
    fn a_replay_agrees_with_the_allocator(
        steps in prop::collection::vec((0_u8..8, 0_usize..16, 1_u64..48 * MIB), 1..120),
        logs_from in 0_usize..60,
    ) {
        let mut device = CachingAllocator::new(Bytes::mib(512));
        let mut held = Vec::new();
        let mut history = None;
        for (idx, (what, which, size)) in steps.into_iter().enumerate() {
            if idx >= logs_from && history.is_none() {
                device.reset_peaks();
                device.keep_log(true);
                history = Some(begun(&device));
            }
            match what {
                0..4 => held.extend(device.allocate(Bytes::new(size))),
                4..7 if !held.is_empty() => device.free(held.swap_remove(which % held.len())),
                _ => drop(device.empty_cache()),
            }
        }
        let Some(mut history) = history else { return Ok(()) };
        history.events = (1..).zip(device.take_log()).map(|(at, change)| AllocatorEvent {
            at: Nanos::millis(at),
            action: change.action,
            address: change.address,
            size: change.size,
            stack: None,
        }).collect();
        let stats = device.stats();
        history.after = Some(HistoryLevels { allocated: stats.allocated, reserved: stats.reserved });
        let before = history.before.allocated;
        let trace = whole(history);
        let last = trace.steps.last().expect("the end is kept");
        prop_assert!(!trace.is_cut);
        prop_assert_eq!(last.allocated, Some(stats.allocated));
        prop_assert_eq!(last.reserved, Some(stats.reserved));
        prop_assert_eq!(trace.peak.low, stats.peak_allocated);
        prop_assert_eq!(trace.peak.high, stats.peak_allocated);
        let highest = trace.steps.iter().filter_map(|step| step.allocated).max();
        prop_assert_eq!(highest, Some(stats.peak_allocated));
        prop_assert!(trace.total.retained <= stats.allocated);
        prop_assert!(stats.allocated <= before + trace.total.retained);
        let of_lines: Bytes = trace.lines.iter().map(|line| line.tally.retained).sum();
        prop_assert_eq!(of_lines, trace.total.retained);
    }

    /// Whatever a history says, playing it does not panic, and parts stay inside it.
    #[test]
    fn any_history_can_be_played(
        events in prop::collection::vec((0_u8..6, 0_u64..4, any::<u64>(), 0_u64..9), 0..60),
        levels in any::<[u64; 4]>(),
        custom in any::<bool>(),
        known in any::<bool>(),
    ) {
        let rounding = if custom { Rounding::Custom } else { Rounding::Exact };
        let [allocated, reserved, then_allocated, then_reserved] = levels.map(|n| Bytes::new(n >> 8));
        let mut history = History::new(HistoryLevels { allocated, reserved }, rounding);
        history.after = known.then_some(HistoryLevels {
            allocated: then_allocated,
            reserved: then_reserved,
        });
        let mut at = 0;
        for (action, address, size, step) in events {
            at += step;
            history.events.push(AllocatorEvent {
                at: Nanos::new(at),
                action: [
                    Action::Alloc, Action::FreeRequested, Action::FreeCompleted,
                    Action::SegmentAlloc, Action::SegmentFree, Action::OutOfMemory,
                ][usize::from(action)],
                address,
                size: Bytes::new(size),
                stack: (size % 3 == 0).then_some(StackIdx(7)),
            });
        }
        let replay = Replay::new(history);
        let place = (RunIdx(0), DeviceIdx(0));
        let part = replay.trace(place, Nanos::new(5), Nanos::new(40), TraceLimits::of_a_part());
        prop_assert!(part.peak.low <= part.peak.high);
        prop_assert!(part.steps.windows(2).all(|pair| pair[0].at <= pair[1].at));
    }
}

fn begun(device: &CachingAllocator) -> History {
    let stats = device.stats();
    let before = HistoryLevels {
        allocated: stats.allocated,
        reserved: stats.reserved,
    };
    let mut history = History::new(before, Rounding::Exact);
    let segments: Vec<_> = device.segments().collect();
    let held = segments.iter().flat_map(|segment| &segment.blocks);
    let held = held.filter(|block| block.held_as.is_some());
    history.blocks_before = held.map(|block| (block.address, block.size)).collect();
    history
}
