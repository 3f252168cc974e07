//! Which line of a stack is the user's.

use crate::printable::printable;
use crate::read::cell_files::is_cell;

use super::model::{Frame, StackIdx, TorchSnapshot};

/// A line of code. Example: [`CodeLine::short`].
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CodeLine {
    /// The file, as recorded; empty if the stack has no frame of Python.
    pub file: String,
    /// The line, if known.
    pub line: Option<u32>,
    /// The function; without a file, the operator of the backward pass, or nothing.
    pub function: String,
}

impl CodeLine {
    /// The last two parts of the path, the line and the function.
    ///
    /// ```
    /// use gpumem_core::read::torch_snapshot::CodeLine;
    ///
    /// let line = CodeLine {
    ///     file: r"D:\work\lm\model.py".to_owned(),
    ///     line: Some(54),
    ///     function: "forward".to_owned(),
    /// };
    /// assert_eq!(line.short(), "lm/model.py:54 in forward");
    /// ```
    pub fn short(&self) -> String {
        if self.file.is_empty() {
            return match self.function.as_str() {
                "" => "no frame of Python: a backward pass, or another thread".to_owned(),
                operator => format!("{} in a backward pass", printable(operator)),
            };
        }
        let mut parts: Vec<&str> = self.file.rsplit(['/', '\\']).take(2).collect();
        parts.reverse();
        let mut shown = parts.join("/");
        if let Some(line) = self.line {
            shown = format!("{shown}:{line}");
        }
        let is_whole_cell = is_cell(&self.file) && self.function == "<module>";
        if !self.function.is_empty() && !is_whole_cell {
            shown = format!("{shown} in {}", self.function);
        }
        printable(&shown)
    }
}

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

/// Whether a function of a file is the user's code. Example: [`CodeLine`].
pub(in crate::read) fn is_users(name: &str, file: &str) -> bool {
    let line = None;
    rank(&Frame { name, file, line }) == Rank::User
}

pub(super) fn rank(frame: &Frame<'_>) -> Rank {
    let file = frame.file;
    let suffix = file.rsplit_once('.').map(|(_, suffix)| suffix);
    let is_python = suffix == Some("py") || file.starts_with("<ipython-input") || is_cell(file);
    if !is_python {
        return match operator(frame.name) {
            Some(_) => Rank::Operator,
            None => Rank::Native,
        };
    }
    let parts = || file.split(['/', '\\']);
    let is_installed = parts().any(|part| {
        matches!(part, "site-packages" | "dist-packages")
            || part.starts_with("<frozen")
            // What torch.compile writes.
            || part.starts_with("torchinductor_")
    });
    // The standard library: …/lib/python3.12/…, or C:\…\Python312\Lib\….
    let is_standard = parts().zip(parts().skip(1)).any(|(folder, next)| {
        (matches!(folder, "lib" | "lib64") && next.starts_with("python"))
            || (folder.starts_with("Python3") && next == "Lib")
    });
    if is_installed || is_standard {
        return Rank::Installed;
    }
    Rank::User
}
