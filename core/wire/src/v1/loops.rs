//! The frame of a loop.

use crate::record::{encoded_as, wire, wire_names};
use gpumem_model::recording::{Frame, FrameOrigin, Loop, LoopKind};

wire_names! { LoopKind }

/// Its code is in a file, in the cell of that number, or without either in the run's own cell.
#[derive(Default)]
pub(crate) struct WireLoop<L> {
    of: L,
    file: Option<String>,
    cell: Option<u32>,
}

wire! { WireLoop<&Loop> => WireLoop<Loop> {
    required "run" => of.run,
    required "idx" => of.idx,
    sparse "parent" => of.parent,
    required "class" => of.kind,
    sparse "file" => file,
    sparse "cell" => cell,
    "line" => of.line,
    sparse "text" => of.text,
    "function" => of.function,
    sparse "is_library" => of.is_library,
    "n_iterations" => of.n_iterations,
    sparse "is_estimate" => of.is_estimate,
    sparse "was_running" => of.was_running,
    "counted_from_nanos" => of.counted_from,
    "last_at_nanos" => of.last_at,
    sparse "n_marks" => of.n_marks,
}}

encoded_as! {
    Loop: counted => WireLoop {
        of: counted,
        file: (counted.origin == FrameOrigin::File).then(|| counted.file.clone()),
        cell: match counted.origin {
            FrameOrigin::Cell(number) => Some(number),
            FrameOrigin::File | FrameOrigin::Own => None,
        },
    };
}

impl WireLoop<Loop> {
    pub(crate) fn frame(self) -> Frame {
        let origin = match (&self.file, self.cell) {
            (Some(_), _) => FrameOrigin::File,
            (None, Some(number)) => FrameOrigin::Cell(number),
            (None, None) => FrameOrigin::Own,
        };
        let file = self.file.unwrap_or_default();
        let of = self.of;
        Frame::Loop(Box::new(Loop { origin, file, ..of }))
    }
}
