//! The sources of this process, and what they read.

use std::cell::Cell;
use std::sync::{LazyLock, Mutex, MutexGuard};

use gpumem_model::holders::Allocated;
use gpumem_model::recording::{DriverLevels, Level, Reading, RunIdx, SourceState, Unknown};
use gpumem_report as report;
use pyo3::prelude::*;

use super::{is_owner, with_recorder, with_session};
use gpumem_base::clock::Clock;
use gpumem_base::errors::DeviceError;
use gpumem_base::guard;
use gpumem_base::locks::lock_attached;
use gpumem_base::text::{Text, strings};
use gpumem_machine::sampler::Sampler;
use gpumem_machine::sources::{
    Drivers, PATIENCE_OF_A_QUESTION, PendingReadings, ProcessList, SourceDevice, Sources,
};

/// Locked while a framework is read, which runs Python: see `with_sources`.
static SOURCES: LazyLock<Mutex<Sources>> = LazyLock::new(|| Mutex::new(Sources::default()));

/// The width of a table in a cell's output.
const COLUMNS: usize = 80;

thread_local! {
    static ASKS_SOURCES: Cell<bool> = const { Cell::new(false) };
}

/// Reads these sources alone; `auto` for every one that answers.
#[pyfunction]
pub(crate) fn use_sources(py: Python<'_>, names: Vec<Text>) -> PyResult<()> {
    let names = strings(names);
    if let Some(Err(unknown)) = with_sources(py, |sources| sources.choose(&names)) {
        return Err(DeviceError::new_err(unknown));
    }
    let states = states(py);
    with_recorder(py, |recorder| recorder.restate(states))
}

/// Each source: its name, whether it is read, and why.
#[pyfunction]
pub(crate) fn source_states(py: Python<'_>) -> Vec<(&'static str, bool, String)> {
    let of_source = |it: SourceState| (it.source.name(), it.used, it.reason);
    states(py).into_iter().map(of_source).collect()
}

fn states(py: Python<'_>) -> Vec<SourceState> {
    with_sources(py, |sources| sources.states(py, PATIENCE_OF_A_QUESTION)).unwrap_or_default()
}

/// The table of the sources; with names, of these and of those that are read.
#[pyfunction(signature = (names = None))]
pub(crate) fn sources_text(py: Python<'_>, names: Option<Vec<Text>>) -> String {
    let mut states = states(py);
    if let Some(names) = names {
        states.retain(|state| state.used || names.iter().any(|name| name.0 == state.source.name()));
    }
    report::sources(&states, COLUMNS)
}

/// The devices that are read now, as people write them.
#[pyfunction]
pub(crate) fn device_labels(py: Python<'_>) -> Vec<String> {
    let readings = readings(py, &[]);
    readings.into_iter().map(|(found, _)| found.label).collect()
}

/// The accelerators with their levels, and who is on them.
pub(crate) fn processes(py: Python<'_>) -> Vec<(SourceDevice, DriverLevels, ProcessList)> {
    with_sources(py, |sources| sources.processes(py)).unwrap_or_default()
}

/// A sampler beside the session's own; none where `with_sources` has nothing to hand out.
pub(crate) fn new_sampler(py: Python<'_>) -> Option<Sampler> {
    let drivers = with_sources(py, |sources| sources.drivers());
    drivers.map(|drivers| Sampler::new(drivers, Clock::start()))
}

/// The drivers of the session's sources, for its sampler.
pub(super) fn drivers(py: Python<'_>) -> Drivers {
    lock_attached(py, &SOURCES).drivers()
}

/// The levels of these devices at the end of a run; unknown if their source no longer answers.
pub(super) fn readings_after(
    py: Python<'_>,
    run: RunIdx,
    devices: &[String],
) -> PyResult<Vec<(SourceDevice, Reading)>> {
    let mut after = readings(py, devices);
    // The session may have been reset meanwhile.
    let unanswered = with_session(py, |session| {
        let is_known = run.get() < session.recorder.recording().runs().len();
        is_known.then(|| session.recorder.unanswered(run, &after))
    })?;
    let unanswered = unanswered.unwrap_or_default();
    tell_failures(py, &unanswered);
    after.extend(unanswered);
    Ok(after)
}

/// The levels of the devices of these labels now, of all without one. A source that fails says so once.
pub(crate) fn readings(py: Python<'_>, devices: &[String]) -> Vec<(SourceDevice, Reading)> {
    let ordered = order(py);
    readings_as_ordered(py, ordered, devices)
}

/// Sets the drivers to work on what `readings_as_ordered` then collects.
pub(crate) fn order(py: Python<'_>) -> Option<PendingReadings> {
    with_sources(py, Sources::order)
}

/// The levels that were ordered, of the devices of these labels.
pub(super) fn readings_as_ordered(
    py: Python<'_>,
    ordered: Option<PendingReadings>,
    devices: &[String],
) -> Vec<(SourceDevice, Reading)> {
    let read = |sources: &mut Sources| ordered.map(|it| sources.read(py, it));
    let mut readings = with_sources(py, read).flatten().unwrap_or_default();
    if !devices.is_empty() {
        readings.retain(|(found, _)| devices.contains(&found.label));
    }
    tell_failures(py, &readings);
    readings
}

/// What the allocators of each accelerator have handed out now, where they say it.
pub(crate) fn handed_out(py: Python<'_>) -> Vec<(String, Allocated)> {
    handed_out_of(&readings(py, &[]))
}

/// The same, where it was read already.
pub(super) fn handed_out_of(readings: &[(SourceDevice, Reading)]) -> Vec<(String, Allocated)> {
    let of_accelerators = readings
        .iter()
        .filter(|(found, _)| found.kind.is_accelerator());
    of_accelerators
        .filter_map(|(found, reading)| Some((found.label.clone(), reading.handed_out()?)))
        .collect()
}

/// Says once of each source that it failed, in which words, and for which devices.
fn tell_failures(py: Python<'_>, readings: &[(SourceDevice, Reading)]) {
    let mut failures: Vec<((&str, &str), Vec<&str>)> = Vec::new();
    for (found, reading) in readings {
        let driver = ("the driver", &reading.driver.device_used);
        let allocators = reading.allocators.iter();
        let allocators = allocators.map(|levels| (levels.source.name(), &levels.allocated));
        for (source, level) in allocators.chain([driver]) {
            let Level::Unknown(Unknown::Failed(words)) = level else {
                continue;
            };
            let failure = (source, words.as_str());
            match failures.iter_mut().find(|(known, _)| *known == failure) {
                Some((_, devices)) => devices.push(&found.label),
                None => failures.push((failure, vec![&found.label])),
            }
        }
    }
    for ((source, words), devices) in failures {
        let devices = devices.join(", ");
        guard::log_once(
            py,
            &format!("{source} does not answer for {devices}: {words}"),
        );
    }
}

/// Hands the sources to `body`, which may run Python and let other threads in.
///
/// Another thread waits without the GIL. This thread itself, come back through a
/// signal handler or a finaliser, gets nothing, nor does a forked child, where
/// the lock may be held by a thread that it does not have.
pub(super) fn with_sources<T>(py: Python<'_>, body: impl FnOnce(&mut Sources) -> T) -> Option<T> {
    with_lock(|| Some(lock_attached(py, &SOURCES)), body)
}

fn with_lock<T>(
    lock: impl FnOnce() -> Option<MutexGuard<'static, Sources>>,
    body: impl FnOnce(&mut Sources) -> T,
) -> Option<T> {
    struct Asking;
    impl Drop for Asking {
        fn drop(&mut self) {
            ASKS_SOURCES.set(false);
        }
    }
    if !is_owner() || ASKS_SOURCES.replace(true) {
        return None;
    }
    let _asking = Asking;
    lock().map(|mut sources| body(&mut sources))
}

/// Passes the sources to `body` unless they are locked.
pub(super) fn try_with_sources<T>(body: impl FnOnce(&mut Sources) -> T) -> Option<T> {
    with_lock(|| SOURCES.try_lock().ok(), body)
}
