//! The parts of the bar: names in the order of their categories, then what no name holds.

use super::super::category::Category;
use super::super::scene::Role;
use super::super::{View, holder_map};
use crate::analyze::{Analysis, Finding, FindingKind, Part, PartContent, PartKind, Severity};
use crate::collect::{CollectVec, ExtendVec};
use crate::holders::Part as Purpose;
use crate::recording::{DeviceIdx, Recording};
use crate::sort;
use crate::units::Bytes;
use crate::wording;

/// Of less than this share of what is held, nobody wants to read.
const TOO_LITTLE: u64 = 1000;

/// A part of the bar. Example: [`segments`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Segment {
    /// The name that holds it, or what it is.
    pub name: String,
    /// It is a name of the user's, not only a word for what it is.
    pub is_name: bool,
    /// What it is for; `None` if it is free.
    pub category: Option<Category>,
    /// How much it is.
    pub size: Bytes,
    /// A finding is about it that stands: a leak, or something to watch.
    pub alarm: Option<Alarm>,
    /// Who uses it, for findings about that.
    pub kind: PartKind,
    /// What it is allocated for, if that is known and it has no name.
    pub purpose: Option<Purpose>,
}

/// Why a part of the bar stands out. Example: [`segments`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Alarm {
    /// It leaks.
    Leak,
    /// It grows, or nobody reaches it.
    Watch,
}

impl Segment {
    /// The sign in front of its name.
    pub const fn sign(&self) -> Option<&'static str> {
        match self.alarm {
            Some(Alarm::Leak) => Some("▲"),
            Some(Alarm::Watch) => Some("◆"),
            None => None,
        }
    }

    /// Both are told as one sum.
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

    pub(super) const fn role(&self) -> Role {
        match (self.alarm, self.category) {
            (Some(Alarm::Leak), _) => Role::Leak,
            (Some(Alarm::Watch), _) => Role::Watch,
            (None, Some(category)) => Role::Category(category),
            (None, None) => Role::Panel,
        }
    }
}

/// What fills a device now, from what is held to what is free.
///
/// ```
/// use gpumem_core::analyze::{Rules, analyze};
/// use gpumem_core::chart::segments;
/// use gpumem_core::recording::DeviceIdx;
/// # mod example { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/recordings/leaking.rs")); }
/// # use example::leaking;
///
/// let recording = leaking();
/// let segments = segments(&recording, &analyze(&recording, &Rules::default()), DeviceIdx(0));
/// let losses = segments.iter().find(|it| it.name == "losses").expect("a name that holds memory");
/// assert!(losses.is_name && losses.size.get() > 0);
/// ```
pub fn segments(recording: &Recording, analysis: &Analysis, device: DeviceIdx) -> Vec<Segment> {
    let parts = analysis.parts(recording, device);
    let named = named(recording, analysis, device, &parts);
    let mut segments = match named {
        Some(named) => named,
        None => of_parts(&parts, |part| part.kind() == PartKind::Held),
    };
    segments.extend_vec(of_parts(&parts, |part| part.kind() != PartKind::Held));
    // A sort that keeps what is free at the end.
    sort::sort_by_key(&mut segments, |it| {
        (
            it.category.is_none(),
            it.category,
            std::cmp::Reverse(it.size),
        )
    });
    segments
}

/// What is held, by name; `None` where that does not add up.
fn named(
    recording: &Recording,
    analysis: &Analysis,
    device: DeviceIdx,
    parts: &[Part],
) -> Option<Vec<Segment>> {
    let is_known = parts.iter().any(|part| part.purpose().is_some());
    let map = holder_map(
        recording,
        &View {
            device,
            ..View::default()
        },
    )
    .filter(|_| is_known)?;
    let held: Bytes = parts
        .iter()
        .filter(|part| part.kind() == PartKind::Held && part.content != PartContent::ThisRun)
        .map(|part| part.size)
        .sum();
    let found: Bytes = map.fields.iter().map(|field| field.n_bytes).sum();
    if found > held {
        return None;
    }
    let fields = map.fields.iter();
    let mut named: Vec<Segment> = fields
        .map(|field| Segment {
            name: field.name.clone(),
            is_name: true,
            category: Some(field.part.map_or(Category::Names, Category::of_purpose)),
            size: field.n_bytes,
            alarm: alarm(analysis, device, &field.name),
            kind: PartKind::Held,
            purpose: None,
        })
        .collect_vec();
    let rest = held.saturating_sub(found);
    if rest.get() > held.get() / TOO_LITTLE {
        named.push(Segment {
            name: "unnamed".to_owned(),
            is_name: false,
            category: Some(Category::Unnamed),
            size: rest,
            alarm: None,
            kind: PartKind::Held,
            purpose: Some(Purpose::Unnamed),
        });
    }
    named.extend_vec(of_parts(parts, |part| part.content == PartContent::ThisRun));
    Some(named)
}

fn of_parts(parts: &[Part], is_meant: impl Fn(&Part) -> bool) -> Vec<Segment> {
    let meant = parts.iter().filter(|part| is_meant(part));
    let segment = |part: &Part| Segment {
        name: wording::part(part).to_owned(),
        is_name: false,
        category: Category::of_part(part),
        size: part.size,
        alarm: None,
        kind: part.kind(),
        purpose: part.purpose(),
    };
    meant.map(segment).collect_vec()
}

/// The worst that a finding says of a name, as long as it stands.
fn alarm(analysis: &Analysis, device: DeviceIdx, name: &str) -> Option<Alarm> {
    let stands = |finding: &&Finding| {
        finding.device == device
            && finding.withdrawn.is_none()
            && finding.severity > Severity::Info
            && finding.holders.iter().any(|holder| holder.name == name)
    };
    let of_kind = |finding: &Finding| match finding.kind {
        FindingKind::Leak => Some(Alarm::Leak),
        FindingKind::Growing | FindingKind::Retention => Some(Alarm::Watch),
        _ => None,
    };
    analysis
        .findings
        .iter()
        .filter(stands)
        .filter_map(of_kind)
        .min()
}

/// What a colour of the bar means.
pub(super) struct Sum {
    pub(super) words: String,
    pub(super) size: Bytes,
    pub(super) role: Role,
    pub(super) is_striped: bool,
    /// The first segment of that colour.
    pub(super) first: usize,
}

/// The sums of the colours in the bar, in its order; without what can still be used.
pub(super) fn sums(segments: &[Segment]) -> Vec<Sum> {
    let mut sums: Vec<Sum> = Vec::new();
    for (idx, segment) in segments.iter().enumerate() {
        let Some(category) = segment.category.filter(|it| *it != Category::Cache) else {
            continue;
        };
        let role = segment.role();
        let words = match segment.alarm {
            Some(Alarm::Leak) => "▲ leaks".to_owned(),
            Some(Alarm::Watch) => format!("◆ {}", category.words()),
            None if segment.is_name => category.words().to_owned(),
            None => segment.name.clone(),
        };
        match sums
            .iter_mut()
            .find(|sum| segments[sum.first].is_alike(segment))
        {
            Some(sum) => sum.size += segment.size,
            None => sums.push(Sum {
                words,
                size: segment.size,
                role,
                is_striped: segment.alarm.is_none() && category.is_striped(),
                first: idx,
            }),
        }
    }
    sums
}
