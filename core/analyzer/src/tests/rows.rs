//! What rows tell beside growth: copies, spikes, pressure, caches and gaps.

use super::super::context::Context;
use super::super::device_rows::{DeviceRows, RowsByDevice};
use super::super::names::NameHistory;
use super::super::paths::Paths;
use super::super::*;
use super::findings;
use crate::testing::{Play, facts, run, session};
use gpumem_model::recording::{DeviceKind, DriverLevels, Frame};
use gpumem_model::units::Bytes;

#[test]
fn reserved_that_grows_over_a_flat_allocated_is_its_own_shape() {
    let allocated = vec![Bytes::mib(500); 20];
    let reserved: Vec<Bytes> = (0..20).map(|run| Bytes::mib(500 + 20 * run)).collect();
    let growth = classify_allocator(&allocated, &reserved, Bytes::mib(1), &Rules::default());
    assert_eq!(
        (growth.state, growth.shape),
        (GrowthVerdict::Suspected, GrowthShape::ReservedOnly)
    );
}

fn summaries(recording: &Recording, rows: &[RunRow]) -> Vec<DeviceSummary> {
    let of_devices = DeviceRows::all(recording, rows);
    levels::summaries(recording, RowsByDevice::new(rows, &of_devices))
}

/// What is found, beside growth, after each row of the runs was changed by hand.
fn found_in_rows(plays: &[Play], change: impl Fn(usize, &mut RunRow)) -> Option<Finding> {
    use FindingKind::{Doubling, Fragmentation, Gap, Inefficient, Pressure, Repeated, Spike};
    let (recording, _) = session(&[("cell()", plays)]);
    let mut rows = levels::rows(&recording);
    for (idx, row) in rows.iter_mut().enumerate() {
        change(idx, row);
    }
    let mut analysis = Analysis {
        devices: summaries(&recording, &rows),
        rows,
        ..Analysis::default()
    };
    IncrementalAnalyzer::default().judge(&mut analysis, &recording, &Rules::default());
    let kinds = [
        Doubling,
        Spike,
        Pressure,
        Gap,
        Repeated,
        Inefficient,
        Fragmentation,
    ];
    let mut found = analysis.findings.into_iter();
    found.find(|finding| kinds.contains(&finding.kind))
}

#[track_caller]
fn check_rows(
    plays: &[Play],
    change: impl Fn(usize, &mut RunRow),
    expected: Option<&FindingDetails>,
) {
    let found = found_in_rows(plays, change).map(|finding| finding.details);
    assert_eq!(found.as_ref(), expected);
}

fn above(bytes: Option<Bytes>, n_mib: u64) -> Option<Bytes> {
    bytes.map(|bytes| bytes + Bytes::mib(n_mib))
}

#[test]
fn one_run_far_above_the_others_is_a_spike() {
    let rise = |usual: u64, spike: u64| {
        move |idx: usize, row: &mut RunRow| {
            let n_mib = if idx == 3 { spike } else { usual };
            row.peak = above(row.before, n_mib).map(Peak::Exact);
        }
    };
    check_rows(
        &vec![run(0); 8],
        rise(500, 4000),
        Some(&FindingDetails::Spike {
            excess: Bytes::mib(4000),
            usual: Bytes::mib(500),
        }),
    );
    check_rows(&vec![run(0); 8], rise(500, 900), None);
    check_rows(&vec![run(0); 4], rise(500, 4000), None);
}

#[test]
fn what_the_other_runs_may_have_needed_as_well_is_no_spike() {
    // The allocator's peak rose in the first run and was only reached again in the others.
    let reached = |idx: usize, row: &mut RunRow| {
        let (low, high) = (row.before, above(row.before, 4000));
        let bounds = low.zip(high);
        row.peak = match idx {
            0 => high.map(Peak::Exact),
            _ => bounds.map(|(low, high)| Peak::Between { low, high }),
        };
    };
    check_rows(&vec![run(0); 8], reached, None);
    // Nothing bounds what was only seen now and then.
    let seen = |idx: usize, row: &mut RunRow| {
        let n_mib = if idx == 3 { 4000 } else { 0 };
        row.peak = above(row.before, n_mib).map(Peak::AtLeast);
    };
    check_rows(&vec![run(0); 8], seen, None);
}

#[test]
fn what_a_loop_gave_back_at_its_end_is_nothing() {
    let steps = [40; 24];
    let kept = |mib: i64| {
        let found = findings(&[("generate()", &[run(mib).steps_keeping(&steps)])]);
        found.first().map(|finding| finding.kind)
    };
    assert_eq!(kept(960), Some(FindingKind::Leak));
    assert_eq!(kept(0), None);
    // A tenth of what the steps kept does not make the rest of it true.
    assert_eq!(kept(96), None);
}

#[test]
fn growth_that_never_fills_the_device_is_nothing() {
    let (mut recording, _) = session(&[("log.append(x)", &vec![run(1); 12])]);
    let reported =
        |recording: &Recording| !analyze(recording, &Rules::default()).findings.is_empty();
    assert!(reported(&recording));
    for mut run in recording.runs().to_vec() {
        let levels = &mut run.levels[0];
        levels.before.driver.capacity = Bytes::gib(1 << 20).into();
        let after = levels.after.as_mut().expect("it ended");
        after.driver.capacity = Bytes::gib(1 << 20).into();
        recording.apply(Frame::Run(run)).expect("it is known");
    }
    assert!(!reported(&recording));
}

#[test]
fn without_the_driver_the_last_capacity_counts() {
    let (mut recording, _) = session(&[("x = f()", &[run(1), run(1)])]);
    let summary = |recording: &Recording| analyze(recording, &Rules::default()).devices.remove(0);
    let known = summary(&recording);
    assert!(known.capacity.is_some() && known.device_used.is_some());
    let mut last = recording.runs().last().expect("there are two").clone();
    last.levels[0].before.driver = DriverLevels::default();
    last.levels[0].after.as_mut().expect("it ended").driver = DriverLevels::default();
    recording.apply(Frame::Run(last)).expect("it is known");
    let now = summary(&recording);
    assert_eq!((now.capacity, now.device_used), (known.capacity, None));
}

#[test]
fn a_rerun_that_holds_two_copies_says_so() {
    let plays = [vec![run(2000)], vec![run(0); 3]].concat();
    let rise = |first_mib: u64, later_mib: u64| {
        move |idx: usize, row: &mut RunRow| {
            let n_mib = if idx == 0 { first_mib } else { later_mib };
            row.peak = above(row.before, n_mib).map(Peak::Exact);
        }
    };
    let copies = |rose_mib: u64| {
        FindingDetails::Doubling(DoublingDetails {
            old: Bytes::mib(2000),
            new: Bytes::mib(2000),
            rose: Bytes::mib(rose_mib),
            n_reruns: 3,
        })
    };
    check_rows(&plays, rise(2000, 2000), Some(&copies(2000)));
    // Building takes as much again for a moment, each time.
    check_rows(&plays, rise(3500, 3500), Some(&copies(3500)));
    check_rows(&plays, rise(2000, 300), None);
    // What the first run made is used: it is not made again.
    check_rows(&plays, rise(5000, 3000), None);
    // Run after run adds a copy: that is growth.
    check_rows(&vec![run(2000); 3], rise(2000, 2000), None);
}

#[test]
fn a_new_copy_of_another_size_is_reported() {
    let plays = [run(2000), run(500)];
    let rise = |idx: usize, row: &mut RunRow| {
        row.peak = above(row.before, if idx == 0 { 2000 } else { 2500 }).map(Peak::Exact);
    };
    let copies = FindingDetails::Doubling(DoublingDetails {
        old: Bytes::mib(2000),
        new: Bytes::mib(2500),
        rose: Bytes::mib(2500),
        n_reruns: 1,
    });
    check_rows(&plays, rise, Some(&copies));
}

#[test]
fn a_doubling_names_the_old_copy_and_the_fix() {
    let cell = "model = Model(\n    big=True,\n)";
    let built = run(2000).held_by("model", "Model").traced();
    let plays = [built, run(0).peak(2000).traced()];
    let found = findings(&[(cell, &plays)]);
    let found = found.iter().find(|it| it.kind == FindingKind::Doubling);
    let found = found.expect("two copies");
    assert_eq!(found.holders[0].name, "model");
    let fix = found.fix.as_ref().expect("the cell binds the name");
    assert_eq!(fix.before.as_deref(), Some(cell));
    assert_eq!(fix.after, format!("model = None\n{cell}"));
    let details = FindingDetails::Doubling(DoublingDetails {
        old: Bytes::mib(2000),
        new: Bytes::mib(2000),
        rose: Bytes::mib(2000),
        n_reruns: 1,
    });
    assert_eq!(found.details, details);
}

#[test]
fn flushes_of_the_cache_are_pressure() {
    let retries = |n: u64| move |_: usize, row: &mut RunRow| row.n_retries = Some(n);
    check_rows(
        &[run(0), run(0)],
        retries(2),
        Some(&FindingDetails::Pressure {
            n_flushes: 4,
            usable: None,
        }),
    );
    check_rows(&[run(0), run(0)], retries(0), None);
    check_rows(
        &[run(0), run(0)],
        retries(u64::MAX),
        Some(&FindingDetails::Pressure {
            n_flushes: u64::MAX,
            usable: None,
        }),
    );
}

#[test]
fn reservations_that_come_and_go_are_reported() {
    let reserve = |before: u64, after: u64, peak: u64| {
        move |_: usize, row: &mut RunRow| {
            row.reserved = (Some(Bytes::mib(before)), Some(Bytes::mib(after)));
            row.process_used = row.reserved;
            row.peak = Some(Peak::Exact(Bytes::mib(peak)));
        }
    };
    check_rows(
        &vec![run(0); 6],
        reserve(100, 100, 900),
        Some(&FindingDetails::Repeated { n_all: 6 }),
    );
    check_rows(
        &vec![run(0); 6],
        reserve(100, 1100, 200),
        Some(&FindingDetails::Inefficient { used_share: 0.2 }),
    );
    check_rows(&vec![run(0); 6], reserve(100, 100, 90), None);
}

#[test]
fn a_cache_of_what_was_in_use_once_is_no_fragmentation() {
    // Runs collect 20 MiB each, and the last of them lets go of it all: the allocator keeps it.
    let sawtooth = [vec![run(20); 14], vec![run(-14 * 20)]].concat();
    let reserve = |_: usize, row: &mut RunRow| {
        row.reserved = (row.before, row.before.max(row.after));
    };
    check_rows(&sawtooth, reserve, None);
    let grow = |idx: usize, row: &mut RunRow| {
        let [before, after] = [idx, idx + 1].map(|n| Bytes::mib(500 + 20 * n as u64));
        row.reserved = (Some(before), Some(after));
    };
    let found = found_in_rows(&vec![run(0); 15], grow);
    let found = found.as_ref().map(facts);
    let expected = "fragmentation: cell() · 20 MiB a run, 280 in all";
    assert_eq!(found.as_deref(), Some(expected));
}

#[test]
fn growth_beside_the_allocator_is_a_gap() {
    let hold = |each_run: u64| {
        move |idx: usize, row: &mut RunRow| {
            row.reserved = (Some(Bytes::mib(500)), Some(Bytes::mib(500)));
            let beside = 300 + each_run * idx as u64;
            row.process_used.1 = Some(Bytes::mib(500 + beside));
        }
    };
    let found = found_in_rows(&vec![run(0); 12], hold(40));
    let found = found.as_ref().map(facts);
    let expected = "growing_gap: device · 40 MiB a run, 440 in all";
    assert_eq!(found.as_deref(), Some(expected));
    check_rows(&vec![run(0); 12], hold(0), None);
}

#[test]
fn fragmentation_has_the_bytes_that_can_be_returned() {
    let (recording, _) = session(&[("cell()", &[run(0)])]);
    let rows = levels::rows(&recording);
    let mut devices = summaries(&recording, &rows);
    let check = |devices: &[DeviceSummary], expected: Option<FragmentationDetails>| {
        let of_devices = DeviceRows::all(&recording, &rows);
        let paths = Paths::new(&recording);
        let found = crate::findings::fragmentation::on_devices(Context {
            names: &NameHistory::default(),
            recording: &recording,
            rows: RowsByDevice::new(&rows, &of_devices),
            paths: &paths,
            devices,
            rules: &Rules::default(),
        });
        let details = found.into_iter().map(|finding| finding.details).next();
        assert_eq!(details, expected.map(FindingDetails::Fragmentation));
    };
    let device = &mut devices[0];
    device.allocated = Some(Bytes::mib(400));
    device.reserved = Some(Bytes::mib(1000));
    device.largest_free = Some(Bytes::mib(20));
    device.inactive_split = Some(Bytes::mib(450));
    check(
        &devices,
        Some(FragmentationDetails {
            inactive_split: Bytes::mib(450),
            reserved: Bytes::mib(1000),
            largest_free: Some(Bytes::mib(20)),
            reclaimable: Bytes::mib(150),
            mapped: None,
            device_kind: DeviceKind::Simulated,
        }),
    );
    devices[0].largest_free = Some(Bytes::mib(420));
    check(&devices, None);
    devices[0].largest_free = Some(Bytes::mib(20));
    devices[0].inactive_split = Some(Bytes::mib(100));
    check(&devices, None);
}
