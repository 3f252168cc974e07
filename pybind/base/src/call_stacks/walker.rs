//! The Python stack of this thread, without running any code of the user's.

use std::collections::HashMap;
use std::sync::Mutex;

use gpumem_model::trace::StackIdx;
use pyo3::intern;
use pyo3::prelude::*;

use super::{MAX_FRAMES, Stacks};
use crate::locks::{lock, unpoisoned};
use crate::text::Text;

/// One frame: its code, by address, and the line it is at.
type CodeKey = (usize, u32);

/// Stacks as they are walked, each line of each code once.
///
/// A code object is kept as long as the walker, so that its address stays its own.
#[derive(Default)]
pub struct Walker(Mutex<WalkedStacks>);

#[derive(Default)]
struct WalkedStacks {
    stacks: Stacks,
    frames: HashMap<CodeKey, u32>,
    codes: HashMap<usize, Py<PyAny>>,
}

impl Walker {
    /// The stack that this thread is in. `None` where Python runs no code in it.
    pub fn stack(&self, py: Python<'_>) -> PyResult<Option<StackIdx>> {
        // Read before the lock is taken: whatever Python does meanwhile may come back here.
        let walked = walk(py)?;
        let known: Vec<Option<u32>> = {
            let seen = lock(&self.0);
            let keys = walked.iter().map(|(code, line)| key(code, *line));
            keys.map(|key| seen.frames.get(&key).copied()).collect()
        };
        let mut named = Vec::new();
        for ((code, _), known) in walked.iter().zip(&known) {
            named.push(match known {
                Some(_) => None,
                None => Some(names(code)?),
            });
        }
        let mut seen = lock(&self.0);
        let mut frames = Vec::with_capacity(walked.len());
        for (((code, line), known), named) in walked.into_iter().zip(known).zip(named) {
            let key = key(&code, line);
            let frame = match (known.or_else(|| seen.frames.get(&key).copied()), named) {
                (Some(frame), _) => frame,
                (None, Some((name, file))) => {
                    let frame = seen.stacks.frame(name, file, line);
                    seen.frames.insert(key, frame);
                    seen.codes.insert(key.0, code.unbind());
                    frame
                }
                (None, None) => continue,
            };
            frames.push(frame);
        }
        Ok(seen.stacks.stack(frames))
    }

    /// What was walked.
    pub fn into_stacks(self) -> Stacks {
        unpoisoned(self.0.into_inner()).stacks
    }
}

fn key(code: &Bound<'_, PyAny>, line: u32) -> CodeKey {
    (code.as_ptr() as usize, line)
}

/// Attributes of frames and codes are read by the interpreter itself.
fn walk(py: Python<'_>) -> PyResult<Vec<(Bound<'_, PyAny>, u32)>> {
    let Ok(mut frame) = py.import("sys")?.call_method0(intern!(py, "_getframe")) else {
        return Ok(Vec::new());
    };
    let mut walked = Vec::new();
    while !frame.is_none() && walked.len() < MAX_FRAMES {
        let line = frame.getattr(intern!(py, "f_lineno"))?.extract();
        walked.push((frame.getattr(intern!(py, "f_code"))?, line.unwrap_or(0)));
        frame = frame.getattr(intern!(py, "f_back"))?;
    }
    Ok(walked)
}

fn names(code: &Bound<'_, PyAny>) -> PyResult<(String, String)> {
    let py = code.py();
    let text = |name| code.getattr(name)?.extract::<Text>();
    let (name, file) = (intern!(py, "co_name"), intern!(py, "co_filename"));
    Ok((text(name)?.0, text(file)?.0))
}
