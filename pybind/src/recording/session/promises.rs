//! Variables that held much at the latest look, and are gone: what they held should be dead by now.

use std::collections::BTreeMap;

use gpumem_analyzer::inspection;
use gpumem_heap::Inventory;
use gpumem_model::recording::{DeviceIdx, RunIdx};
use gpumem_model::units::Bytes;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use super::{Session, with_session};
use gpumem_base::modules::imported;
use gpumem_base::shells::shells;

/// A variable that held much of a device at the latest look.
pub(super) struct Promised {
    device: DeviceIdx,
    name: String,
    n_bytes: Bytes,
}

/// Which of the variables that held much are deleted, or `None`. A few look-ups: every cell asks.
pub(super) fn broken_off(py: Python<'_>) -> PyResult<Vec<String>> {
    let names = with_session(py, |session| {
        let names = session.promised.iter().map(|it| it.name.clone());
        names.collect::<Vec<_>>()
    })?;
    gone_of(py, names)
}

/// Those of these variables that are deleted, or `None`.
pub(crate) fn gone_of(py: Python<'_>, names: Vec<String>) -> PyResult<Vec<String>> {
    if names.is_empty() {
        return Ok(names);
    }
    let namespaces = namespaces(py)?;
    let is_bound = |name: &String| -> PyResult<bool> {
        for namespace in &namespaces {
            if namespace.get_item(name)?.is_some_and(|it| !it.is_none()) {
                return Ok(true);
            }
        }
        Ok(namespaces.is_empty())
    };
    let mut gone = Vec::new();
    for name in names {
        if !is_bound(&name)? {
            gone.push(name);
        }
    }
    gone.sort();
    gone.dedup();
    Ok(gone)
}

/// Where the user's variables are: the shells, or else the script.
fn namespaces(py: Python<'_>) -> PyResult<Vec<Bound<'_, PyDict>>> {
    let shells = shells(py);
    if shells.is_empty() {
        let main = imported(py, "__main__")?;
        let main = main.and_then(|main| main.cast_into::<pyo3::types::PyModule>().ok());
        return Ok(main.map(|main| main.dict()).into_iter().collect());
    }
    let variables = shells.iter().filter_map(|it| it.getattr("user_ns").ok());
    Ok(variables.filter_map(|it| it.cast_into().ok()).collect())
}

impl Session {
    /// The variables that hold enough of a device to be reported.
    pub(super) fn names_with_much(&self, inventory: &Inventory) -> Vec<Promised> {
        let recording = self.recorder.recording();
        let rules = &recording.header().rules;
        let mut names = Vec::new();
        for shelf in &inventory.devices {
            let mut devices = recording.devices().iter();
            let Some(device) = devices.find(|it| *it.label == *shelf.device) else {
                continue;
            };
            let capacity = inspection::capacity(recording, device.idx);
            let least = inspection::least_outlived(device.kind, capacity, rules);
            let much = shelf.holdings.iter().filter(|it| it.n_bytes >= least);
            names.extend(much.map(|it| Promised {
                device: device.idx,
                name: it.name.to_string(),
                n_bytes: it.n_bytes,
            }));
        }
        names
    }

    /// The devices of which these variables held much, with their labels, unless a run gave that back.
    pub(super) fn devices_of_names(
        &mut self,
        names: &[String],
        run: RunIdx,
    ) -> Vec<(DeviceIdx, String)> {
        let recording = self.recorder.recording();
        let mut held: BTreeMap<DeviceIdx, Bytes> = BTreeMap::new();
        for promised in self.promised.iter().filter(|it| names.contains(&it.name)) {
            *held.entry(promised.device).or_default() += promised.n_bytes;
        }
        held.retain(|device, n_bytes| !inspection::gave_back(recording, run, *device, *n_bytes));
        let labelled = |device: &DeviceIdx| (*device, recording.device(*device).label.clone());
        let devices: Vec<_> = held.keys().map(labelled).collect();
        // Of these it is known what became of them.
        self.promised
            .retain(|it| !names.contains(&it.name) || held.contains_key(&it.device));
        devices
    }
}
