//! The loops of a code object, read through C code alone.

use gpumem_process::bytecode::{CodeLoop, LineSpan, Opcodes, loops};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

/// `None` where one of them is missing.
pub(super) fn opcodes(py: Python<'_>) -> PyResult<Option<Opcodes>> {
    let names = py.import("opcode")?.getattr("opmap")?;
    let names = names.cast_into::<PyDict>()?;
    let number = |name: &str| {
        let number = names.get_item(name).ok().flatten()?;
        number.extract::<u8>().ok()
    };
    Ok(Opcodes::from_names(number))
}

/// No code is looked into that is longer, in bytes.
const MAX_BYTES: usize = 1 << 18;

/// The loops of a code object, outer ones before inner ones. Everything is read through C code.
pub(super) fn loops_of(code: &Bound<'_, PyAny>, opcodes: Opcodes) -> PyResult<Vec<CodeLoop>> {
    let py = code.py();
    let bytes = code.getattr(intern!(py, "co_code"))?;
    let bytes = bytes.cast_into::<PyBytes>()?;
    if bytes.as_bytes().len() > MAX_BYTES {
        return Ok(Vec::new());
    }
    let mut lines = Vec::new();
    for entry in code.call_method0(intern!(py, "co_lines"))?.try_iter()? {
        let (from, to, line): (u32, u32, Option<u32>) = entry?.extract()?;
        lines.extend(line.map(|number| LineSpan { from, to, number }));
    }
    Ok(loops(bytes.as_bytes(), &lines, opcodes))
}
