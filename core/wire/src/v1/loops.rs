//! The frame of a loop.

use serde::Serializer;

use crate::record::{Encode, wire, wire_names};
use gpumem_model::recording::FrameOrigin;
use gpumem_model::recording::{Frame, Loop, LoopKind};

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

impl Encode for Loop {
    fn encode<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let (file, cell) = match self.origin {
            FrameOrigin::File => (Some(self.file.clone()), None),
            FrameOrigin::Cell(number) => (None, Some(number)),
            FrameOrigin::Own => (None, None),
        };
        let of = self;
        WireLoop { of, file, cell }.encode(serializer)
    }
}

impl WireLoop<Loop> {
    pub(crate) fn frame(self) -> Frame {
        let origin = match (&self.file, self.cell) {
            (Some(_), _) => FrameOrigin::File,
            (None, Some(number)) => FrameOrigin::Cell(number),
            (None, None) => FrameOrigin::Own,
        };
        let file = self.file.unwrap_or_default();
        Frame::Loop(Box::new(Loop {
            origin,
            file,
            ..self.of
        }))
    }
}
