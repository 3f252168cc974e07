//! Highlights, the same in every chart.

use gpumem_analyzer::{Analysis, Finding, FindingKind, Severity};
use gpumem_model::recording::DeviceIdx;
use gpumem_scene::Role;

/// Why a part of the bar or a tile of the map is highlighted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Alarm {
    /// It leaks.
    Leak,
    /// It grows, or nothing reaches it.
    Watch,
}

impl Alarm {
    /// The colour of what stands out so.
    pub(crate) const fn role(self) -> Role {
        match self {
            Self::Leak => Role::Leak,
            Self::Watch => Role::Watch,
        }
    }
}

/// The worst open finding about a name.
pub(crate) fn alarm(analysis: &Analysis, device: DeviceIdx, name: &str) -> Option<Alarm> {
    let stands = |finding: &&Finding| {
        finding.device == device
            && finding.withdrawn.is_none()
            && finding.severity > Severity::Info
            && finding.holders.iter().any(|holder| holder.name == name)
    };
    let of_kind = |finding: &Finding| match finding.kind {
        FindingKind::Leak => Some(Alarm::Leak),
        FindingKind::Growing | FindingKind::Retention | FindingKind::Outlived => Some(Alarm::Watch),
        _ => None,
    };
    analysis
        .findings
        .iter()
        .filter(stands)
        .filter_map(of_kind)
        .min()
}
