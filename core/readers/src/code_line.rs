//! A line of Python, and whose it is.
//!
//! ```
//! use gpumem_readers::code_line::CodeLine;
//!
//! let line = CodeLine {
//!     file: r"D:\work\lm\model.py".to_owned(),
//!     line: Some(54),
//!     function: "forward".to_owned(),
//! };
//! assert_eq!(line.short(), "lm/model.py:54 in forward");
//! ```

use serde::Serialize;

use super::cell_files::is_cell;
use gpumem_model::printable::printable;

/// Modules of Python's own library that programs pass through on their way into torch, sorted.
const STANDARD: [&str; 40] = [
    "__future__",
    "_weakrefset",
    "abc",
    "ast",
    "asyncio",
    "bdb",
    "codecs",
    "collections",
    "concurrent",
    "contextlib",
    "copy",
    "copyreg",
    "ctypes",
    "dataclasses",
    "dis",
    "enum",
    "functools",
    "genericpath",
    "importlib",
    "inspect",
    "json",
    "linecache",
    "logging",
    "multiprocessing",
    "numbers",
    "operator",
    "os",
    "pathlib",
    "pickle",
    "posixpath",
    "queue",
    "random",
    "re",
    "runpy",
    "threading",
    "traceback",
    "typing",
    "warnings",
    "weakref",
    "zipfile",
];

/// A line of code.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
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
pub(crate) fn is_python(file: &str) -> bool {
    let suffix = file.rsplit_once('.').map(|(_, suffix)| suffix);
    // Code without a file, from `<stdin>`, `<string>` and Databricks's `<command-123>`, is Python's, too.
    suffix == Some("py") || file.starts_with('<') || is_cell(file)
}

/// Whether a file is the user's own code: Python, and not in an installed package or in Python's own library.
pub fn is_users(file: &str) -> bool {
    is_python(file) && !is_packaged(file) && !is_standard(file)
}

/// Whether a file is part of an installed package, or was written by one.
pub(crate) fn is_packaged(file: &str) -> bool {
    parts(file).any(|part| {
        matches!(part, "site-packages" | "dist-packages")
            || part.starts_with("<frozen")
            // What torch.fx and torch.compile write.
            || part.starts_with("<eval_with_key>")
            || part.starts_with("torchinductor_")
    })
}

/// Whether a path leads through Python's own library: `…/lib/python3.12/…`, `C:\…\Python312\Lib\…`, or
/// `C:\…\anaconda3\lib\copy.py`. Packages may be installed in there, too.
pub(crate) fn is_standard(file: &str) -> bool {
    parts(file).zip(parts(file).skip(1)).any(|(folder, next)| {
        (matches!(folder, "lib" | "lib64") && next.starts_with("python"))
            || (folder.starts_with("Python3") && next == "Lib")
            || (file.contains('\\')
                && folder.eq_ignore_ascii_case("lib")
                && is_standard_module(next.strip_suffix(".py").unwrap_or(next)))
    })
}

pub(crate) fn is_standard_module(name: &str) -> bool {
    STANDARD.binary_search(&name).is_ok()
}

fn parts(file: &str) -> impl Iterator<Item = &str> {
    file.split(['/', '\\'])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(file: &str, expected: bool) {
        assert_eq!(is_users(file), expected, "{file}");
    }

    #[test]
    fn code_without_a_file_is_the_users() {
        check("<stdin>", true);
        check("<string>", true);
        check("<command-1234>", true);
        check("<frozen importlib._bootstrap>", false);
        check("<eval_with_key>.3", false);
        check("??", false);
        check("/build/c10/core/CPUAllocator.cpp", false);
    }

    #[test]
    fn the_library_of_every_system_is_known() {
        assert!(STANDARD.is_sorted());
        check("/usr/lib/python3.12/copy.py", false);
        check(r"C:\Python312\Lib\copy.py", false);
        check(r"D:\anaconda3\lib\copy.py", false);
        check(r"D:\work\lib\train.py", true);
        check("/data/me/lib/copy.py", true);
    }
}
