//! The parts of the bar: names in the order of their categories, then unattributed memory.

use std::cmp::Reverse;

use super::super::alarm::{Alarm, alarm};
use super::super::{ChartView, Tile, holder_map};
use gpumem_analyzer::{
    Analysis, CompositionPart, OomBreakdown, OomPart, OomShare, PartContent, PartKind,
};
use gpumem_model::holders::{RootKind, StorageUse as Purpose};
use gpumem_model::recording::{DeviceIdx, OomHolder, Recording};
use gpumem_model::units::Bytes;
use gpumem_scene::{Category, Role};
use gpumem_wording as wording;
use gpumem_wording::Sign;

/// Smaller shares of the held memory are not shown.
const TOO_LITTLE: u64 = 1000;

/// A part of the bar.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BarSegment {
    /// The name that holds it, or what it is.
    pub name: String,
    /// It is a name of the user's, not only a word for what it is.
    pub is_name: bool,
    /// What it is for; `None` if it is free.
    pub category: Option<Category>,
    /// Its bytes.
    pub size: Bytes,
    /// A finding is about it that stands: a leak, or something to watch.
    pub alarm: Option<Alarm>,
    /// Whether no cell has read the name for a while.
    pub is_idle: bool,
    /// Who uses it, for findings about that.
    pub kind: PartKind,
    /// What it is allocated for, if that is known and it has no name.
    pub purpose: Option<Purpose>,
}

impl BarSegment {
    /// The sign in front of its name.
    pub fn sign(&self) -> Option<&'static str> {
        let sign = match self.alarm? {
            Alarm::Leak => Sign::Alert,
            Alarm::Watch => Sign::Watch,
        };
        Some(sign.glyph())
    }

    /// Whether both count as one sum.
    fn is_alike(&self, other: &Self) -> bool {
        self.alarm == other.alarm
            && match self.alarm {
                Some(Alarm::Leak) => true,
                None if !self.is_name || !other.is_name => {
                    self.is_name == other.is_name && self.name == other.name
                }
                _ => self.category == other.category,
            }
    }

    /// It has no name, or is not this process's.
    pub(super) fn is_striped(&self) -> bool {
        self.alarm.is_none() && self.category.is_some_and(Category::is_striped)
    }

    pub(in super::super) const fn role(&self) -> Role {
        match (self.alarm, self.category) {
            (Some(alarm), _) => alarm.role(),
            (None, Some(category)) => Role::Category(category),
            (None, None) => Role::Panel,
        }
    }
}

/// What fills a device now, from what is held to what is free.
pub fn segments(recording: &Recording, analysis: &Analysis, device: DeviceIdx) -> Vec<BarSegment> {
    let parts = analysis.parts(recording, device);
    let named = named(recording, analysis, device, &parts);
    let mut segments = match named {
        Some(named) => named,
        None => of_parts(&parts, |part| part.kind() == PartKind::Held),
    };
    segments.extend(of_parts(&parts, |part| part.kind() != PartKind::Held));
    sort(&mut segments);
    segments
}

/// What is held, by name; `None` where that does not add up.
fn named(
    recording: &Recording,
    analysis: &Analysis,
    device: DeviceIdx,
    parts: &[CompositionPart],
) -> Option<Vec<BarSegment>> {
    let is_known = parts.iter().any(|part| part.purpose().is_some());
    let map = holder_map(recording, &ChartView::for_device(device)).filter(|_| is_known)?;
    let is_held =
        |it: &&CompositionPart| it.kind() == PartKind::Held && it.content != PartContent::ThisRun;
    let held: Bytes = parts.iter().filter(is_held).map(|part| part.size).sum();
    let found: Bytes = map.fields.iter().map(|field| field.n_bytes).sum();
    if found > held {
        return None;
    }
    let fields = map.fields.iter();
    let names: Vec<NamedSize> = fields
        .map(|field| (field.name.clone(), field.n_bytes, field.part))
        .collect();
    let mut named = by_name(analysis, device, &names, held);
    named.extend(of_parts(parts, |part| part.content == PartContent::ThisRun));
    Some(named)
}

/// A name, what it holds, and what that is for.
type NamedSize = (String, Bytes, Option<Purpose>);

/// Names, and what no name reaches of all that is held.
fn by_name(
    analysis: &Analysis,
    device: DeviceIdx,
    names: &[NamedSize],
    held: Bytes,
) -> Vec<BarSegment> {
    let segments = names.iter().map(|(name, size, purpose)| BarSegment {
        name: name.clone(),
        is_name: true,
        category: Some(purpose.map_or(Category::Names, Category::of_purpose)),
        size: *size,
        alarm: alarm(analysis, device, name),
        is_idle: is_idle(analysis, device, name),
        kind: PartKind::Held,
        purpose: None,
    });
    let mut segments: Vec<BarSegment> = segments.collect();
    let found: Bytes = segments.iter().map(|it| it.size).sum();
    let rest = held.saturating_sub(found);
    if rest.get() > held.get() / TOO_LITTLE {
        let (name, category) = if names.is_empty() {
            (wording::oom_part(OomPart::Tensors), Category::Names)
        } else {
            ("unnamed", Category::Unnamed)
        };
        let purpose = Some(Purpose::Unnamed);
        segments.push(plain(name, Some(category), (rest, PartKind::Held), purpose));
    }
    segments
}

/// A part that is no name.
fn plain(
    name: &str,
    category: Option<Category>,
    (size, kind): (Bytes, PartKind),
    purpose: Option<Purpose>,
) -> BarSegment {
    BarSegment {
        name: name.to_owned(),
        is_name: false,
        category,
        size,
        alarm: None,
        is_idle: false,
        kind,
        purpose,
    }
}

/// What filled a device when it ran out, in the same order.
pub(in super::super) fn segments_of_oom(
    recording: &Recording,
    analysis: &Analysis,
    device: DeviceIdx,
    breakdown: &OomBreakdown,
) -> Vec<BarSegment> {
    let map = holder_map(recording, &ChartView::for_device(device));
    let fields = map.map(|map| map.fields).unwrap_or_default();
    let name = |holder: &OomHolder| {
        let is_it = |field: &&Tile| field.name == holder.name;
        let purpose = match holder.kind {
            RootKind::OutputHistory | RootKind::Traceback | RootKind::Debugger => {
                Some(Purpose::Ipython)
            }
            _ => fields.iter().find(is_it).and_then(|field| field.part),
        };
        (wording::oom_holder(holder), holder.used, purpose)
    };
    let names: Vec<NamedSize> = breakdown.holders.iter().map(name).collect();
    let tensors = breakdown.part(OomPart::Tensors).unwrap_or_default();
    let mut segments = by_name(analysis, device, &names, tensors);
    for OomShare { part, size } in &breakdown.parts {
        let (category, kind) = match part {
            OomPart::Tensors => continue,
            OomPart::Cache => (Some(Category::Cache), PartKind::Cache),
            OomPart::Context => (Some(Category::Context), PartKind::Context),
            OomPart::Others => (Some(Category::Others), PartKind::Others),
            OomPart::Free => (None, PartKind::Free),
        };
        let name = wording::oom_part(*part);
        segments.push(plain(name, category, (*size, kind), None));
    }
    sort(&mut segments);
    segments
}

/// In the order of the categories; what is free stands at the end.
fn sort(segments: &mut [BarSegment]) {
    segments.sort_by_key(|it| (it.category.is_none(), it.category, Reverse(it.size)));
}

fn of_parts(
    parts: &[CompositionPart],
    is_meant: impl Fn(&CompositionPart) -> bool,
) -> Vec<BarSegment> {
    let meant = parts.iter().filter(|part| is_meant(part));
    let segment = |part: &CompositionPart| {
        let size = (part.size, part.kind());
        plain(wording::part(part), category_of(part), size, part.purpose())
    };
    meant.map(segment).collect()
}

/// No cell has read a name for a while.
fn is_idle(analysis: &Analysis, device: DeviceIdx, name: &str) -> bool {
    let mut idle = analysis.idle_on(device);
    idle.any(|it| it.names.iter().any(|it| it == name))
}

/// What a colour of the bar means.
pub(super) struct LegendEntry {
    pub(super) words: String,
    pub(super) size: Bytes,
    /// The colour; `None` of what a sign in the bar means.
    pub(super) role: Option<Role>,
    pub(super) is_striped: bool,
    /// The first segment of that colour.
    pub(super) first: usize,
}

/// The sums of the colours in the bar, in its order; if it is said elsewhere, without what can be used.
pub(super) fn sums(segments: &[BarSegment], with_unused: bool) -> Vec<LegendEntry> {
    let mut sums: Vec<LegendEntry> = Vec::new();
    for (idx, segment) in segments.iter().enumerate() {
        let is_unused = matches!(segment.category, None | Some(Category::Cache));
        if is_unused && !with_unused {
            continue;
        }
        let words = |category: Option<Category>| category.map_or("", Category::name);
        let role = segment.role();
        let words = match segment.alarm {
            Some(Alarm::Leak) => "▲ leaks".to_owned(),
            Some(Alarm::Watch) => format!("◆ {}", words(segment.category)),
            None if segment.is_name => words(segment.category).to_owned(),
            None => segment.name.clone(),
        };
        match sums
            .iter_mut()
            .find(|sum| segments[sum.first].is_alike(segment))
        {
            Some(sum) => sum.size += segment.size,
            None => sums.push(LegendEntry {
                words,
                size: segment.size,
                role: Some(role),
                is_striped: segment.is_striped(),
                first: idx,
            }),
        }
    }
    let idle = segments.iter().filter(|it| it.is_idle);
    let idle: Bytes = idle.map(|it| it.size).sum();
    if let Some(first) = segments.iter().position(|it| it.is_idle) {
        sums.push(LegendEntry {
            words: format!("{} {}", Sign::Note, wording::NOT_READ),
            size: idle,
            role: None,
            is_striped: false,
            first,
        });
    }
    sums
}

/// Where a part of the device belongs; `None` if it is free.
fn category_of(part: &CompositionPart) -> Option<Category> {
    Some(match (part.content, part.kind()) {
        (PartContent::Purpose(purpose), _) => Category::of_purpose(purpose),
        (PartContent::Level(_), _) => Category::Names,
        (_, PartKind::Held) => Category::Unnamed,
        (_, PartKind::Cache) => Category::Cache,
        (_, PartKind::Context) => Category::Context,
        (_, PartKind::Others) => Category::Others,
        (_, PartKind::Free) => return None,
    })
}
