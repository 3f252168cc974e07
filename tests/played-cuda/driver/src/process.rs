//! What this process has of the driver.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};

use played_machine::{Device, State, visible};

use crate::calls::Answer;
use crate::code::Code;
use crate::contexts::Contexts;
use crate::events::Event;
use crate::functions::{Function, Module};
use crate::graphs::{Capture, Graph, GraphExec, NodeKind};
use crate::handles::Handles;
use crate::memory::{Areas, Physical, Pool};
use crate::streams::Stream;

/// Everything that calls made, in one place: no call is so frequent that it would matter.
#[derive(Default)]
pub(crate) struct Process {
    /// The devices by CUDA's numbers.
    pub(crate) devices: Vec<Device>,
    pub(crate) contexts: Contexts,
    pub(crate) streams: Handles<Stream>,
    pub(crate) events: Handles<Event>,
    pub(crate) captures: Handles<Capture>,
    pub(crate) graphs: Handles<Graph>,
    pub(crate) nodes: Handles<NodeKind>,
    pub(crate) graph_execs: Handles<GraphExec>,
    pub(crate) modules: Handles<Module>,
    pub(crate) functions: Handles<Function>,
    pub(crate) areas: Areas,
    pub(crate) physical: Handles<Physical>,
    pub(crate) pools: Handles<Pool>,
}

/// The process that initialised the driver; 0 if none did.
static INITIALISED_BY: AtomicU32 = AtomicU32::new(0);

/// The process's objects, once it has initialised the driver.
pub(crate) fn process() -> Result<MutexGuard<'static, Process>, Code> {
    initialised()?;
    Ok(locked())
}

/// An error until this process has initialised the driver. As the real one does, the
/// driver refuses a child that was forked from such a process.
pub(crate) fn initialised() -> Answer {
    let is_own = INITIALISED_BY.load(Ordering::SeqCst) == std::process::id();
    is_own.then_some(()).ok_or(Code::NOT_INITIALIZED)
}

fn locked() -> MutexGuard<'static, Process> {
    static PROCESS: LazyLock<Mutex<Process>> = LazyLock::new(Mutex::default);
    PROCESS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Starts the driver: from now on the environment may say what it will.
pub(crate) fn initialise(state: &State) -> Result<(), Code> {
    match INITIALISED_BY.load(Ordering::SeqCst) {
        0 => {}
        by if by == std::process::id() => return Ok(()),
        _ => return Err(Code::NOT_INITIALIZED),
    }
    let mut process = locked();
    process.devices = visible(state);
    if process.devices.is_empty() {
        return Err(Code::NO_DEVICE);
    }
    INITIALISED_BY.store(std::process::id(), Ordering::SeqCst);
    Ok(())
}

impl Process {
    /// The device that CUDA gives a number.
    pub(crate) fn device(&self, ordinal: i32) -> Result<Device, Code> {
        let idx = usize::try_from(ordinal).map_err(|_| Code::INVALID_DEVICE)?;
        self.devices.get(idx).copied().ok_or(Code::INVALID_DEVICE)
    }
}
