//! The living processes that this one began: which run began them, what leads to them, what they use.

use std::collections::{BTreeMap, HashMap};
use std::sync::{LazyLock, Mutex};

use gpumem_model::recording::{
    CellIdx, ChildGroup, ChildHandle, DeviceIdx, DeviceKey, DeviceKind, Level, Reading, Recording,
    RunIdx,
};
use gpumem_model::units::{Bytes, Nanos};
use pyo3::prelude::*;

use super::reading::with_sources;
use super::storing::note_device_used;
use super::{Session, is_owner, is_running, with_recorder, with_session};
use gpumem_base::guard;
use gpumem_base::locks::lock;
use gpumem_base::text::Text;
use gpumem_machine::processes::children::{Children, LivingChild};
use gpumem_machine::sources::{SourceDevice, UsedByProcess};

/// Held without the GIL, and only in the process that records.
static CHILDREN: LazyLock<Mutex<Children>> = LazyLock::new(Mutex::default);

/// The system counts when a process began in ticks of 10 ms.
const TICK: Nanos = Nanos::millis(20);

#[derive(Debug, Clone)]
pub(crate) struct ObservedChild {
    pub(crate) child: LivingChild,
    /// What `multiprocessing` calls it, or else its program and script.
    pub(crate) name: String,
    pub(crate) handle: ChildHandle,
    pub(crate) began_in: Option<RunIdx>,
    pub(crate) execution_count: Option<u32>,
    /// What it uses of accelerators, by their keys.
    pub(crate) used: BTreeMap<DeviceKey, Bytes>,
}

/// A run has ended, and these are its levels: adds the processes that live now. If that fails, the run's end is
/// recorded without them.
pub(super) fn note(py: Python<'_>, run: RunIdx, levels: &mut [(SourceDevice, Reading)]) {
    let add = || add_to(py, run, levels);
    guard::logged(py, "could not list child processes", add);
}

fn add_to(py: Python<'_>, run: RunIdx, levels: &mut [(SourceDevice, Reading)]) -> PyResult<()> {
    let living = living(py);
    if living.is_empty() {
        return with_session(py, |session| session.begun.clear());
    }
    let used = used(py, levels.iter().map(|(_, reading)| reading))?;
    let seen = with_handles(py, living, &used, Some(run))?;
    for (found, reading) in levels {
        let groups = groups_on(py, &seen, &found.key, found.kind)?;
        if found.kind == DeviceKind::Host {
            reading.driver.children_used = host_use(&seen);
        }
        reading.driver.children = groups;
    }
    Ok(())
}

/// Somebody reads the recording: of the processes that the latest run left, those that have ended since are
/// none of its any more.
pub(crate) fn renew_children(py: Python<'_>) -> PyResult<()> {
    if !is_owner() || is_running() {
        return Ok(());
    }
    let latest = with_recorder(py, |recorder| {
        let runs = recorder.recording().runs().iter().rev();
        let mut ended = runs.filter(|it| it.parent.is_none() && it.ended.is_some());
        let run = ended.next()?;
        let after = run
            .levels
            .iter()
            .filter_map(|it| Some((it.device, it.after.clone()?)));
        Some((run.idx, after.collect::<Vec<_>>()))
    })?;
    let Some((run, after)) = latest else {
        return Ok(());
    };
    if after.iter().all(|(_, it)| it.driver.children.is_empty()) {
        return Ok(());
    }
    let used = used(py, after.iter().map(|(_, reading)| reading))?;
    let seen = with_handles(py, living(py), &used, None)?;
    let mut found: Vec<(DeviceIdx, Level, Vec<ChildGroup>)> = Vec::new();
    for (device, reading) in after {
        let (key, kind) = with_recorder(py, |recorder| {
            let device = recorder.recording().device(device);
            (device.key.clone(), device.kind)
        })?;
        let children_used = match kind {
            DeviceKind::Host => host_use(&seen),
            _ => reading.driver.children_used,
        };
        found.push((device, children_used, groups_on(py, &seen, &key, kind)?));
    }
    with_recorder(py, |recorder| recorder.renew_children(run, found))
}

/// Each of them, as it is now.
pub(crate) fn seen_children(py: Python<'_>) -> PyResult<Vec<ObservedChild>> {
    if !is_owner() {
        return Ok(Vec::new());
    }
    let living = living(py);
    let used = with_sources(py, |sources| sources.used_by_process(py)).unwrap_or_default();
    with_handles(py, living, &used, None)
}

/// The labels of the devices that the session knows, by their keys.
pub(crate) fn labels_by_key(py: Python<'_>) -> PyResult<BTreeMap<DeviceKey, String>> {
    with_recorder(py, |recorder| {
        let devices = recorder.recording().devices().iter();
        devices
            .map(|it| (it.key.clone(), it.label.clone()))
            .collect()
    })
}

fn living(py: Python<'_>) -> Vec<LivingChild> {
    py.detach(|| {
        let mut children = lock(&CHILDREN);
        children.living()
    })
}

/// What processes use of GPUs, if these levels say that children use any; noted for their own recordings, too.
fn used<'a>(
    py: Python<'_>,
    mut levels: impl Iterator<Item = &'a Reading>,
) -> PyResult<UsedByProcess> {
    let uses = |it: &Reading| it.driver.children_used.known() > Some(Bytes::ZERO);
    if !levels.any(uses) {
        return Ok(UsedByProcess::new());
    }
    let used = with_sources(py, |sources| sources.used_by_process(py)).unwrap_or_default();
    note_device_used(py, &used)?;
    Ok(used)
}

/// With what leads to each of them, and the run that began it: `ending`, if it began while that ran.
fn with_handles(
    py: Python<'_>,
    living: Vec<LivingChild>,
    used: &UsedByProcess,
    ending: Option<RunIdx>,
) -> PyResult<Vec<ObservedChild>> {
    if living.is_empty() {
        return Ok(Vec::new());
    }
    let handles: Vec<(u32, Text, Text)> = py
        .import("gpumem._processes")?
        .call_method0("handles")?
        .extract()?;
    let named = handles.into_iter().map(|(pid, Text(name), Text(handle))| {
        let handle = ChildHandle::from_name(&handle).unwrap_or_default();
        (pid, (name, handle))
    });
    let named: HashMap<u32, (String, ChildHandle)> = named.collect();
    let parents: HashMap<u32, u32> = living.iter().map(|it| (it.id.pid, it.parent)).collect();
    with_session(py, |session| {
        session.take_in_children(&living, ending);
        let seen = living.into_iter().map(|child| {
            let pid = child.id.pid;
            let began_in = session.begun.get(&child.id).copied().flatten();
            let runs = session.recorder.recording().runs();
            let run = began_in.and_then(|run| runs.get(run.get()));
            let own_name = named.get(&pid).map(|(name, _)| name.clone());
            let own_name = own_name.filter(|name| !name.is_empty());
            // What a child began is led to by what leads to the child.
            let mut line = std::iter::successors(Some(pid), |pid| parents.get(pid).copied());
            let handle = line.find_map(|pid| named.get(&pid).map(|(_, handle)| *handle));
            let of_device = |(key, used): (&DeviceKey, &BTreeMap<u32, Bytes>)| {
                Some((key.clone(), *used.get(&pid)?))
            };
            ObservedChild {
                name: own_name.unwrap_or_else(|| child.command.clone()),
                handle: handle.unwrap_or_default(),
                began_in,
                execution_count: run.and_then(|run| run.execution_count),
                used: used.iter().filter_map(of_device).collect(),
                child,
            }
        });
        seen.collect()
    })
}

/// What they have of the host's memory together.
fn host_use(seen: &[ObservedChild]) -> Level {
    let each = seen.iter().filter_map(|it| it.child.own);
    each.sum::<Bytes>().into()
}

/// Those that use a device, by the cell that began them and by what leads to them.
fn groups_on(
    py: Python<'_>,
    seen: &[ObservedChild],
    key: &DeviceKey,
    kind: DeviceKind,
) -> PyResult<Vec<ChildGroup>> {
    let users = seen.iter().filter_map(|it| {
        let used = match kind {
            // Where there was no time to ask, it is there all the same.
            DeviceKind::Host => Some(it.child.own.unwrap_or_default()),
            _ => it.used.get(key).copied().filter(|it| *it > Bytes::ZERO),
        };
        Some((it, used?))
    });
    let users: Vec<(&ObservedChild, Bytes)> = users.collect();
    with_recorder(py, |recorder| groups(recorder.recording(), users))
}

fn groups(recording: &Recording, mut users: Vec<(&ObservedChild, Bytes)>) -> Vec<ChildGroup> {
    users.sort_by_key(|(child, used)| (std::cmp::Reverse(*used), child.child.id.pid));
    let mut groups: BTreeMap<(Option<CellIdx>, ChildHandle), ChildGroup> = BTreeMap::new();
    for (seen, used) in users {
        let cell = seen.began_in.map(|run| recording.run(run).cell);
        let group = groups.entry((cell, seen.handle)).or_insert(ChildGroup {
            handle: seen.handle,
            pid: seen.child.id.pid,
            name: seen.name.clone(),
            ..ChildGroup::default()
        });
        group.began_in = group.began_in.max(seen.began_in);
        group.n += 1;
        group.n_bytes += used;
        group.age = group.age.max(seen.child.age);
    }
    groups.into_values().collect()
}

impl Session {
    /// Which run began those that are new: the one that ends, if they began while it ran.
    fn take_in_children(&mut self, living: &[LivingChild], ending: Option<RunIdx>) {
        let now = self.recorder.clock().now();
        let runs = self.recorder.recording().runs();
        let started = ending.and_then(|run| Some((run, runs.get(run.get())?.started)));
        let mut begun = HashMap::new();
        for child in living {
            let began = now.since(child.age) + TICK;
            let in_run = started.filter(|(_, started)| began >= *started);
            let known = self.begun.get(&child.id).copied();
            begun.insert(child.id, known.unwrap_or(in_run.map(|(run, _)| run)));
        }
        self.begun = begun;
    }
}
