//! Where a loop is, in a person's words.

use serde::Serialize;

use gpumem_model::recording::{FrameOrigin, Loop, LoopKind, Recording, Run};
use gpumem_model::source_text;

/// What a series of levels inside of a run counts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum LoopUnit {
    /// A loop's iterations.
    #[default]
    Iteration,
    /// Calls of a function that loops without a Python loop.
    Call,
    /// What a name has been given in a loop that was not counted.
    Item,
    /// Seconds: no loop could be counted.
    Second,
}

/// Where the loop is that a series counts: `in_loop` of a growth.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(into = "String")]
pub struct LoopPlace {
    /// What is counted.
    pub unit: LoopUnit,
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
    /// Of a loop that was counted.
    pub fn new(counted: &Loop) -> Self {
        let file = counted.file.rsplit(['/', '\\']).next();
        Self {
            unit: match counted.kind {
                LoopKind::Loop => LoopUnit::Iteration,
                LoopKind::Calls => LoopUnit::Call,
            },
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

    /// The line where it begins, in the text of its cell or file.
    pub(crate) fn header<'a>(&'a self, recording: &'a Recording, run: &'a Run) -> Option<&'a str> {
        let text = match self.execution_count {
            Some(number) => {
                let mut runs = recording.runs().iter().rev();
                let latest = runs.find(|it| it.execution_count == Some(number));
                latest.and_then(|it| recording.text(it))
            }
            None if self.file.is_empty() => recording.text(run),
            None => return Some(&*self.text).filter(|text| !text.is_empty()),
        };
        source_text::line(text?, self.line)
    }

    /// It is no statement, but a part of one: it ends by itself, and what it makes is wanted.
    pub(crate) fn is_comprehension(&self, recording: &Recording, run: &Run) -> bool {
        let is_statement = |line: &str| {
            let line = line.trim_start();
            let line = line.strip_prefix("async ").unwrap_or(line);
            let mut words = ["for", "while"].iter();
            words.any(|word| {
                let rest = line.strip_prefix(word);
                rest.is_some_and(|rest| !rest.starts_with(source_text::is_name_letter))
            })
        };
        let is_counted = self.unit == LoopUnit::Iteration;
        let header = self.header(recording, run).filter(|_| is_counted);
        self.function.ends_with("comp>") || header.is_some_and(|line| !is_statement(line))
    }

    /// Nowhere: seconds are counted.
    pub(crate) fn of_time() -> Self {
        Self {
            unit: LoopUnit::Second,
            ..Self::default()
        }
    }

    /// `line 3`, `line 3 of In [2]`, `line 88 of encoder.py`; of calls `explore`, of seconds `time`.
    pub fn name(&self) -> String {
        match self.unit {
            LoopUnit::Call if !self.function.is_empty() => return self.function.clone(),
            LoopUnit::Second => return "time".to_owned(),
            LoopUnit::Iteration | LoopUnit::Call | LoopUnit::Item => {}
        }
        match self.execution_count {
            Some(number) => format!("line {} of In [{number}]", self.line),
            None if self.file.is_empty() => format!("line {}", self.line),
            None => format!("line {} of {}", self.line, self.file),
        }
    }
}

impl From<LoopPlace> for String {
    fn from(place: LoopPlace) -> Self {
        place.name()
    }
}
