//! Memory that ran out in a run.

use gpumem_heap::HeldBy;
use gpumem_model::recording::{
    AllocatorLevels, Device, Frame, Framework, OomHolder, OutOfMemory, Run, RunIdx,
};
use gpumem_model::units::Nanos;

use super::{Recorder, SourceText};
use crate::recording::oom::OomReport;
use gpumem_base::clock::Clock;

/// The most holders that are kept for an out-of-memory error.
const MAX_HOLDERS: usize = 24;

/// The label of the host's memory, which a message without a device does not speak of.
const HOST: &str = "host";

impl Recorder {
    /// Memory ran out in a run that has ended: an error was reported, or an allocator has counted it, and no
    /// other run can have been the cause.
    pub(crate) fn ran_out(&mut self, idx: RunIdx, mut report: Option<OomReport>) {
        let run = self.recording.run(idx);
        let segments = report.as_mut().and_then(|report| report.segments.take());
        let counted = || counted(run).filter(|_| run.overlaps.is_empty());
        let oom = report.map_or_else(counted, |report| Some(self.run_oom(run, report)));
        let Some(oom) = oom else { return };
        let device = oom.device;
        let run = Run {
            oom: Some(Box::new(oom)),
            ..run.clone()
        };
        let is_outermost = run.parent.is_none();
        self.emit(Frame::Run(run));
        if let (Some(device), Some(found), true) = (device, segments, is_outermost) {
            self.mapped(idx, device, found);
        }
    }

    /// Memory ran out at the end of a run, and who held it is still to be found.
    pub(crate) fn lacks_holders_of_oom(&self, idx: RunIdx) -> bool {
        let run = self.recording.runs().get(idx.get());
        let oom = run.and_then(|run| run.oom.as_ref());
        oom.is_some_and(|oom| !oom.survived && oom.holders.is_empty())
    }

    /// Who held memory when it ran out at the end of a run.
    pub(crate) fn held_at_oom(&mut self, idx: RunIdx, held_by: Vec<HeldBy>) {
        let Some(run) = self.recording.runs().get(idx.get()) else {
            return;
        };
        let Some(oom) = &run.oom else { return };
        let label = oom
            .device
            .map(|device| self.recording.device(device).label.clone());
        let keeps_names = self.source_text == SourceText::Full;
        let holders = holders_on(label.as_deref(), held_by, keeps_names);
        let oom = OutOfMemory {
            holders,
            ..(**oom).clone()
        };
        let run = Run {
            oom: Some(Box::new(oom)),
            ..run.clone()
        };
        self.emit(Frame::Run(run));
    }

    fn run_oom(&self, run: &Run, report: OomReport) -> OutOfMemory {
        let names = OomContext {
            devices: self.recording.devices(),
            keeps_names: self.source_text == SourceText::Full,
        };
        let ended = run.ended.unwrap_or_default();
        out_of_memory(&names, self.clock, ended, report)
    }
}

/// What the message of an error is matched with.
pub(crate) struct OomContext<'a> {
    /// The devices of the recording.
    pub(crate) devices: &'a [Device],
    /// Names of variables may be kept, and the error's words.
    pub(crate) keeps_names: bool,
}

/// What is kept of an error that was reported in a run; one whose instant is not known came at
/// its end.
pub(crate) fn out_of_memory(
    names: &OomContext<'_>,
    clock: Clock,
    ended: Nanos,
    report: OomReport,
) -> OutOfMemory {
    let label = report.message.device.as_deref();
    let mut devices = names.devices.iter();
    let device = devices.find(|device| Some(device.label.as_str()) == label);
    let holders = holders_on(label, report.holders, names.keeps_names);
    OutOfMemory {
        at: report.at.map_or(ended, |at| clock.at(at)),
        device: device.map(|device| device.idx),
        names_accelerator: report.message.names_accelerator(),
        framework: report.message.framework,
        survived: report.survived,
        figures: report.message.figures,
        holders,
        message: report.text.filter(|_| names.keeps_names),
    }
}

/// Those on a device, or on any but the host where none is known.
fn holders_on(label: Option<&str>, held_by: Vec<HeldBy>, keeps_names: bool) -> Vec<OomHolder> {
    let is_there = |held: &HeldBy| label.map_or(held.device != HOST, |it| held.device == it);
    let held_by = held_by.into_iter().filter(is_there);
    let holder = |held: HeldBy| OomHolder {
        name: if keeps_names {
            held.name
        } else {
            String::new()
        },
        kind: held.kind,
        used: held.n_bytes,
        n_storages: held.n_storages,
    };
    held_by.take(MAX_HOLDERS).map(holder).collect()
}

/// An out-of-memory error without a report: only an allocator's counter shows it.
fn counted(run: &Run) -> Option<OutOfMemory> {
    let count = |levels: &AllocatorLevels| levels.n_ooms.unwrap_or_default();
    run.levels.iter().find_map(|levels| {
        let after = levels.after.as_ref()?.allocators.iter();
        let before = &levels.before.allocators;
        let rose = after.clone().find(|now| {
            let then = before.iter().find(|then| then.source == now.source);
            count(now) > then.map_or(0, count)
        })?;
        Some(OutOfMemory {
            at: run.ended.unwrap_or_default(),
            device: Some(levels.device),
            framework: Framework::from_name(rose.source.name()),
            survived: true,
            ..OutOfMemory::default()
        })
    })
}
