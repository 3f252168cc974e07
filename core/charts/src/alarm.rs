//! What stands out, wherever it is drawn.

use gpumem_analyzer::{Analysis, Finding, FindingKind, Severity};
use gpumem_model::recording::DeviceIdx;
use gpumem_scene::Role;

/// Why a part of the bar, or a field of the map, stands out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Alarm {
    /// It leaks.
    Leak,
    /// It grows, or nobody reaches it.
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

/// The worst that a finding says of a name, as long as it stands.
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
