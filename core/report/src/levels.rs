//! What each device holds now: one line of levels, and below it what they are for.

use super::{idle, to_text};
use gpumem_analyzer::{CompositionPart, DeviceSummary, PartKind, idle_memory};
use gpumem_heap::Holders;
use gpumem_model::holders::DeviceHolders;
use gpumem_model::printable::printable;
use gpumem_model::recording::{Device, Level, Reading, Recording, Unknown};
use gpumem_model::units::{ByteDelta, Bytes};
use gpumem_wording as wording;

/// Width of the bar that stands for the whole device, in columns.
const BAR: usize = 24;

/// The levels of each device, and the parts of each accelerator (without one, of every device). Parts
/// are named by purpose if the holders are known.
///
/// ```text
/// cuda:0  Tesla T4  6.9 GiB of 14.7 GiB · this process 6.2 GiB · torch allocated 5.1 GiB · …
///      2.1 GiB  ███▌                      parameters
///      …
///      7.8 GiB  ░░░░░░░░░░░░              free
/// ```
pub fn levels(
    recording: &Recording,
    devices: &[(Device, Reading)],
    held: Option<&Holders>,
    width: usize,
) -> String {
    let label_width = devices.iter().map(|(device, _)| device.label.len()).max();
    let has_accelerator = devices
        .iter()
        .any(|(device, _)| device.kind.is_accelerator());
    let lines = devices.iter().flat_map(|(device, reading)| {
        let mut lines = vec![line(device, reading, label_width.unwrap_or(0))];
        if device.kind.is_accelerator() || !has_accelerator {
            let held = held.and_then(|it| it.devices.iter().find(|of| of.device == device.label));
            lines.extend(part_lines(device, reading, held));
            lines.extend(idle_lines(recording, (device, reading), held, width));
        }
        lines
    });
    let lines = lines.map(|line| printable(&line));
    to_text(&lines.collect::<Vec<_>>())
}

/// Which names no cell of the recording has read for a while.
fn idle_lines(
    recording: &Recording,
    (device, reading): (&Device, &Reading),
    held: Option<&DeviceHolders>,
    width: usize,
) -> Vec<String> {
    let capacity = DeviceSummary::now(device.idx, reading).capacity;
    let mut recorded = recording.devices().iter();
    let recorded = recorded.find(|it| it.key == device.key);
    let Some(((held, capacity), recorded)) = held.zip(capacity).zip(recorded) else {
        return Vec::new();
    };
    let idle = idle_memory(recording, (recorded.idx, capacity), held);
    idle::lines(recording, &idle, false, width)
}

fn part_lines(device: &Device, reading: &Reading, held: Option<&DeviceHolders>) -> Vec<String> {
    let summary = DeviceSummary::now(device.idx, reading);
    let parts = match held {
        Some(held) => summary.composition_by_purpose(&held.parts),
        None => summary.composition(),
    };
    let whole: Bytes = parts.iter().map(|part| part.size).sum();
    let mut lines: Vec<String> = parts.iter().map(|part| part_line(part, whole)).collect();
    let gaps = summary.gaps().into_iter();
    let negative = gaps.filter(|gap| gap.size < ByteDelta::ZERO);
    lines.extend(negative.map(|gap| row(&gap.size.to_string(), "", wording::gap(&gap))));
    if held.is_some_and(|held| held.is_cut) {
        lines.push("  … the search for names reached its limit".to_owned());
    }
    lines
}

fn part_line(part: &CompositionPart, whole: Bytes) -> String {
    let n_columns = part.size.as_f64() / whole.as_f64() * BAR as f64;
    let bar = if part.kind() == PartKind::Free {
        "░".repeat(n_columns.round() as usize)
    } else {
        ink(n_columns)
    };
    row(&part.size.to_string(), &bar, wording::part(part))
}

/// A bar with a precision of an eighth of a column; any part is visible, however small.
fn ink(n_columns: f64) -> String {
    const EIGHTHS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
    let n_eighths = ((n_columns * 8.0).round() as usize).max(1);
    format!("{}{}", "█".repeat(n_eighths / 8), EIGHTHS[n_eighths % 8])
}

fn row(size: &str, bar: &str, words: &str) -> String {
    format!("  {size:>10}  {bar:<BAR$}  {words}")
}

/// A device's levels; in place of one that could not be read, why not.
fn line(device: &Device, reading: &Reading, width: usize) -> String {
    let driver = &reading.driver;
    let mut parts = Vec::new();
    match (driver.device_used.known(), driver.capacity.known()) {
        (Some(used), Some(capacity)) => parts.push(format!("{used} of {capacity}")),
        (Some(used), None) => parts.push(format!("{used} used")),
        (None, Some(capacity)) => parts.push(format!("{capacity} in all")),
        (None, None) => parts.extend(failure("the driver", &driver.device_used)),
    }
    parts.extend(known("this process", &driver.process_used));
    for (words, level) in [
        ("the container's limit", &driver.container_limit),
        ("the limit of CUDA MPS", &driver.service_limit),
        ("shared with the host", &driver.host_limit),
        ("its children", &driver.children_used),
        ("the driver", &driver.driver_reserved),
        ("pool used", &driver.pool_used),
        ("pool reserved", &driver.pool_reserved),
        ("graphs used", &driver.graph_used),
        ("graphs reserved", &driver.graph_reserved),
    ] {
        if level.known() != Some(Bytes::ZERO) {
            parts.extend(known(words, level));
        }
    }
    for levels in &reading.allocators {
        let source = levels.source.name();
        parts.extend(known(&format!("{source} allocated"), &levels.allocated));
        parts.extend(known(&format!("{source} reserved"), &levels.reserved));
        parts.extend(known(&format!("{source}'s limit"), &levels.limit));
        parts.extend(failure(source, &levels.allocated));
    }
    if parts.is_empty() {
        parts.push("no level is known".to_owned());
    }
    let (label, name) = (&device.label, &device.name);
    format!("{label:<width$}  {name}  {}", parts.join(" · "))
}

fn known(words: &str, level: &Level) -> Option<String> {
    level.known().map(|bytes| format!("{words} {bytes}"))
}

fn failure(source: &str, level: &Level) -> Option<String> {
    match level {
        Level::Unknown(Unknown::Failed(reason)) => Some(format!("{source} failed: {reason}")),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gpumem_analyzer::PartContent;
    use gpumem_model::holders::StorageUse as Purpose;
    use gpumem_model::recording::{AllocatorLevels, DeviceIdx, DeviceKind, DriverLevels, Source};

    fn device(label: &str, kind: DeviceKind) -> Device {
        Device {
            idx: DeviceIdx(0),
            key: label.into(),
            label: label.to_owned(),
            name: "a name".to_owned(),
            kind,
            outside: None,
        }
    }

    /// Of a device of 8 GiB: in MiB what is allocated and reserved, used by this process and by all.
    fn reading(allocated: u64, reserved: u64, process_used: u64, device_used: u64) -> Reading {
        Reading {
            driver: DriverLevels {
                process_used: Bytes::mib(process_used).into(),
                device_used: Bytes::mib(device_used).into(),
                capacity: Bytes::gib(8).into(),
                ..DriverLevels::default()
            },
            allocators: vec![AllocatorLevels {
                allocated: Bytes::mib(allocated).into(),
                reserved: Bytes::mib(reserved).into(),
                ..AllocatorLevels::unread(Source::Torch)
            }],
        }
    }

    fn host() -> (Device, Reading) {
        let driver = DriverLevels {
            process_used: Bytes::mib(512).into(),
            device_used: Bytes::gib(2).into(),
            capacity: Bytes::gib(8).into(),
            ..DriverLevels::default()
        };
        let reading = Reading {
            driver,
            ..Reading::default()
        };
        (device("host", DeviceKind::Host), reading)
    }

    fn looked(parts: &[(Purpose, u64)], is_cut: bool) -> Holders {
        let parts = parts.iter();
        Holders {
            devices: vec![DeviceHolders {
                device: "cuda:0".to_owned(),
                parts: parts.map(|(part, n)| (*part, Bytes::mib(*n))).collect(),
                is_cut,
                ..DeviceHolders::default()
            }],
        }
    }

    #[track_caller]
    fn check(reading: Reading, held: Option<&Holders>, expected: &[&str]) {
        let devices = [(device("cuda:0", DeviceKind::Gpu), reading), host()];
        let text = levels(&Recording::default(), &devices, held, 100);
        let mut lines = text.lines();
        assert!(
            lines
                .next()
                .is_some_and(|line| line.starts_with("cuda:0  a name  "))
        );
        assert!(
            lines
                .next_back()
                .is_some_and(|line| line.starts_with("host    a name  "))
        );
        assert_eq!(lines.collect::<Vec<_>>(), expected);
    }

    #[test]
    fn a_device_is_taken_apart_by_what_it_is_held_for() {
        check(
            reading(4096, 5120, 5632, 6144),
            Some(&looked(
                &[(Purpose::Parameters, 1024), (Purpose::OptimizerState, 2048)],
                true,
            )),
            &[
                "       1 GiB  ███                       parameters",
                "       2 GiB  ██████                    optimizer",
                "       1 GiB  ███                       unnamed",
                "       1 GiB  ███                       cache",
                "     512 MiB  █▌                        context and libraries",
                "     512 MiB  █▌                        other processes",
                "       2 GiB  ░░░░░░                    free",
                "  … the search for names reached its limit",
            ],
        );
    }

    #[test]
    fn a_bar_is_as_long_as_what_it_stands_for() {
        #[track_caller]
        fn check(size: Bytes, expected: &str) {
            let content = PartContent::ThisRun;
            let row = part_line(&CompositionPart { content, size }, Bytes::gib(8));
            let expected = format!("{size}  {expected:<BAR$}  this run");
            assert_eq!(row.trim_start(), expected);
        }
        check(Bytes::new(20), "▏");
        check(Bytes::mib(422), "█▎");
        check(Bytes::gib(1), "███");
        check(Bytes::gib(8), &"█".repeat(BAR));
    }

    #[test]
    fn without_a_search_levels_are_shown() {
        check(
            reading(4096, 5120, 4608, 4608),
            None,
            &[
                "       4 GiB  ███████████▎              allocated",
                "       1 GiB  ██▉                       cache",
                "     3.5 GiB  ░░░░░░░░░░                free",
                "    −512 MiB                            unmapped, managed or shared",
            ],
        );
    }

    #[test]
    fn the_host_is_taken_apart_where_it_is_all_there_is() {
        assert_eq!(
            levels(&Recording::default(), &[host()], None, 100)
                .lines()
                .collect::<Vec<_>>(),
            [
                "host  a name  2 GiB of 8 GiB · this process 512 MiB",
                "     512 MiB  █▌                        this process",
                "     1.5 GiB  ████▌                     other processes",
                "       6 GiB  ░░░░░░░░░░░░░░░░░░        free",
            ]
        );
    }
}
