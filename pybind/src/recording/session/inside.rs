//! Looks at the holders while a run goes on, and what they foretell.
//!
//! What a function or a generator keeps until it returns, no look after the run can find. And who learns in
//! the middle of a run that the device will be full can still do something about it.

use std::sync::Arc;
use std::time::Duration;

use gpumem_analyzer::inspection::holders_wanted_inside;
use gpumem_analyzer::{Severity, analyze};
use gpumem_heap::Inventory;
use gpumem_model::holders::Allocated;
use gpumem_model::recording::{DeviceIdx, RunIdx, Sample};
use gpumem_model::units::ByteDelta;
use gpumem_report as report;
use pyo3::prelude::*;

use super::holder_search::{self, Wanted};
use super::reading::try_with_sources;
use super::{NOTEBOOK_WIDTH, RunId, Session, collect_look, is_owner, with_session};
use crate::recording::recorder::SourceText;
use gpumem_machine::sources::SourceDevice;
use gpumem_objects::adapters::registered::Asks;
use gpumem_objects::look::{self, Question, Reach};

/// What is known of the run that is looked at while it goes on.
#[derive(Default)]
pub(super) struct OngoingRun {
    run: Option<RunIdx>,
    /// What each device had more than before the run at the latest look.
    grown: Vec<(DeviceIdx, ByteDelta)>,
    /// A line under the running cell has said what will happen, and how much that matters.
    foretold: Option<Severity>,
}

/// Takes a look if a run that goes on has taken so much more memory that it is worth one. The run is one of
/// that thread, as Python numbers it. Whether a look is under way.
pub(crate) fn look_inside(py: Python<'_>, run: RunId, thread: u64) -> PyResult<bool> {
    if !is_owner() {
        return Ok(false);
    }
    if !collect_look(py, Duration::ZERO)? {
        return Ok(true);
    }
    // What is not looked at now is no less worth a look later.
    if !look::is_left() {
        return Ok(false);
    }
    let Some(levels) = try_with_sources(|sources| sources.read_at_once(py)) else {
        return Ok(false);
    };
    let levels = levels
        .iter()
        .map(|(found, it)| (found, Sample::from_reading(it)));
    let levels: Vec<(&SourceDevice, Sample)> = levels.collect();
    let wanted = with_session(py, |session| session.wanted_inside(run, &levels))?;
    let Some((wanted, before)) = wanted else {
        return Ok(false);
    };
    let question = Question {
        asks: Asks::Nobody,
        thread: Some(thread),
        ..holder_search::question(py, Reach::Names, handed_out(&levels), Some(before))
    };
    holder_search::take(py, question, wanted, Duration::ZERO)?;
    Ok(true)
}

/// What an accelerator's allocators have handed out.
fn handed_out(levels: &[(&SourceDevice, Sample)]) -> Vec<(String, Allocated)> {
    let accelerators = levels
        .iter()
        .filter(|(found, _)| found.kind.is_accelerator());
    let handed_out = accelerators.filter_map(|(found, sample)| {
        let allocated = Allocated {
            n_bytes: sample.allocated?,
            is_rounded: true,
        };
        Some((found.label.clone(), allocated))
    });
    handed_out.collect()
}

/// A line that says that the run will fill the device soon, and by what; once, and again if it matters more.
pub(crate) fn foretell(py: Python<'_>, run: RunId) -> PyResult<Option<String>> {
    with_session(py, |session| {
        let is_looked_at = session.is_own(run) && session.inside.run == Some(run.run);
        let is_told = session.inside.foretold == Some(Severity::Critical);
        if !is_looked_at || is_told {
            return None;
        }
        let recording = session.recorder.recording();
        let analysis = analyze(recording, &recording.header().rules);
        let foretold = report::forecast_line(recording, &analysis, run.run, NOTEBOOK_WIDTH);
        let (severity, line) = foretold?;
        let before = session.inside.foretold.replace(severity);
        before.is_none_or(|it| it < severity).then_some(line)
    })
}

impl Session {
    /// What a heap scan would be for, and the scan before the run that it is compared with.
    fn wanted_inside(
        &mut self,
        id: RunId,
        levels: &[(&SourceDevice, Sample)],
    ) -> Option<(Wanted, Arc<Inventory>)> {
        let keeps_names = self.recorder.source_text() == SourceText::Full;
        if !self.is_own(id) || !keeps_names {
            return None;
        }
        let before = self.inventory.clone()?;
        let run = id.run;
        if self.inside.run != Some(run) {
            self.inside = OngoingRun {
                run: Some(run),
                ..OngoingRun::default()
            };
        }
        let recording = self.recorder.recording();
        let latest = |device: DeviceIdx| {
            let mut grown = self.inside.grown.iter();
            grown.find(|(it, _)| *it == device).map(|(_, grown)| *grown)
        };
        let wanted = recording.run(run).levels.iter().filter_map(|of_run| {
            let device = recording.device(of_run.device);
            let (_, now) = levels.iter().find(|(found, _)| found.key == device.key)?;
            let grown = holders_wanted_inside(recording, of_run, now, latest(device.idx))?;
            Some((device.idx, device.label.clone(), grown))
        });
        let wanted: Vec<_> = wanted.collect();
        if wanted.is_empty() {
            return None;
        }
        for (device, _, grown) in &wanted {
            self.inside.grown.retain(|(it, _)| it != device);
            self.inside.grown.push((*device, *grown));
        }
        // One look finds the holders of all devices.
        let devices = wanted.into_iter().map(|(device, label, _)| (device, label));
        let wanted = Wanted {
            run: Some(run),
            inside_at: Some(self.recorder.clock().now()),
            devices: devices.collect(),
            is_of_oom: false,
        };
        Some((wanted, before))
    }
}
