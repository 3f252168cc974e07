//! Which line of a stack is the user's.

use super::model::{Frame, StackIdx, TorchSnapshot};
use crate::code_line::{is_python, is_users};

impl<'t> TorchSnapshot<'t> {
    /// The line of each stack that the user can change: the innermost frame outside of installed packages,
    /// Python itself and C++. If there is none, the innermost frame of Python; if there is none, the
    /// operator of the backward pass.
    pub(super) fn lines(&self) -> Vec<Option<Frame<'t>>> {
        let ranks: Vec<Rank> = self.frames.iter().map(rank).collect();
        let line = |stack: &Vec<u32>| {
            let frames = stack.iter().filter_map(|&at| {
                let at = at as usize;
                Some((*ranks.get(at)?, *self.frames.get(at)?))
            });
            let best = frames.reduce(|best, next| if next.0 < best.0 { next } else { best });
            best.map(|(rank, frame)| match rank {
                Rank::User | Rank::Installed => frame,
                Rank::Operator | Rank::Native => Frame {
                    name: operator(frame.name).unwrap_or_default(),
                    file: "",
                    line: None,
                },
            })
        };
        self.stacks.iter().map(line).collect()
    }
}

/// The line of a stack in what [`TorchSnapshot::lines`] returned.
pub(super) fn line_of<'t>(
    lines: &[Option<Frame<'t>>],
    stack: Option<StackIdx>,
) -> Option<Frame<'t>> {
    lines.get(stack?.0 as usize).copied().flatten()
}

/// How much a frame tells the user: less is better.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Rank {
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

pub(super) fn rank(frame: &Frame<'_>) -> Rank {
    if is_users(frame.file) {
        Rank::User
    } else if is_python(frame.file) {
        Rank::Installed
    } else if operator(frame.name).is_some() {
        Rank::Operator
    } else {
        Rank::Native
    }
}
