use gpumem_analyzer::DeviceSummary;
use gpumem_model::recording::{DeviceIdx, Reading};
use gpumem_model::units::Bytes;
use gpumem_wording as wording;

#[track_caller]
fn check(levels_mib: [Option<u64>; 4], expected: &[(&str, &str)]) {
    let [allocated, reserved, process_used, device_used] = levels_mib.map(|n| n.map(Bytes::mib));
    let summary = DeviceSummary {
        allocated,
        reserved,
        process_used,
        device_used,
        ..DeviceSummary::now(DeviceIdx(0), &Reading::default())
    };
    let gaps = summary.gaps();
    let shown: Vec<(String, &str)> = gaps
        .iter()
        .map(|gap| (gap.size.to_string(), wording::gap(gap)))
        .collect();
    let shown: Vec<(&str, &str)> = shown.iter().map(|(a, b)| (a.as_str(), *b)).collect();
    assert_eq!(shown, expected);
}

#[test]
fn each_gap_has_its_name() {
    check(
        [Some(10), Some(14), Some(20), Some(50)],
        &[
            ("+4 MiB", "cache"),
            ("+6 MiB", "context and libraries"),
            ("+30 MiB", "other processes"),
        ],
    );
    check(
        [Some(10), None, Some(20), None],
        &[("+10 MiB", "cache, context and libraries")],
    );
    check(
        [None, Some(14), None, Some(50)],
        &[("+36 MiB", "context, libraries and other processes")],
    );
    check([None, None, Some(20), None], &[]);
}

#[test]
fn a_negative_gap_is_named_for_what_makes_it() {
    check(
        [Some(10), Some(200), Some(140), None],
        &[
            ("+190 MiB", "cache"),
            ("−60 MiB", "unmapped, managed or shared"),
        ],
    );
}
