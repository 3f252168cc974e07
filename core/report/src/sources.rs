//! The sources as a table: the devices of each, and what it reads or why it does not.

use super::text_table::{self, left, wrapped_table};
use super::to_text;
use gpumem_model::recording::{Source, SourceState};

/// One row per source; lines are at most `width` columns long.
///
/// ```text
///   source  device  what it gives, or why not
/// ● nvml    cuda:0  used on the device, by this process and its children; capacity
///                   process used unknown: no permission to read it
/// ○ cuda    –       nothing in this process has loaded the CUDA driver yet
/// ```
pub fn sources(states: &[SourceState], width: usize) -> String {
    let mut rows = vec![text_table::row([
        "  source",
        "device",
        "what it gives, or why not",
    ])];
    rows.extend(states.iter().map(row));
    let columns = [left(), left().gap(2), left().gap(2)];
    to_text(&wrapped_table(&columns, &rows, width))
}

fn row(state: &SourceState) -> Vec<String> {
    let name = state.source.name();
    let mut notes = state.reason.split("; ");
    let devices = notes.next().and_then(|it| it.strip_prefix("reads "));
    match devices.filter(|_| state.used) {
        Some(devices) => {
            let words: Vec<&str> = [gives(state.source)].into_iter().chain(notes).collect();
            text_table::row([&format!("● {name}"), devices, &words.join("\n")])
        }
        None => text_table::row([&format!("○ {name}"), "–", &state.reason]),
    }
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
    use crate::columns::n_columns;

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
