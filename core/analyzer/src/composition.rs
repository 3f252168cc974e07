//! What fills a device: the parts of its levels, and what is free.

use super::Analysis;
use super::findings::{Finding, FindingDetails, FindingKind};
use super::gaps::Gap;
use super::levels::DeviceSummary;
use gpumem_model::holders::StorageUse as Purpose;
use gpumem_model::recording::{DeviceIdx, Recording};
use gpumem_model::units::{ByteDelta, Bytes};

/// Who uses a part of a device: [`CompositionPart::kind`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PartKind {
    /// Held by tensors, or the narrowest known level in its place.
    Held,
    /// Reserved by the allocator, and free in it.
    Cache,
    /// This process's use beyond its allocator: context, libraries, their workspaces.
    Context,
    /// The use of other processes.
    Others,
    /// What nobody uses.
    Free,
}

impl PartKind {
    /// Whether findings of that kind are about such a part.
    pub(super) const fn is_subject_of(self, kind: FindingKind) -> bool {
        match self {
            Self::Held => matches!(
                kind,
                FindingKind::Leak
                    | FindingKind::Growing
                    | FindingKind::Bounded
                    | FindingKind::Settled
                    | FindingKind::Spike
                    | FindingKind::Doubling
            ),
            Self::Cache => matches!(
                kind,
                FindingKind::Fragmentation
                    | FindingKind::Inefficient
                    | FindingKind::Pressure
                    | FindingKind::Repeated
            ),
            Self::Context => matches!(kind, FindingKind::Gap),
            Self::Others | Self::Free => false,
        }
    }
}

/// What exactly a part of a device is: [`CompositionPart::content`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PartContent {
    /// The narrowest level that is known, by its name: `allocated`.
    Level(&'static str),
    /// What is allocated for one purpose.
    Purpose(Purpose),
    /// The difference between blocks and what was requested.
    Rounding,
    /// Allocated since the start of an ongoing run; its purpose is not known yet.
    ThisRun,
    /// The gap between two levels.
    Between(Gap),
    /// What nobody uses.
    Free,
}

/// A part of a device's memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CompositionPart {
    /// What it is.
    pub content: PartContent,
    /// How much it is.
    pub size: Bytes,
}

impl CompositionPart {
    const fn new(content: PartContent, size: Bytes) -> Self {
        Self { content, size }
    }

    /// Who uses it.
    pub fn kind(&self) -> PartKind {
        match self.content {
            PartContent::Level(_)
            | PartContent::Purpose(_)
            | PartContent::Rounding
            | PartContent::ThisRun => PartKind::Held,
            PartContent::Between(gap) => kind(&gap),
            PartContent::Free => PartKind::Free,
        }
    }

    /// What it is allocated for, if that is known.
    pub const fn purpose(&self) -> Option<Purpose> {
        match self.content {
            PartContent::Purpose(purpose) => Some(purpose),
            _ => None,
        }
    }
}

impl Analysis {
    /// What fills a device now, from what is held to what is free.
    ///
    /// If the holders were searched and the level has not changed since, the held part is split by purpose;
    /// what no search found is unnamed. During a run the last search tells what was there before, and the
    /// rest belongs to the run.
    pub fn parts(&self, recording: &Recording, device: DeviceIdx) -> Vec<CompositionPart> {
        let Some(summary) = self.summary(device) else {
            return Vec::new();
        };
        if recording.outside_reading(device).is_some() {
            return summary.composition();
        }
        let looked = recording.latest_holders(device);
        let Some(((run, held), latest)) = looked.zip(recording.runs().last()) else {
            return summary.composition();
        };
        let [looked, last] = [run, latest.idx].map(|run| recording.outermost(run));
        let [then, now] = [looked, last].map(|run| self.row(run, device));
        let then = then.and_then(|row| row.after);
        let is_open = recording.run(last).ended.is_none();
        let now = now.and_then(|row| if is_open { row.before } else { row.after });
        match is_open {
            _ if looked == last => summary.composition_by_purpose(&held.parts),
            _ if then != now => summary.composition(),
            true => with_this_run(summary, &held.parts),
            false => summary.composition_by_purpose(&held.parts),
        }
    }

    /// The worst finding on a device that is about such a part of it.
    pub fn finding_about(&self, device: DeviceIdx, part: PartKind) -> Option<&Finding> {
        let mut findings = self.findings.iter();
        let is_about = |it: &&Finding| !matches!(it.details, FindingDetails::Children(_));
        findings.find(|it| it.device == device && part.is_subject_of(it.kind) && is_about(it))
    }
}

/// What was known before the run, and what has come since.
fn with_this_run(summary: &DeviceSummary, before: &[(Purpose, Bytes)]) -> Vec<CompositionPart> {
    let unnamed = before.iter().filter(|(it, _)| *it == Purpose::Unnamed);
    let unnamed: Bytes = unnamed.map(|(_, size)| *size).sum();
    let mut parts = summary.composition_by_purpose(before);
    let is_unnamed = |part: &CompositionPart| part.purpose() == Some(Purpose::Unnamed);
    let Some(place) = parts.iter().position(is_unnamed) else {
        return parts;
    };
    let rest = parts.remove(place).size;
    let both = [
        CompositionPart::new(PartContent::Purpose(Purpose::Unnamed), unnamed),
        CompositionPart::new(PartContent::ThisRun, rest.saturating_sub(unnamed)),
    ];
    let known = both.into_iter().filter(|part| part.size > Bytes::ZERO);
    parts.splice(place..place, known);
    parts
}

impl DeviceSummary {
    /// The parts that make up the device, from what is held to what is free.
    ///
    /// A negative gap (memory that is reserved but not mapped, managed or shared) is
    /// no part: the parts are then more than the device's use.
    pub fn composition(&self) -> Vec<CompositionPart> {
        let Some((name, held)) = self.narrowest() else {
            return Vec::new();
        };
        let gaps = self.gaps().into_iter();
        let between = gaps.filter(|gap| gap.size > ByteDelta::ZERO);
        let between = between
            .map(|gap| CompositionPart::new(PartContent::Between(gap), gap.size.magnitude()));
        let free = self
            .free()
            .map(|free| CompositionPart::new(PartContent::Free, free));
        std::iter::once(CompositionPart::new(PartContent::Level(name), held))
            .chain(between)
            .chain(free)
            .filter(|part| part.size > Bytes::ZERO)
            .collect()
    }

    /// The same, with the allocated part split by purpose; what no search found is unnamed. Not split if no
    /// allocator reports it, or if the search found more than is allocated.
    pub fn composition_by_purpose(&self, purposes: &[(Purpose, Bytes)]) -> Vec<CompositionPart> {
        if self.allocated.is_none() {
            return self.composition();
        }
        let requested = self.requested;
        let parts = self.composition().into_iter();
        parts
            .flat_map(|part| taken_apart(part, requested, purposes))
            .collect()
    }
}

/// Objects report requested bytes, and blocks are larger: the difference is rounding, not unattributed memory.
fn taken_apart(
    part: CompositionPart,
    requested: Option<Bytes>,
    purposes: &[(Purpose, Bytes)],
) -> Vec<CompositionPart> {
    let found: Bytes = purposes.iter().map(|(_, size)| *size).sum();
    if part.kind() != PartKind::Held || found > part.size {
        return vec![part];
    }
    let named = purposes.iter().filter(|(it, _)| *it != Purpose::Unnamed);
    let known: Bytes = named.clone().map(|(_, size)| *size).sum();
    let held = |purpose, size| CompositionPart::new(PartContent::Purpose(purpose), size);
    let rest = part.size.saturating_sub(known);
    let rounding = requested.map_or(Bytes::ZERO, |bytes| part.size.saturating_sub(bytes));
    let rounding = rounding.min(rest);
    let mut parts: Vec<CompositionPart> = named
        .map(|(purpose, size)| held(*purpose, *size))
        .chain([
            held(Purpose::Unnamed, rest.saturating_sub(rounding)),
            CompositionPart::new(PartContent::Rounding, rounding),
        ])
        .filter(|part| part.size > Bytes::ZERO)
        .collect();
    // Of less nobody wants to read: it goes to the largest part, which has most of the blocks.
    if rounding.get() < part.size.get() / 1000 {
        parts.retain(|part| part.content != PartContent::Rounding);
        if let Some(largest) = parts.iter_mut().max_by_key(|part| part.size) {
            largest.size += rounding;
        }
    }
    parts
}

fn kind(gap: &Gap) -> PartKind {
    match (gap.from, gap.to) {
        ("allocated", "reserved") => PartKind::Cache,
        (_, "process_used") => PartKind::Context,
        _ => PartKind::Others,
    }
}
