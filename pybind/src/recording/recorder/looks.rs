//! What is worth finding out after a run, and what was found.

use gpumem_analyzer::inspection::{self, SegmentsWanted};
use gpumem_model::holders::DeviceHolders;
use gpumem_model::recording::{
    ChildGroup, DeviceIdx, Frame, HolderSnapshot, Level, RunIdx, SegmentSnapshot,
};
use gpumem_model::segments::Segments;
use gpumem_model::units::{Bytes, Nanos};

use super::Recorder;

impl Recorder {
    /// The devices of which it is worth asking after a run who holds them, with their labels.
    pub(crate) fn holders_wanted(&self, run: RunIdx) -> Vec<(DeviceIdx, String)> {
        self.labelled(inspection::holders_wanted(&self.recording, run))
    }

    /// Likewise when the recording is read.
    pub(crate) fn holders_wanted_to_read(&self) -> Vec<(DeviceIdx, String)> {
        self.labelled(inspection::holders_wanted_to_read(&self.recording))
    }

    fn labelled(&self, devices: Vec<DeviceIdx>) -> Vec<(DeviceIdx, String)> {
        let labelled = |device| (device, self.recording.device(device).label.clone());
        devices.into_iter().map(labelled).collect()
    }

    /// By how much a run made the host grow, with the host's label, if the run of the same code before it did so, too.
    pub(crate) fn host_growth(&self, idx: RunIdx) -> Option<(String, Bytes)> {
        let (device, grown) = inspection::host_growth(&self.recording, idx)?;
        Some((self.recording.device(device).label.clone(), grown))
    }

    /// The latest run of a cell, if such a look would be worthwhile.
    pub(crate) fn run_to_look_after(&self) -> Option<RunIdx> {
        let mut runs = self.recording.runs().iter().rev();
        let latest = runs.find(|run| run.parent.is_none() && run.ended.is_some())?;
        let is_wanted = !inspection::holders_wanted_to_read(&self.recording).is_empty();
        is_wanted.then_some(latest.idx)
    }

    /// The devices of which it is worth finding out after a run where memory lies, with their labels.
    pub(crate) fn segments_wanted(&self, run: RunIdx) -> Vec<(SegmentsWanted, String)> {
        let rules = &self.recording.header().rules;
        let wanted = inspection::segments_wanted(&self.recording, run, rules).into_iter();
        let labelled = |it: SegmentsWanted| (it, self.recording.device(it.device).label.clone());
        wanted.map(labelled).collect()
    }

    /// Where memory of a device lay after a run, or at the moment when it ran out in it.
    pub(crate) fn mapped(
        &mut self,
        run: RunIdx,
        device: DeviceIdx,
        found: Result<Segments, String>,
    ) {
        if run.get() < self.recording.runs().len() {
            self.emit(Frame::Segments(Box::new(SegmentSnapshot {
                run,
                device,
                found,
            })));
        }
    }

    /// The processes that live now, in place of those that lived when a run ended.
    pub(crate) fn renew_children(
        &mut self,
        run: RunIdx,
        found: Vec<(DeviceIdx, Level, Vec<ChildGroup>)>,
    ) {
        let Some(mut run) = self.recording.runs().get(run.get()).cloned() else {
            return;
        };
        let mut has_changed = false;
        for (device, used, children) in found {
            let mut levels = run.levels.iter_mut().filter(|it| it.device == device);
            if let Some(after) = levels.next().and_then(|it| it.after.as_mut()) {
                has_changed |= after.driver.children != children;
                after.driver.children_used = used;
                after.driver.children = children;
            }
        }
        if has_changed {
            self.emit(Frame::Run(run));
        }
    }

    /// Records the holders of a device's memory after a run, or at an instant inside it.
    pub(crate) fn held(
        &mut self,
        run: RunIdx,
        device: DeviceIdx,
        inside_at: Option<Nanos>,
        label: String,
        found: Option<DeviceHolders>,
    ) {
        // An empty list of holders is news if there were some before, and on the host always: what grew there, no
        // Python object holds.
        let is_host = !self.recording.device(device).kind.is_accelerator();
        let is_news = is_host || self.recording.latest_holders(device).is_some();
        let nobody = || DeviceHolders {
            device: label,
            ..DeviceHolders::default()
        };
        let holders = found.or_else(|| is_news.then(nobody));
        if let Some(holders) = holders.filter(|_| run.get() < self.recording.runs().len()) {
            self.emit(Frame::Holders(Box::new(HolderSnapshot {
                run,
                device,
                inside_at,
                holders,
            })));
        }
    }
}
