//! Where the memory of holders was allocated, as torch's own history of its CUDA allocator tells.

use std::collections::HashMap;

use gpumem_heap::Found;
use gpumem_model::recording::FrameOrigin;
use gpumem_model::trace::StackFrame;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::base::shells::shells;
use crate::base::text::Text;
use crate::recording::trace::Cells;

/// `torch.cuda.memory._allocation_traceback` of torch 2.15 and later, while a history is recorded.
fn traceback(py: Python<'_>) -> Option<Bound<'_, PyAny>> {
    let modules = py.import("sys").ok()?.getattr("modules").ok()?;
    let torch = modules.cast::<PyDict>().ok()?.get_item("torch").ok()??;
    let is_enabled = torch.getattr("_C").ok()?.getattr("_cuda_isHistoryEnabled");
    let is_enabled = is_enabled.ok()?.call0().ok()?.is_truthy().ok()?;
    let memory = torch.getattr("cuda").ok()?.getattr("memory").ok()?;
    let traceback = memory.getattr("_allocation_traceback").ok()?;
    is_enabled.then_some(traceback)
}

/// torch can tell where memory was allocated.
pub(super) fn are_known(py: Python<'_>) -> bool {
    traceback(py).is_some()
}

/// Notes the line that allocated the largest storage of each name. `found` has the addresses of storages.
pub(super) fn note(py: Python<'_>, found: &mut Found) -> PyResult<()> {
    let Some(traceback) = traceback(py) else {
        return Ok(());
    };
    let storages = found.storages.iter();
    let addresses: HashMap<(&str, &str), u64> = storages
        .map(|it| ((&*it.device, &*it.path), it.address))
        .collect();
    let mut cells = Vec::new();
    for shell in shells(py) {
        cells.push(Cells::new(&shell, None, "")?);
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

/// Of the frames, the innermost first: that in a cell, or else that in a file.
fn line(frames: &Bound<'_, PyAny>, cells: &mut [Cells<'_>]) -> PyResult<Option<String>> {
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
