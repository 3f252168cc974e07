//! Python's functions as the profiler names them: `train.py(9): step`.

use crate::cell_files::CellFiles;
use crate::code_line::{is_packaged, is_python, is_standard, is_standard_module, last_parts};

/// A function of a file.
struct Function<'n> {
    file: &'n str,
    /// The line where it begins.
    line: &'n str,
    name: &'n str,
}

impl<'n> Function<'n> {
    fn parse(name: &'n str) -> Option<Self> {
        let (place, name) = name.split_once("): ")?;
        let (file, line) = place.rsplit_once('(')?;
        Some(Self { file, line, name })
    }
}

/// Whether a name belongs to a function in neither torch nor Python's own library.
pub(super) fn is_outside(name: &str) -> bool {
    let Some(Function { file, .. }) = Function::parse(name) else {
        return false;
    };
    let parts = || file.split(['/', '\\']);
    let first = parts().next().unwrap_or_default();
    let module = first.strip_suffix(".py").unwrap_or(first);
    // The profiler strips the folders of `sys.path`: Python's own files look like the program's.
    if module == "torch" || is_standard_module(module) || !is_python(file) {
        return false;
    }
    // A file in no folder of `sys.path` keeps its whole path.
    if file == "<string>" || file.starts_with("<frozen") || file.starts_with("<eval_with_key>") {
        return false;
    }
    if is_packaged(file) {
        return !parts().any(|part| part == "torch" || part.starts_with("torchinductor_"));
    }
    !is_standard(file)
}

/// `step (lm/train.py:9)`, with the cell in place of its file: `step (In [3]:9)`; `In [3]` for a whole cell.
pub(super) fn display_name(name: &str, cells: &CellFiles) -> String {
    let Some(Function { file, line, name }) = Function::parse(name) else {
        return name.to_owned();
    };
    let cell = cells.name_of(file);
    if let Some(cell) = cell.filter(|_| name == "<module>") {
        return cell.to_owned();
    }
    let file = cell.map_or_else(|| last_parts(file), str::to_owned);
    match name {
        "<module>" => file,
        name => format!("{name} ({file}:{line})"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_of_torch_and_python_are_none_of_the_programs() {
        let check = |name: &str, expected| assert_eq!(is_outside(name), expected, "{name}");
        check("train.py(9): step", true);
        check("/tmp/ipykernel_4711/3427300630.py(9): step", true);
        check("<ipython-input-3-0123456789ab>(1): <module>", true);
        check("transformers/trainer.py(3600): training_step", true);
        check(
            "/opt/venv/lib/python3.12/site-packages/lit/fit.py(3): run",
            true,
        );
        check("/data/me/torch/train.py(3): main", true);
        check("torch/nn/modules/module.py(1783): _call_impl", false);
        check("torch\\_tensor.py(576): backward", false);
        check(
            "/opt/venv/lib/python3.12/site-packages/torch/_tensor.py(576): backward",
            false,
        );
        check("/tmp/torchinductor_me/ab/cab.py(40): call", false);
        check("/usr/lib/python3.12/typing.py(426): inner", false);
        check("typing.py(426): inner", false);
        check("concurrent/futures/thread.py(53): run", false);
        check("<frozen importlib._bootstrap>(1349): _find_and_load", false);
        check(
            "<built-in method ones of type object at 0x7ff678345000>",
            false,
        );
        check("<string>(2): __init__", false);
    }

    #[test]
    fn cells_are_named() {
        let cells = CellFiles::new([("x = 1", "In [3]")]);
        let check = |name: &str, expected| assert_eq!(display_name(name, &cells), expected);
        check(
            "/tmp/ipykernel_4711/3427300630.py(9): step",
            "step (In [3]:9)",
        );
        check("/tmp/ipykernel_4711/3427300630.py(0): <module>", "In [3]");
        check(
            "/tmp/ipykernel_4711/1.py(0): <module>",
            "ipykernel_4711/1.py",
        );
        check("/data/me/lm/train.py(9): step", "step (lm/train.py:9)");
        check("train.py(9): <lambda>", "<lambda> (train.py:9)");
    }
}
