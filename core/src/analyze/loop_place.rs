//! Where a loop is, in a person's words.

use serde::{Serialize, Serializer};

use crate::recording::{Loop, LoopKind};
use crate::trace::FrameOrigin;

/// Where the loop is that a series counts: `in_loop` of a growth.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoopPlace {
    /// Whether iterations are counted, or calls.
    pub kind: LoopKind,
    /// The line of its header; of calls that of the function.
    pub line: u32,
    /// The text of that line in a file; empty in a cell, or where it is not known.
    pub text: String,
    /// The function as Python qualifies it; `<module>` outside of any, empty if unknown.
    pub function: String,
    /// The name of its file, without the folder; empty in a cell.
    pub file: String,
    /// Jupyter's number of its cell, if that is another one than the run's.
    pub execution_count: Option<u32>,
}

impl LoopPlace {
    pub(crate) fn new(counted: &Loop) -> Self {
        let file = counted.file.rsplit(['/', '\\']).next();
        Self {
            kind: counted.kind,
            line: counted.line,
            text: counted.text.clone(),
            function: counted.function.clone(),
            file: match counted.origin {
                FrameOrigin::File => file.unwrap_or_default().to_owned(),
                FrameOrigin::Own | FrameOrigin::Cell(_) => String::new(),
            },
            execution_count: match counted.origin {
                FrameOrigin::Cell(number) => Some(number),
                FrameOrigin::Own | FrameOrigin::File => None,
            },
        }
    }

    /// `line 3`, `line 3 of In [2]`, `line 88 of encoder.py`; of calls `explore`.
    pub fn name(&self) -> String {
        if self.kind == LoopKind::Calls && !self.function.is_empty() {
            return self.function.clone();
        }
        match self.execution_count {
            Some(number) => format!("line {} of In [{number}]", self.line),
            None if self.file.is_empty() => format!("line {}", self.line),
            None => format!("line {} of {}", self.line, self.file),
        }
    }
}

impl Serialize for LoopPlace {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.name())
    }
}
