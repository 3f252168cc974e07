//! The sources as a table: the devices of each, and what it reads or why it does not.

use super::columns::{n_columns, padded};
use super::{to_text, wrapped};
use crate::recording::{Source, SourceState};

/// The minimum width of the last column.
const NARROWEST: usize = 24;

/// One row per source; lines are at most `width` columns long.
///
/// ```text
///   source  device  what it gives, or why not
/// ● nvml    cuda:0  used on the device, by this process and its children; capacity
///                   process used unknown: no permission to read it
/// ○ cuda    –       nothing in this process has loaded the CUDA driver yet
/// ```
pub fn sources(states: &[SourceState], width: usize) -> String {
    let mut rows: Vec<Row<'_>> = states.iter().map(Row::of).collect();
    let heading = Row {
        icon: ' ',
        source: "source",
        devices: "device",
        words: vec!["what it gives, or why not"],
    };
    rows.insert(0, heading);
    let widest = |cell: for<'r> fn(&'r Row<'_>) -> &'r str| {
        let widths = rows.iter().map(|row| n_columns(cell(row)));
        widths.max().unwrap_or(0)
    };
    let (source, device) = (widest(|row| row.source), widest(|row| row.devices));
    let left = 2 + source + 2 + device + 2;
    let lines = rows.iter().flat_map(|row| {
        let words = row.words.iter();
        let words = words.flat_map(|words| folded(words, width.saturating_sub(left)));
        words.enumerate().map(move |(n, words)| match n {
            0 => {
                let Row {
                    icon,
                    source: name,
                    devices,
                    ..
                } = row;
                let (name, devices) = (padded(name, source), padded(devices, device));
                format!("{icon} {name}  {devices}  {words}")
            }
            _ => format!("{:left$}{words}", ""),
        })
    });
    let lines: Vec<String> = lines.collect();
    to_text(&lines)
}

struct Row<'a> {
    icon: char,
    source: &'a str,
    devices: &'a str,
    words: Vec<&'a str>,
}

impl<'a> Row<'a> {
    fn of(state: &'a SourceState) -> Self {
        let mut notes = state.reason.split("; ");
        let Some(devices) = state.reason.strip_prefix("reads ").filter(|_| state.used) else {
            return Self {
                icon: '○',
                source: state.source.name(),
                devices: "–",
                words: vec![state.reason.as_str()],
            };
        };
        notes.next();
        Self {
            icon: '●',
            source: state.source.name(),
            devices: devices.split("; ").next().unwrap_or(devices),
            words: [gives(state.source)].into_iter().chain(notes).collect(),
        }
    }
}

fn folded(words: &str, width: usize) -> Vec<String> {
    let folded = wrapped(words, width.max(NARROWEST));
    folded.lines().map(ToOwned::to_owned).collect()
}

/// What a source tells of its devices.
fn gives(source: Source) -> &'static str {
    match source {
        Source::Cuda => "used and free in your framework's context; driver's pool, CUDA graphs",
        Source::Nvml => "used on the device, by this process and its children; capacity",
        Source::Torch => "allocated, active, reserved, peak, retries of PyTorch's allocator",
        Source::Cupy => "used and held by CuPy's pools, their limit",
        Source::Jax => "in use, peak, pool and limit of JAX's allocator",
        Source::Tensorflow => "current and peak of TensorFlow's allocator",
        Source::Rmm => "what the RMM resources that you set count",
        Source::Numba => "allocated by Numba, and freed but not given back",
        Source::Bitsandbytes => "states of paged optimizers",
        Source::Host => "memory that this process keeps, used memory of the machine",
        Source::Sim => "a simulated device with a real caching allocator",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(states: &[(Source, bool, &str)], width: usize, expected: &[&str]) {
        let state = |(source, used, reason): &(Source, bool, &str)| SourceState {
            source: *source,
            used: *used,
            reason: (*reason).to_owned(),
        };
        let states: Vec<SourceState> = states.iter().map(state).collect();
        let table = sources(&states, width);
        assert!(
            table.lines().all(|line| n_columns(line) <= width),
            "{table}"
        );
        assert_eq!(table.lines().collect::<Vec<_>>(), expected);
    }

    #[test]
    fn a_source_gives_something_of_its_devices_or_says_why_not() {
        check(
            &[
                (
                    Source::Cuda,
                    false,
                    "nothing in this process has loaded the CUDA driver yet",
                ),
                (
                    Source::Nvml,
                    true,
                    "reads cuda:0, cuda:1; process used of cuda:1 unknown: no permission to read it",
                ),
                (Source::Host, true, "reads host"),
            ],
            80,
            &[
                "  source  device          what it gives, or why not",
                "○ cuda    –               nothing in this process has loaded the CUDA driver yet",
                "● nvml    cuda:0, cuda:1  used on the device, by this process and its children;",
                "                            capacity",
                "                          process used of cuda:1 unknown: no permission to read",
                "                            it",
                "● host    host            memory that this process keeps, used memory of the",
                "                            machine",
            ],
        );
    }
}
