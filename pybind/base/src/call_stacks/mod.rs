//! Frames and stacks, each once: what a history's events point to.

mod walker;

use std::collections::HashMap;

use gpumem_model::trace::{History, StackFrame, StackIdx};

pub use walker::Walker;

/// The most frames of a stack; the innermost are kept.
pub const MAX_FRAMES: usize = 256;

/// The most distinct stacks; allocations under further ones have no stack.
const MAX_STACKS: usize = 1 << 16;

/// The frames and stacks of one history.
#[derive(Debug, Default)]
pub struct Stacks {
    frames: Vec<StackFrame>,
    found: Vec<Vec<u32>>,
    by_frames: HashMap<Vec<u32>, StackIdx>,
}

impl Stacks {
    /// Takes in a frame that was not seen before.
    pub fn frame(&mut self, name: String, file: String, line: u32) -> u32 {
        self.frames.push(StackFrame {
            name,
            file,
            line,
            ..StackFrame::default()
        });
        u32::try_from(self.frames.len() - 1).unwrap_or(u32::MAX)
    }

    /// The stack of these frames, innermost first.
    pub fn stack(&mut self, frames: Vec<u32>) -> Option<StackIdx> {
        if let Some(known) = self.by_frames.get(&frames) {
            return Some(*known);
        }
        if frames.is_empty() || self.found.len() == MAX_STACKS {
            return None;
        }
        let idx = StackIdx(u32::try_from(self.found.len()).ok()?);
        self.found.push(frames.clone());
        self.by_frames.insert(frames, idx);
        Some(idx)
    }

    /// Hands them to the history whose events point to them.
    pub fn into_history(self, history: &mut History) {
        history.frames = self.frames;
        history.stacks = self.found;
    }
}
