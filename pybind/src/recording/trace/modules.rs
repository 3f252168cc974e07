//! Whose `forward` a frame is.
//!
//! A snapshot's frames have no `self`, and no hook is put on anything: a frame is
//! matched with the class whose `forward` has its file and line. Which of several
//! modules of a class it was is not known.

use std::collections::{HashMap, HashSet};

use gpumem_model::trace::StackFrame;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyFunction, PyList, PyType};

use gpumem_base::text::Text;

const FORWARD: &str = "forward";

/// The lines of one class's `forward`.
struct Forward {
    first: u32,
    last: u32,
    class: String,
}

/// Names the class of each frame of a `forward`, where torch is imported.
pub(super) fn name(py: Python<'_>, frames: &mut [StackFrame]) -> PyResult<()> {
    let files: HashSet<&str> = frames
        .iter()
        .filter(|frame| frame.name == FORWARD)
        .map(|frame| frame.file.as_str())
        .collect();
    if files.is_empty() {
        return Ok(());
    }
    let forwards = forwards(py, &files)?;
    for frame in frames.iter_mut().filter(|frame| frame.name == FORWARD) {
        let mut of_file = forwards.get(&frame.file).into_iter().flatten();
        let found = of_file.find(|it| (it.first..=it.last).contains(&frame.line));
        frame.module = found.map(|it| it.class.clone());
    }
    Ok(())
}

/// The subclasses of `torch.nn.Module` that define a `forward` in these files. Classes are read
/// past their metaclasses, which may run the user's code.
fn forwards(py: Python<'_>, files: &HashSet<&str>) -> PyResult<HashMap<String, Vec<Forward>>> {
    let mut forwards: HashMap<String, Vec<Forward>> = HashMap::new();
    let Some(root) = module_class(py)? else {
        return Ok(forwards);
    };
    let kind = py.get_type::<PyType>();
    let (subclasses, attribute) = (
        kind.getattr("__subclasses__")?,
        kind.getattr("__getattribute__")?,
    );
    let mut seen = HashSet::new();
    let mut open = vec![root];
    while let Some(class) = open.pop() {
        if !seen.insert(class.as_ptr() as usize) {
            continue;
        }
        let below = subclasses.call1((&class,))?;
        open.extend(below.cast::<PyList>()?.iter());
        let own = attribute.call1((&class, "__dict__"))?;
        let Ok(function) = own.get_item(FORWARD) else {
            continue;
        };
        if !function.is_instance_of::<PyFunction>() {
            continue;
        }
        let code = function.getattr("__code__")?;
        let Text(file) = code.getattr("co_filename")?.extract()?;
        if files.contains(file.as_str()) {
            let Text(class) = attribute.call1((&class, "__name__"))?.extract()?;
            let (first, last) = lines(&code)?;
            let forward = Forward { first, last, class };
            forwards.entry(file).or_default().push(forward);
        }
    }
    Ok(forwards)
}

fn module_class(py: Python<'_>) -> PyResult<Option<Bound<'_, PyAny>>> {
    let modules = py.import("sys")?.getattr("modules")?;
    let Some(module) = modules
        .cast::<PyDict>()?
        .get_item("torch.nn.modules.module")?
    else {
        return Ok(None);
    };
    Ok(module.getattr("Module").ok())
}

fn lines(code: &Bound<'_, PyAny>) -> PyResult<(u32, u32)> {
    let first: u32 = code.getattr("co_firstlineno")?.extract()?;
    let mut last = first;
    for line in code.call_method0("co_lines")?.try_iter()? {
        let line: Option<u32> = line?.get_item(2)?.extract()?;
        last = last.max(line.unwrap_or(first));
    }
    Ok((first, last))
}
