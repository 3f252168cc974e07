//! What a run moved: after which ones a verdict may be new, and it is worth looking for who holds
//! memory.

use std::cmp::Ordering;

use gpumem_core::analyze::{Rules, is_in_pieces};
use gpumem_core::holders::DeviceHolders;
use gpumem_core::recording::{
    DeviceIdx, DeviceKind, Frame, Held, Mapped, Reading, RunIdx, RunLevels, Sample, Series, Status,
};
use gpumem_core::segments::Segments;
use gpumem_core::units::{ByteDelta, Bytes};

use super::Recorder;

/// A host process that moved by less has only breathed.
const HOST_NOISE: Bytes = Bytes::mib(1);

/// A process whose memory moved by less has only breathed.
const WORTH_A_LOOK: Bytes = Bytes::mib(4);

/// Memory lies elsewhere where this part of what is reserved has moved.
const MOVED: f64 = 1.0 / 64.0;

impl Recorder {
    /// The run moved a level, or told more than its ends: a verdict may be new.
    ///
    /// The host's levels move with every cell, and so does what other processes use.
    pub(crate) fn has_news(&self, idx: RunIdx) -> bool {
        let run = self.recording.run(idx);
        let moved = |levels: &RunLevels| {
            let Some(after) = &levels.after else {
                return false;
            };
            let before = &levels.before;
            let own = |reading: &Reading| reading.driver.process_used.known().unwrap_or_default();
            let is_host = self.recording.device(levels.device).kind == DeviceKind::Host;
            let by = own(after).since(own(before)).magnitude();
            before.allocators != after.allocators
                || by >= HOST_NOISE
                || (!is_host && by > Bytes::ZERO)
        };
        let is_marked = |levels: &RunLevels| {
            let mut series = self.recording.samples_of(idx, levels.device);
            series.any(|(series, _)| *series != Series::Sampled)
        };
        let mut later = self.recording.runs()[idx.get()..].iter();
        run.status != Status::Ok
            || later.any(|run| run.parent == Some(idx))
            || run.levels.iter().any(|it| moved(it) || is_marked(it))
    }

    /// The devices of which it is worth asking after a run who holds them, with their labels: those
    /// on which it left more than it found, or less where `IPython` kept something, and those on
    /// which a `del`, or an error that takes the place of the one before, gave nothing back.
    pub(crate) fn worth_a_look(&self, idx: RunIdx) -> Vec<(DeviceIdx, String)> {
        let Some(run) = self.recording.runs().get(idx.get()) else {
            return Vec::new();
        };
        let text = self.recording.text(run);
        let deletes = text.is_some_and(|text| {
            let mut lines = text.lines();
            lines.any(|line| line.trim_start().starts_with("del "))
        });
        let gives_back = deletes || run.status != Status::Ok;
        let is_worth = |levels: &&RunLevels| {
            self.rises_in_steps(idx, levels.device) || self.is_worth_a_look(levels, gives_back)
        };
        let looked_at = run.levels.iter().filter(is_worth);
        let labelled = |device: DeviceIdx| (device, self.recording.device(device).label.clone());
        looked_at.map(|levels| labelled(levels.device)).collect()
    }

    /// A loop collects, also where the run lets go of as much at its start.
    fn rises_in_steps(&self, run: RunIdx, device: DeviceIdx) -> bool {
        let mut series = self.recording.samples_of(run, device);
        series.any(|(series, points)| {
            let ends = points.first().zip(points.last());
            let rises = ends.is_some_and(|(first, last)| last.allocated > first.allocated);
            matches!(series, Series::Marked(_)) && rises
        })
    }

    fn is_worth_a_look(&self, levels: &RunLevels, gives_back: bool) -> bool {
        let moved = self.moved(&levels.before, levels);
        let Some((seen, look)) = self.recording.latest_holders(levels.device) else {
            return moved == Some(Ordering::Greater);
        };
        match moved {
            Some(Ordering::Greater) => true,
            Some(Ordering::Equal) if gives_back => true,
            // What `%gpumem release` gave back, it gave back between two runs.
            Some(_) if !look.kept.is_empty() => {
                let mut then = self.recording.run(seen).levels.iter();
                let then = then.find(|then| then.device == levels.device);
                let then = then.and_then(|then| then.after.as_ref());
                then.is_some_and(|then| self.moved(then, levels) == Some(Ordering::Less))
            }
            _ => false,
        }
    }

    /// Where the level of a run's device stood at its end, seen from what it was. Of the host it is
    /// asked only where it is all there is: its level moves by itself.
    fn moved(&self, before: &Reading, levels: &RunLevels) -> Option<Ordering> {
        let (before, after) = (Sample::of(before), Sample::of(levels.after.as_ref()?));
        if self.recording.device(levels.device).kind == DeviceKind::Host {
            let devices = self.recording.devices();
            let is_all = !devices.iter().any(|it| it.kind.is_accelerator());
            let moved = after.process_used?.since(before.process_used?);
            let is_much = moved.magnitude() >= WORTH_A_LOOK;
            return is_all.then(|| {
                if is_much {
                    moved.cmp(&ByteDelta::ZERO)
                } else {
                    Ordering::Equal
                }
            });
        }
        let before = before.allocated.unwrap_or_default();
        Some(after.allocated?.cmp(&before))
    }

    /// The devices of which a run, that has ended, left so much free in pieces that it is worth looking
    /// where, with their labels and the number of their blocks; none that lies as at the last look.
    pub(crate) fn worth_a_map(&self, idx: RunIdx) -> Vec<(DeviceIdx, String, Option<u64>)> {
        let Some(run) = self.recording.runs().get(idx.get()) else {
            return Vec::new();
        };
        let worth = run.levels.iter().filter_map(|levels| {
            let device = levels.device;
            let (split, reserved, n_blocks) = free_in_pieces(levels)?;
            let is_worth = is_in_pieces(split, reserved, &Rules::default())
                // What was found at the moment when memory ran out stays.
                && self.recording.mapped(idx, device).is_none()
                && !self.lies_as_before(device, split, reserved);
            let label = self.recording.device(device).label.clone();
            is_worth.then_some((device, label, n_blocks))
        });
        worth.collect()
    }

    /// Since the last look hardly anything moved. One that found no map is not tried again either
    /// before much has.
    fn lies_as_before(&self, device: DeviceIdx, split: Bytes, reserved: Bytes) -> bool {
        let Some(last) = self.recording.latest_mapped(device) else {
            return false;
        };
        let mut levels = self.recording.run(last.run).levels.iter();
        let mut told = || free_in_pieces(levels.find(|levels| levels.device == device)?);
        let then = last.found.as_ref().map_or_else(
            |_| told().map(|(split, reserved, _)| (split, reserved)),
            |found| Some((found.split(), found.reserved())),
        );
        let is_near = |now: Bytes, then: Bytes| {
            let moved = now.since(then).magnitude();
            moved.as_f64() <= reserved.as_f64() * MOVED
        };
        then.is_some_and(|then| is_near(split, then.0) && is_near(reserved, then.1))
    }

    /// Where memory of a device lay after a run, or at the moment when it ran out in it.
    pub(crate) fn mapped(
        &mut self,
        run: RunIdx,
        device: DeviceIdx,
        found: Result<Segments, String>,
    ) {
        if run.get() < self.recording.runs().len() {
            self.emit(Frame::Segments(Box::new(Mapped { run, device, found })));
        }
    }

    /// Who held memory of a device after a run.
    pub(crate) fn held(
        &mut self,
        run: RunIdx,
        device: DeviceIdx,
        label: String,
        found: Option<DeviceHolders>,
    ) {
        // That nobody holds anything is news only where somebody did.
        let had_some = self.recording.latest_holders(device).is_some();
        let nobody = || DeviceHolders {
            device: label,
            ..DeviceHolders::default()
        };
        let holders = found.or_else(|| had_some.then(nobody));
        if let Some(holders) = holders.filter(|_| run.get() < self.recording.runs().len()) {
            self.emit(Frame::Holders(Box::new(Held {
                run,
                device,
                holders,
            })));
        }
    }
}

/// At a run's end: what was free beside blocks in use, what was reserved, and in how many blocks.
fn free_in_pieces(levels: &RunLevels) -> Option<(Bytes, Bytes, Option<u64>)> {
    let mut allocators = levels.after.as_ref()?.allocators.iter();
    allocators.find_map(|it| {
        Some((
            it.inactive_split.known()?,
            it.reserved.known()?,
            it.n_blocks,
        ))
    })
}
