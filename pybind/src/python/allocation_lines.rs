//! Where the memory of holders was allocated, as torch's own history of its CUDA allocator tells.

use std::collections::HashMap;

use gpumem_heap::HeapSearchResult;
use gpumem_model::recording::FrameOrigin;
use gpumem_model::trace::StackFrame;
use pyo3::prelude::*;

use crate::recording::trace::{CompiledCells, allocation_traceback};
use gpumem_base::shells::shells;
use gpumem_base::text::Text;

/// torch can tell where memory was allocated.
pub(super) fn are_known(py: Python<'_>) -> bool {
    allocation_traceback(py).is_ok_and(|it| it.is_some())
}

/// Notes the line that allocated the largest storage of each name. `found` has the addresses of storages.
pub(super) fn note(py: Python<'_>, found: &mut HeapSearchResult) -> PyResult<()> {
    let Some(traceback) = allocation_traceback(py)? else {
        return Ok(());
    };
    let storages = found.storages.iter();
    let addresses: HashMap<(&str, &str), u64> = storages
        .map(|it| ((&*it.device, &*it.path), it.address))
        .collect();
    let mut cells = Vec::new();
    for shell in shells(py) {
        cells.push(CompiledCells::new(&shell, None, "")?);
    }
    for device in &mut found.holders.devices {
        for holder in &mut device.roots {
            let address = addresses.get(&(&*device.device, &*holder.path));
            if let Some(address) = address {
                let frames = traceback.call1((*address,))?;
                holder.origin.line = line(&frames, &mut cells)?;
            }
        }
    }
    Ok(())
}

/// The innermost frame in a cell, or else in a file. `frames` begins with the innermost.
fn line(frames: &Bound<'_, PyAny>, cells: &mut [CompiledCells<'_>]) -> PyResult<Option<String>> {
    let mut in_file = None;
    let frames: Option<Vec<Bound<'_, PyAny>>> = frames.extract()?;
    for frame in frames.into_iter().flatten() {
        let mut frame = StackFrame {
            name: String::new(),
            file: frame.get_item("filename")?.extract::<Text>()?.into(),
            line: frame.get_item("line")?.extract()?,
            origin: FrameOrigin::File,
            module: None,
        };
        for cells in &mut *cells {
            cells.place(std::slice::from_mut(&mut frame))?;
        }
        match frame.origin {
            FrameOrigin::Cell(number) => {
                return Ok(Some(format!("In [{number}], line {}", frame.line)));
            }
            FrameOrigin::Own => return Ok(Some(format!("line {} of this cell", frame.line))),
            FrameOrigin::File => {
                let name = frame.file.rsplit(['/', '\\']).next().unwrap_or_default();
                in_file.get_or_insert_with(|| format!("{name}:{}", frame.line));
            }
        }
    }
    Ok(in_file)
}
