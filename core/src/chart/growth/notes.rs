//! What is written over a group.

use super::super::device_view::{DeviceView, role_of};
use super::super::scene::Role;
use super::groups::Group;
use crate::analyze::Finding;
use crate::units::{ByteDelta, Units};
use crate::wording::count;

/// A remark on the runs of one cell.
pub(super) struct Note {
    /// The cell's name.
    pub(super) name: String,
    pub(super) text: String,
    pub(super) role: Role,
    pub(super) middle: f64,
    pub(super) is_finding: bool,
}

/// The finding about the group, or else what its runs have in common.
pub(super) fn note(session: &DeviceView<'_>, group: &Group, units: Units) -> Option<Note> {
    let finding = session.growing_in[group.cell.get()];
    let said = |text: String, role: Role| Note {
        name: group.name.clone(),
        text,
        role,
        middle: f64::midpoint(group.left, group.right()),
        is_finding: finding.is_some(),
    };
    match finding {
        Some(finding) => Some(said(rate(finding, units)?, role_of(finding))),
        None => match so_far(group, units) {
            Some(text) => Some(said(text, Role::Process)),
            None => Some(said(in_common(group)?, Role::Muted)),
        },
    }
}

/// `+420 MiB in each of 7 runs`.
fn rate(finding: &Finding, units: Units) -> Option<String> {
    let what = if finding.counts_steps() {
        "step"
    } else {
        "run"
    };
    let each = units.change(finding.growth()?.bytes_per_run);
    Some(format!("{each} in each of {}", count(finding.n_runs, what)))
}

/// `+512 MiB so far`, of a run that goes on.
fn so_far(group: &Group, units: Units) -> Option<String> {
    let open = group.slots.iter().find(|slot| slot.runs_still())?;
    Some(format!("{} so far", units.change(open.kept?)))
}

/// Said only of two runs and more, and only where all of them are known.
fn in_common(group: &Group) -> Option<String> {
    let kept: Vec<ByteDelta> = group
        .slots
        .iter()
        .map(|slot| slot.kept)
        .collect::<Option<_>>()?;
    let n_first = kept
        .iter()
        .rposition(|kept| *kept != ByteDelta::ZERO)
        .map_or(0, |idx| idx + 1);
    let total = kept.iter().fold(ByteDelta::ZERO, |sum, kept| sum + *kept);
    let used_any = group.slots.iter().any(|slot| slot.peak > 0.0);
    match n_first {
        0 if kept.len() >= 2 && used_any => Some("gives all back".to_owned()),
        1.. if kept.len() >= n_first + 2 && total > ByteDelta::ZERO => {
            Some(format!("settled after {}", count(n_first, "run")))
        }
        _ => None,
    }
}
