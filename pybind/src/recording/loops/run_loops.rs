//! What is counted in the open run: the codes, their loops, and how these lie in each other.

use std::fs;
use std::time::Instant;

use gpumem_model::recording::{FrameOrigin, Loop, LoopIdx, LoopKind};
use gpumem_model::trace::StackFrame;
use gpumem_process::bytecode::CodeLoop;
use gpumem_readers::code_line;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;

use super::bytecode;
use super::count::{self, LoopStart, MAX_LOOPS, MAX_PLACES};
use super::stacks::{self, RunningCode, Stack};
use super::tool::{Monitoring, Tool};
use crate::recording::session::RunId;
use gpumem_base::text::Text;
use gpumem_objects::walk;

/// The most code objects that are examined in a run.
const MAX_CODES: usize = 512;

/// What is counted in the open run.
pub(super) struct RunLoops {
    pub(super) run: RunId,
    began: Instant,
    monitoring: &'static Monitoring,
    tool: Option<Tool>,
    /// Every id was in use, or other code has taken gpumem's.
    has_no_tool: bool,
    /// Whether holders are searched during the run.
    pub(super) has_looks: bool,
    /// The thread that began the run, and the codes that were on its stack then.
    pub(super) thread: u64,
    codes_before: Vec<usize>,
    threads_before: Vec<u64>,
    codes: Vec<CodeObject>,
    loops: Vec<ActiveLoop>,
    n_places: usize,
    /// Where each thread stood at the last look.
    stood: Vec<(u64, Vec<FramePosition>)>,
}

/// A code object that was on a stack, which is kept until the run is over.
struct CodeObject {
    object: Py<PyAny>,
    frame: StackFrame,
    is_library: bool,
    is_placed: bool,
    /// With their numbers.
    loops: Vec<(usize, CodeLoop)>,
    /// The number of its calls, if they are counted.
    calls: Option<usize>,
}

struct ActiveLoop {
    kind: LoopKind,
    code_idx: usize,
    /// As compiled.
    line: u32,
    /// The text of that line, once it is read.
    text: Option<String>,
    parent: Option<usize>,
    from: Instant,
    was_running: bool,
    /// It turns. Of calls that is not known from the first.
    is_confirmed: bool,
    /// The count that was recorded last.
    recorded: Option<u64>,
}

pub(super) struct UnplacedCode {
    code_idx: usize,
    pub(super) frame: StackFrame,
}

/// Where a frame stood at a look.
#[derive(PartialEq, Eq)]
struct FramePosition {
    code: usize,
    offset: u32,
    /// How often the loops around that place had turned, and the function had been called.
    n_turns: u64,
    n_calls: u64,
}

impl RunLoops {
    pub(super) fn new(
        py: Python<'_>,
        run: RunId,
        began: Instant,
        has_looks: bool,
        monitoring: &'static Monitoring,
    ) -> PyResult<Self> {
        Ok(Self {
            run,
            began,
            has_looks,
            monitoring,
            tool: None,
            has_no_tool: false,
            thread: walk::own_thread(),
            codes_before: stacks::own_codes(py)?,
            threads_before: stacks::threads(py)?,
            codes: Vec::new(),
            loops: Vec::new(),
            n_places: 0,
            stood: Vec::new(),
        })
    }

    pub(super) fn is_armed(&self) -> bool {
        self.tool.is_some()
    }

    /// Starts counting the loops of the code that runs now.
    pub(super) fn arm(&mut self, py: Python<'_>, stacks: &[Stack]) -> PyResult<()> {
        if self.has_no_tool {
            return Ok(());
        }
        match &self.tool {
            Some(tool) if !tool.is_ours(py) => {
                self.tool = None;
                self.has_no_tool = true;
                return Ok(());
            }
            Some(_) => {}
            None => {
                self.tool = Tool::take(py, self.monitoring)?;
                self.has_no_tool = self.tool.is_none();
                if self.has_no_tool {
                    return Ok(());
                }
                count::begin(self.began);
            }
        }
        let before = std::mem::take(&mut self.stood);
        let mut begun = stacks::threads(py)?;
        begun.retain(|thread| !self.threads_before.contains(thread));
        for stack in stacks {
            let frames = self.of_run(py, stack, &begun)?;
            let before = before
                .iter()
                .find(|(thread, _)| Some(*thread) == stack.thread);
            let before = before.map_or(&[][..], |(_, stood)| stood);
            let stood = self.arm_stack(py, frames, before)?;
            self.stood
                .extend(stack.thread.map(|thread| (thread, stood)));
        }
        self.resume(py)
    }

    /// Of a stack the frames that are the run's: on its own thread from where it began, on one that began
    /// since all of them, and on any other from the user's code on. Which thread `threading` did not begin is
    /// a library's, and may have been there before.
    fn of_run<'a>(
        &self,
        py: Python<'_>,
        stack: &'a Stack,
        begun: &[u64],
    ) -> PyResult<&'a [RunningCode]> {
        let frames = stack.frames.as_slice();
        let frames = match stack.thread {
            Some(thread) if thread == self.thread => {
                let before = self.codes_before.iter();
                let same = frames
                    .iter()
                    .zip(before)
                    .take_while(|(now, before)| now.address() == **before);
                // The innermost of them may have begun the run.
                &frames[same.count().saturating_sub(1)..]
            }
            Some(thread) if begun.contains(&thread) => return Ok(frames),
            _ => frames,
        };
        for (position, frame) in frames.iter().enumerate() {
            if code_line::is_users(&file_of(frame.code.bind(py))?) {
                return Ok(&frames[position..]);
            }
        }
        Ok(&[])
    }

    /// Counts the loops of the code on one stack, and the calls of functions that no loop of Python's
    /// calls again: of one that is on the stack twice, and of one whose callers all stand where they
    /// stood at the last look.
    fn arm_stack(
        &mut self,
        py: Python<'_>,
        frames: &[RunningCode],
        before: &[FramePosition],
    ) -> PyResult<Vec<FramePosition>> {
        let mut around: Option<usize> = None;
        // The codes of this stack, each with what is around its first call.
        let mut entered: Vec<(usize, Option<usize>)> = Vec::new();
        let mut stood: Vec<FramePosition> = Vec::new();
        let mut are_callers_same = true;
        let mut in_import = false;
        for (position, frame) in frames.iter().enumerate() {
            let before = before.get(position).filter(|it| it.code == frame.address());
            are_callers_same &= before.is_some();
            let known = self.known(frame);
            in_import |= known.is_none() && is_of_import(&file_of(frame.code.bind(py))?);
            let code_idx = match known {
                None => self.add(py, frame, around, in_import)?,
                known => known,
            };
            let Some(code_idx) = code_idx else {
                stood.push(FramePosition::new(frame, 0, 0));
                continue;
            };
            let earlier = entered.iter().find(|(code, _)| *code == frame.address());
            if let Some((_, around)) = earlier {
                self.count_calls(py, code_idx, *around)?;
                self.confirm_calls(code_idx);
            } else if are_callers_same && position > 0 && self.codes[code_idx].calls.is_none() {
                // The next look shows whether it is called again.
                self.count_calls(py, code_idx, around)?;
                are_callers_same = false;
            }
            entered.push((frame.address(), around));
            let code = &self.codes[code_idx];
            let turning = code.turning(frame.offset);
            let n_turns = turning.iter().map(|idx| count::count(*idx).n).sum();
            let n_calls = code.calls.map_or(0, |idx| count::count(idx).n);
            around = turning.last().copied().or(code.calls).or(around);
            let now = FramePosition::new(frame, n_turns, n_calls);
            if are_callers_same && before.is_some_and(|before| now.n_calls > before.n_calls) {
                self.confirm_calls(code_idx);
            }
            are_callers_same &= before.is_some_and(|before| now == *before);
            stood.push(now);
        }
        Ok(stood)
    }

    fn known(&self, frame: &RunningCode) -> Option<usize> {
        self.codes
            .iter()
            .position(|it| it.object.as_ptr() as usize == frame.address())
    }

    /// Counts the loops of a code from now on. `None` where there is no room, and of what a library does within an
    /// import.
    fn add(
        &mut self,
        py: Python<'_>,
        frame: &RunningCode,
        around: Option<usize>,
        in_import: bool,
    ) -> PyResult<Option<usize>> {
        let code = frame.code.bind(py);
        let file = file_of(code)?;
        let is_library = !code_line::is_users(&file);
        let is_of_modules = in_import && is_library;
        if self.codes.len() == MAX_CODES || is_of_modules || is_ours(py, &file)? {
            return Ok(None);
        }
        let found = bytecode::loops_of(code, self.monitoring.opcodes)?;
        let n_heads = found.iter().map(|it| it.heads.len()).sum::<usize>();
        // Room is left for calls.
        if self.loops.len() + found.len() > MAX_LOOPS || self.n_places + n_heads > MAX_PLACES {
            return Ok(None);
        }
        let code_idx = self.codes.len();
        let first = self.loops.len();
        let mut loops: Vec<(usize, CodeLoop)> = Vec::new();
        for found in found {
            let parent = loops.iter().rev().find(|(_, it)| it.contains(found.first));
            let start = LoopStart {
                is_library,
                was_running: found.contains(frame.offset),
            };
            let idx = first + loops.len();
            count::add_loop(idx, frame.address(), &found.heads, start);
            self.loops.push(ActiveLoop {
                kind: LoopKind::Loop,
                code_idx,
                line: found.line,
                text: None,
                parent: parent.map(|(idx, _)| *idx).or(around),
                from: Instant::now(),
                was_running: start.was_running,
                is_confirmed: true,
                recorded: None,
            });
            loops.push((idx, found));
        }
        self.n_places += n_heads;
        let Text(function) = code.getattr(intern!(py, "co_qualname"))?.extract()?;
        self.codes.push(CodeObject {
            object: frame.code.clone_ref(py),
            frame: StackFrame {
                name: function,
                file,
                ..StackFrame::default()
            },
            is_library,
            is_placed: false,
            loops,
            calls: None,
        });
        self.watch(py, code_idx)?;
        Ok(Some(code_idx))
    }

    fn count_calls(
        &mut self,
        py: Python<'_>,
        code_idx: usize,
        around: Option<usize>,
    ) -> PyResult<()> {
        let code = &mut self.codes[code_idx];
        let idx = self.loops.len();
        if code.calls.is_some() || idx == MAX_LOOPS || self.n_places == MAX_PLACES {
            return Ok(());
        }
        let start = LoopStart {
            is_library: code.is_library,
            was_running: true,
        };
        count::add_calls(idx, code.object.as_ptr() as usize, start);
        code.calls = Some(idx);
        self.n_places += 1;
        let line = code.object.getattr(py, intern!(py, "co_firstlineno"))?;
        self.loops.push(ActiveLoop {
            kind: LoopKind::Calls,
            code_idx,
            line: line.extract(py)?,
            text: None,
            parent: around,
            from: Instant::now(),
            was_running: true,
            is_confirmed: false,
            recorded: None,
        });
        self.watch(py, code_idx)
    }

    /// What is called again and again is a loop, too.
    fn confirm_calls(&mut self, code_idx: usize) {
        if let Some(idx) = self.codes[code_idx].calls {
            self.loops[idx].is_confirmed = true;
            count::confirm(idx);
        }
    }

    /// Switches on the events of one code.
    fn watch(&self, py: Python<'_>, code_idx: usize) -> PyResult<()> {
        let code = &self.codes[code_idx];
        let (jumps, calls) = (!code.loops.is_empty(), code.calls.is_some());
        match &self.tool {
            Some(tool) if jumps || calls => tool.watch(code.object.bind(py), jumps, calls),
            _ => Ok(()),
        }
    }

    /// Counts loops for a moment again that turned too fast to be counted all the time.
    fn resume(&self, py: Python<'_>) -> PyResult<()> {
        for (code_idx, code) in self.codes.iter().enumerate() {
            let loops = code.loops.iter().map(|(idx, _)| *idx).chain(code.calls);
            let off: Vec<usize> = loops.clone().filter(|idx| count::is_off(*idx)).collect();
            if off.is_empty() {
                continue;
            }
            if let Some(tool) = &self.tool {
                // What a callback has switched off comes back with the events as a whole.
                tool.watch(code.object.bind(py), false, false)?;
            }
            off.into_iter().for_each(count::resume);
            self.watch(py, code_idx)?;
        }
        Ok(())
    }

    /// No events any more.
    pub(super) fn disarm(&mut self, py: Python<'_>) -> PyResult<()> {
        let Some(tool) = self.tool.take() else {
            return Ok(());
        };
        self.has_no_tool = true;
        (0..self.loops.len()).for_each(count::end);
        if !tool.is_ours(py) {
            return Ok(());
        }
        let watched = self.codes.iter();
        let watched = watched.filter(|code| !code.loops.is_empty() || code.calls.is_some());
        let off = watched.map(|code| tool.watch(code.object.bind(py), false, false));
        // One that fails keeps none of the others.
        let off = off.fold(Ok(()), PyResult::and);
        tool.give_back(py).and(off)
    }

    pub(super) fn unplaced(&mut self) -> Vec<UnplacedCode> {
        let codes = self.codes.iter_mut().enumerate();
        let codes = codes.filter(|(_, code)| !code.is_placed);
        codes
            .map(|(code_idx, code)| {
                code.is_placed = true;
                UnplacedCode {
                    code_idx,
                    frame: code.frame.clone(),
                }
            })
            .collect()
    }

    pub(super) fn take_places(&mut self, placed: Vec<UnplacedCode>) {
        for UnplacedCode { code_idx, frame } in placed {
            self.codes[code_idx].frame = frame;
        }
    }

    /// The loops whose counts have changed since they were recorded, and those around them.
    pub(super) fn news(&mut self) -> Vec<(Instant, Instant, Loop)> {
        let mut news = Vec::new();
        let mut is_around = vec![false; self.loops.len()];
        // What is around a loop has a lower number.
        for idx in (0..self.loops.len()).rev() {
            let counted = &mut self.loops[idx];
            let count = count::count(idx);
            let is_known = (counted.is_confirmed && count.n > 0) || is_around[idx];
            if !is_known {
                continue;
            }
            if let Some(parent) = counted.parent {
                is_around[parent] = true;
            }
            if counted.recorded.replace(count.n) == Some(count.n) {
                continue;
            }
            let code = &self.codes[counted.code_idx];
            if code.frame.origin == FrameOrigin::File && count::has_series(idx) {
                let line = || line_of(&code.frame.file, counted.line + code.frame.line);
                counted
                    .text
                    .get_or_insert_with(|| line().unwrap_or_default());
            }
            let of_run = Loop {
                idx: LoopIdx(idx as u32),
                parent: counted.parent.map(|idx| LoopIdx(idx as u32)),
                kind: counted.kind,
                origin: code.frame.origin,
                file: code.frame.file.clone(),
                line: counted.line + code.frame.line,
                text: counted.text.clone().unwrap_or_default(),
                function: code.frame.name.clone(),
                is_library: code.is_library,
                n_iterations: count.n,
                is_estimate: count.is_estimate,
                was_running: counted.was_running,
                n_marks: count.n_marks,
                ..Loop::default()
            };
            news.push((counted.from, count.last, of_run));
        }
        news.reverse();
        news
    }
}

impl CodeObject {
    /// The loops that are under way where the code stands, the outermost first.
    fn turning(&self, offset: u32) -> Vec<usize> {
        let loops = self.loops.iter().filter(|(_, it)| it.contains(offset));
        loops.map(|(idx, _)| *idx).collect()
    }
}

impl FramePosition {
    fn new(frame: &RunningCode, n_turns: u64, n_calls: u64) -> Self {
        Self {
            code: frame.address(),
            offset: frame.offset,
            n_turns,
            n_calls,
        }
    }
}

/// The line of a file in which a loop or a function begins. One that was edited since it was imported has
/// something else there.
fn line_of(file: &str, line: u32) -> Option<String> {
    const LARGEST: u64 = 4 << 20;
    let about = fs::metadata(file).ok()?;
    if !about.is_file() || about.len() > LARGEST {
        return None;
    }
    let content = fs::read(file).ok()?;
    let line = content
        .split(|byte| *byte == b'\n')
        .nth(line.checked_sub(1)? as usize)?;
    let line = String::from_utf8_lossy(line).trim().to_owned();
    let is_header = line
        .split(|letter: char| !letter.is_alphabetic())
        .any(|word| matches!(word, "for" | "while" | "def" | "lambda"));
    is_header.then_some(line)
}

fn file_of(code: &Bound<'_, PyAny>) -> PyResult<String> {
    let Text(file) = code.getattr(intern!(code.py(), "co_filename"))?.extract()?;
    Ok(file)
}

/// Whether code is of Python's import: what modules keep is meant, and no name has it.
fn is_of_import(file: &str) -> bool {
    file.starts_with("<frozen importlib")
}

/// Whether code is of this package.
fn is_ours(py: Python<'_>, file: &str) -> PyResult<bool> {
    static FOLDER: PyOnceLock<String> = PyOnceLock::new();
    let folder = FOLDER.get_or_try_init(py, || {
        let package = py.import("gpumem")?.getattr("__file__")?;
        let Text(file) = package.extract()?;
        PyResult::Ok(file.strip_suffix("__init__.py").unwrap_or(&file).to_owned())
    })?;
    Ok(file.starts_with(folder.as_str()))
}
