//! Which code is running: the frames of every thread, and of every task that waits.

use std::iter;

use pyo3::prelude::*;
use pyo3::types::PyDict;
use pyo3::{ffi, intern};

use gpumem_base::modules::imported;
use gpumem_objects::still::{Dict, Getter, Object, Section};
use gpumem_objects::walk;

/// No stack is followed further.
const MAX_FRAMES: usize = 512;

/// One frame: what runs, and where it stands.
pub(super) struct RunningCode {
    pub(super) code: Py<PyAny>,
    /// Bytes from the beginning of the code.
    pub(super) offset: u32,
}

impl RunningCode {
    /// The address of the code object, which is kept alive.
    pub(super) fn address(&self) -> usize {
        self.code.as_ptr() as usize
    }
}

/// The frames of one thread or task, the outermost first.
pub(super) struct Stack {
    /// Python's id of the thread; `None` for a task.
    pub(super) thread: Option<u64>,
    pub(super) frames: Vec<RunningCode>,
}

/// The stacks of all threads and of asyncio's tasks.
pub(super) fn stacks(py: Python<'_>) -> PyResult<Vec<Stack>> {
    let frames = walk::current_frames(py)?;
    let tasks = imported(py, "asyncio.tasks")?;
    Ok(Section::enter(py, false, |section| {
        let threads = section.object(frames.as_any()).dict();
        let threads: Vec<(Object<'_>, Object<'_>)> = threads.iter().flat_map(Dict::items).collect();
        let reader = threads
            .first()
            .and_then(|(_, frame)| FrameReader::new(frame));
        let Some(reader) = reader else {
            return Vec::new();
        };
        let of_thread = |(thread, innermost): (Object<'_>, Object<'_>)| {
            let mut frames: Vec<RunningCode> = reader.stack(innermost).collect();
            frames.reverse();
            Some(Stack {
                thread: Some(thread.number()?),
                frames,
            })
        };
        let of_threads = threads.into_iter().filter_map(of_thread);
        let mut stacks: Vec<Stack> = of_threads.collect();
        let tasks = tasks.and_then(|module| section.object(&module).globals());
        let coroutines = tasks.iter().flat_map(walk::waiting_tasks);
        stacks.extend(coroutines.map(|coroutine| Stack {
            thread: None,
            frames: reader.chain(coroutine).collect(),
        }));
        stacks
    }))
}

/// What C code reads of a frame.
struct FrameReader {
    back: Getter,
    offset: Getter,
}

impl FrameReader {
    fn new(frame: &Object<'_>) -> Option<Self> {
        let class = frame.class();
        Some(Self {
            back: class.getter("f_back")?,
            offset: class.getter("f_lasti")?,
        })
    }

    /// A frame, the one that called it, and so on.
    fn stack<'a, 's: 'a>(
        &'a self,
        innermost: Object<'s>,
    ) -> impl Iterator<Item = RunningCode> + use<'a, 's> {
        let back = |frame: &Object<'s>| self.back.get(frame).filter(|frame| !frame.is_none());
        let frames = iter::successors(Some(innermost), back);
        frames
            .take(MAX_FRAMES)
            .filter_map(|frame| self.read(&frame))
    }

    /// What a coroutine waits in, what that awaits, and so on.
    fn chain<'a, 's: 'a>(
        &'a self,
        coroutine: Object<'s>,
    ) -> impl Iterator<Item = RunningCode> + use<'a, 's> {
        let chain = iter::successors(Some(coroutine), awaited);
        chain.take(MAX_FRAMES).filter_map(|coroutine| {
            let frame = FRAMES.iter().find_map(|name| coroutine.read(name))?;
            self.read(&frame)
        })
    }

    fn read(&self, frame: &Object<'_>) -> Option<RunningCode> {
        if frame.is_none() {
            return None;
        }
        let offset = self.offset.get(frame)?.number()?;
        Some(RunningCode {
            code: frame.code_of_frame()?.unbind(),
            offset: u32::try_from(offset).ok()?,
        })
    }
}

const FRAMES: [&str; 3] = ["cr_frame", "ag_frame", "gi_frame"];
const AWAITED: [&str; 3] = ["cr_await", "ag_await", "gi_yieldfrom"];

/// A coroutine or generator that this one waits for. What steps an asynchronous generator, or wraps a
/// coroutine, refers to it and has no attribute that says so.
fn awaited<'s>(coroutine: &Object<'s>) -> Option<Object<'s>> {
    let found = AWAITED.iter().find_map(|name| coroutine.read(name))?;
    if has_frame(&found) {
        return Some(found);
    }
    found.referents().into_iter().find(has_frame)
}

fn has_frame(object: &Object<'_>) -> bool {
    let class = object.class();
    FRAMES.iter().any(|name| class.getter(name).is_some())
}

/// The addresses of the codes on this thread's stack, the outermost first.
#[expect(unsafe_code, reason = "the frame that is running")]
pub(super) fn own_codes(py: Python<'_>) -> PyResult<Vec<usize>> {
    // SAFETY: a borrowed reference, or null where no Python code runs.
    let innermost = unsafe { Bound::from_borrowed_ptr_or_opt(py, ffi::PyEval_GetFrame().cast()) };
    let mut codes = Vec::new();
    let mut frame = innermost;
    // Nothing inherits from frames: C code answers.
    while let Some(running) = frame.filter(|frame| !frame.is_none()) {
        // SAFETY: a frame, whose code is a new reference.
        let code = unsafe {
            Bound::from_owned_ptr(py, ffi::PyFrame_GetCode(running.as_ptr().cast()).cast())
        };
        codes.push(code.as_ptr() as usize);
        frame = Some(running.getattr(intern!(py, "f_back"))?);
    }
    codes.reverse();
    Ok(codes)
}

/// The numbers of the threads that `threading` knows.
pub(super) fn threads(py: Python<'_>) -> PyResult<Vec<u64>> {
    let Some(threading) = imported(py, "threading")? else {
        return Ok(Vec::new());
    };
    let active = threading.getattr(intern!(py, "_active"))?;
    let active = active.cast_into::<PyDict>()?;
    let numbers = active
        .iter()
        .filter_map(|(number, _)| number.extract().ok());
    Ok(numbers.collect())
}
