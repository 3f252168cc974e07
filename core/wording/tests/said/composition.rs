use gpumem_analyzer::testing::{leak, run, session};
use gpumem_analyzer::*;
use gpumem_analyzer::{Limit, LimitedBy};
use gpumem_model::holders::StorageUse as Purpose;
use gpumem_model::recording::DeviceIdx;
use gpumem_model::recording::Reading;
use gpumem_model::units::*;
use gpumem_wording as wording;

fn bare() -> DeviceSummary {
    DeviceSummary::now(DeviceIdx(0), &Reading::default())
}

/// The parts, named and in bytes.
#[track_caller]
fn check_parts(parts: &[CompositionPart], expected: &[(&str, u64)]) {
    let found = parts
        .iter()
        .map(|part| (wording::part(part), part.size.get()));
    assert_eq!(found.collect::<Vec<_>>(), expected);
}

#[track_caller]
fn check(levels: [Option<u64>; 5], expected: &[(&str, u64)]) {
    let [allocated, reserved, process_used, device_used, capacity] =
        levels.map(|n| n.map(Bytes::new));
    let limit = capacity.map(|bytes| Limit {
        by: LimitedBy::Device,
        bytes,
        used: device_used.or(process_used).or(reserved),
    });
    let summary = DeviceSummary {
        allocated,
        reserved,
        process_used,
        device_used,
        limits: limit.into_iter().collect(),
        capacity,
        ..bare()
    };
    check_parts(&summary.composition(), expected);
}

#[test]
fn the_parts_are_what_lies_between_the_levels() {
    check(
        [Some(40), Some(50), Some(55), Some(70), Some(100)],
        &[
            ("allocated", 40),
            ("cache", 10),
            ("context and libraries", 5),
            ("other processes", 15),
            ("free", 30),
        ],
    );
    check(
        [None, None, Some(20), Some(70), None],
        &[("this process", 20), ("other processes", 50)],
    );
    check([None; 5], &[]);
}

#[track_caller]
fn check_purposes(summary: &DeviceSummary, found: &[(Purpose, u64)], expected: &[(&str, u64)]) {
    let found = found.iter().map(|(purpose, n)| (*purpose, Bytes::new(*n)));
    let parts = summary.composition_by_purpose(&found.collect::<Vec<_>>());
    check_parts(&parts, expected);
}

#[test]
fn allocated_memory_is_divided_by_purpose() {
    let context = ("cache, context and libraries", 10);
    let model = [(Purpose::Parameters, 30), (Purpose::Unnamed, 4)];
    let summary = |allocated: Option<u64>| DeviceSummary {
        allocated: allocated.map(Bytes::new),
        process_used: Some(Bytes::new(50)),
        ..bare()
    };
    for (allocated, found, expected) in [
        (
            Some(40),
            &model[..],
            &[("parameters", 30), ("unnamed", 10), context][..],
        ),
        (Some(40), &[], &[("unnamed", 40), context]),
        (
            Some(40),
            &[(Purpose::Names, 41)],
            &[("allocated", 40), context],
        ),
        (None, &model, &[("this process", 50)]),
    ] {
        check_purposes(&summary(allocated), found, expected);
    }
}

#[test]
fn block_sizes_above_requested_bytes_are_rounding() {
    let check = |requested: u64, expected: &[(&str, u64)]| {
        let summary = DeviceSummary {
            allocated: Some(Bytes::new(10_000)),
            requested: Some(Bytes::new(requested)),
            ..bare()
        };
        check_purposes(
            &summary,
            &[(Purpose::Graphs, 7000), (Purpose::Names, 2000)],
            expected,
        );
    };
    let (graphs, names) = (("graphs", 7000), ("your names", 2000));
    check(9000, &[graphs, names, ("rounding", 1000)]);
    check(9400, &[graphs, names, ("unnamed", 400), ("rounding", 600)]);
    // Too little for a word of its own.
    check(9995, &[("graphs", 7005), names, ("unnamed", 995)]);
    // Requested bytes are fewer than the look's: it was at another instant.
    check(8000, &[graphs, names, ("rounding", 1000)]);
}

#[test]
fn what_is_nothing_or_less_is_no_part() {
    check(
        [Some(0), Some(90), Some(60), Some(60), Some(100)],
        &[("cache", 90), ("free", 40)],
    );
}

#[test]
fn a_part_leads_to_the_worst_finding_about_it() {
    let (recording, mut analysis) = session(&[("a()", &[run(40)])]);
    let leak = leak(&recording, 0, 40);
    let of_kind = |id: &str, kind| Finding {
        id: id.to_owned(),
        kind,
        ..leak.clone()
    };
    analysis.findings = vec![
        of_kind("worst", FindingKind::Leak),
        of_kind("next", FindingKind::Growing),
        of_kind("pieces", FindingKind::Fragmentation),
        of_kind("gap", FindingKind::Gap),
    ];
    let check = |device: u32, part, expected: Option<&str>| {
        let found = analysis.finding_about(DeviceIdx(device), part);
        assert_eq!(found.map(|it| it.id.as_str()), expected);
    };
    check(0, PartKind::Held, Some("worst"));
    check(0, PartKind::Cache, Some("pieces"));
    check(0, PartKind::Context, Some("gap"));
    check(0, PartKind::Others, None);
    check(0, PartKind::Free, None);
    check(1, PartKind::Held, None);
}
