//! The user's line of a stack.

use super::model::{SnapshotFrame, SnapshotStackIdx, TorchSnapshot};
use crate::code_line::{is_python, is_users};

impl<'t> TorchSnapshot<'t> {
    /// The line of each stack that the user can change: the innermost frame outside of installed packages,
    /// Python itself and C++. If there is none, the innermost frame of Python; if there is none, the
    /// operator of the backward pass.
    pub(super) fn lines(&self) -> Vec<Option<SnapshotFrame<'t>>> {
        let ranks: Vec<FrameRank> = self.frames.iter().map(rank).collect();
        let line = |stack: &Vec<u32>| {
            let frames = stack.iter().filter_map(|&at| {
                let at = at as usize;
                Some((*ranks.get(at)?, *self.frames.get(at)?))
            });
            let best = frames.reduce(|best, next| if next.0 < best.0 { next } else { best });
            best.map(|(rank, frame)| match rank {
                FrameRank::User | FrameRank::Installed => frame,
                FrameRank::Operator | FrameRank::Native => SnapshotFrame {
                    name: operator(frame.name).unwrap_or_default(),
                    file: "",
                    line: None,
                },
            })
        };
        self.stacks.iter().map(line).collect()
    }
}

/// The line of a stack in the result of [`TorchSnapshot::lines`].
pub(super) fn line_of<'t>(
    lines: &[Option<SnapshotFrame<'t>>],
    stack: Option<SnapshotStackIdx>,
) -> Option<SnapshotFrame<'t>> {
    lines.get(stack?.0 as usize).copied().flatten()
}

/// A frame's rank: lower is more useful to the user.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum FrameRank {
    User,
    Installed,
    Operator,
    Native,
}

/// `BmmBackward0` from `torch::autograd::generated::BmmBackward0::apply(…)`.
fn operator(name: &str) -> Option<&str> {
    let path = name.strip_prefix("torch::autograd::")?;
    let end = path
        .find("::apply(")
        .or_else(|| path.find("_apply_functional("))?;
    path.get(..end)?.rsplit("::").next()
}

pub(super) fn rank(frame: &SnapshotFrame<'_>) -> FrameRank {
    if is_users(frame.file) {
        FrameRank::User
    } else if is_python(frame.file) {
        FrameRank::Installed
    } else if operator(frame.name).is_some() {
        FrameRank::Operator
    } else {
        FrameRank::Native
    }
}
