//! A line of Python, and whose it is.

use super::cell_files::is_cell;
use crate::printable::printable;

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
    /// use gpumem_core::read::code_line::CodeLine;
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

/// Whether a file is Python's, or a cell.
pub(in crate::read) fn is_python(file: &str) -> bool {
    let suffix = file.rsplit_once('.').map(|(_, suffix)| suffix);
    suffix == Some("py") || file.starts_with("<ipython-input") || is_cell(file)
}

/// Whether a file is the user's own code: Python, and not in an installed package or in Python's own library.
pub(in crate::read) fn is_users(file: &str) -> bool {
    is_python(file) && !is_packaged(file) && !is_standard(file)
}

/// Whether a file is part of an installed package, or was written by one.
pub(in crate::read) fn is_packaged(file: &str) -> bool {
    parts(file).any(|part| {
        matches!(part, "site-packages" | "dist-packages")
            || part.starts_with("<frozen")
            // What torch.compile writes.
            || part.starts_with("torchinductor_")
    })
}

/// Whether a path leads through Python's own library: `…/lib/python3.12/…`, or `C:\…\Python312\Lib\…`. Packages may
/// be installed in there, too.
pub(in crate::read) fn is_standard(file: &str) -> bool {
    parts(file).zip(parts(file).skip(1)).any(|(folder, next)| {
        (matches!(folder, "lib" | "lib64") && next.starts_with("python"))
            || (folder.starts_with("Python3") && next == "Lib")
    })
}

fn parts(file: &str) -> impl Iterator<Item = &str> {
    file.split(['/', '\\'])
}
