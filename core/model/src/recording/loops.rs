//! A loop that was counted while its run went on.

use super::{LoopIdx, RunIdx};
use crate::named;
use crate::units::Nanos;

named! {
    /// What comes round again and again.
    #[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
    pub enum LoopKind {
        /// A `for`, a `while`, or a comprehension: its iterations are counted where they end.
        #[default]
        Loop = "loop",
        /// A function that calls itself, or that code without a Python loop calls again and again: its
        /// calls are counted where they begin.
        Calls = "calls",
    }
}

/// A loop that was counted while its run went on. Its levels are the points of
/// [`Series::Loop`](super::Series::Loop).
///
/// ```
/// use gpumem_model::recording::{Cell, Frame, Loop, LoopIdx, Recording, Run, RunIdx};
///
/// let mut recording = Recording::default();
/// recording.apply(Frame::Cell(Cell::default()))?;
/// recording.apply(Frame::Run(Run::default()))?;
/// for n_iterations in [12, 40] {
///     let counted = Loop { line: 1, n_iterations, ..Loop::default() };
///     recording.apply(Frame::Loop(Box::new(counted)))?;
/// }
/// let counted: Vec<u64> = recording.loops(RunIdx(0)).map(|it| it.n_iterations).collect();
/// assert_eq!(counted, [40], "the newer state takes the place of the older one");
/// # Ok::<(), gpumem_model::recording::FrameError>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Loop {
    /// The run, which is nested in no other.
    pub run: RunIdx,
    /// Its number in the run.
    pub idx: LoopIdx,
    /// The loop around it, in its own function or in one that calls it.
    pub parent: Option<LoopIdx>,
    /// What it is.
    pub kind: LoopKind,
    /// Where its code is.
    pub origin: FrameOrigin,
    /// Its file; empty in a cell.
    pub file: String,
    /// The line of its header, in a cell in the text as typed.
    pub line: u32,
    /// That line in a file, as far as its levels are read; empty in a cell, whose text the recording has.
    pub text: String,
    /// The function as Python qualifies it: `Trainer.train`; `<module>` outside of any.
    pub function: String,
    /// Its code is part of Python or of an installed package.
    pub is_library: bool,
    /// How many iterations ended, or calls began, since it is counted.
    pub n_iterations: u64,
    /// It turns too fast to be counted all the time.
    pub is_estimate: bool,
    /// It was under way when counting began: earlier iterations are not known.
    pub was_running: bool,
    /// Since the recording's start: when counting began.
    pub counted_from: Nanos,
    /// Since the recording's start: when the last iteration ended, as far as that was looked up.
    pub last_at: Nanos,
    /// How many marks the user's code set in the iterations that were counted.
    pub n_marks: u64,
}

/// Where the code of a frame is: [`StackFrame::origin`](crate::trace::StackFrame::origin).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum FrameOrigin {
    /// In the cell of this run.
    Own,
    /// In the cell with that execution count.
    Cell(u32),
    /// In a file.
    #[default]
    File,
}
