//! From the cell's thread to the store's: frames are copied and left. Only a line that is shown waits, for a moment.

use std::mem;
use std::process;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use gpumem_model::recording::{Frame, RunIdx};

use crate::recording::oom::observer;
use gpumem_base::locks::{lock, unpoisoned};
use gpumem_base::threads;
use gpumem_machine::sampler::SoFar;

/// The most frames that wait for a blocked disk; later ones are handed over again.
const MAX_WAITING: usize = 50_000;

/// That a cell has begun is on the disk soon: it may be the one that kills the kernel. Most cells
/// have ended by then, and are written at once.
pub(super) const PAUSE: Duration = Duration::from_millis(20);

/// The end of the cell's thread.
///
/// In a forked child its thread does not exist and its lock may be held by nobody: there every call
/// does nothing.
pub(crate) struct FrameQueue {
    pid: u32,
    shared: Arc<StoreShared>,
}

#[derive(Default)]
pub(super) struct StoreShared {
    queue: Mutex<Queue>,
    /// The store's thread has something to do.
    filled: Condvar,
    /// Frames are on the disk.
    stored: Condvar,
}

#[derive(Default)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each says another thing to the other thread"
)]
struct Queue {
    frames: Vec<Frame>,
    /// Other samples are to be watched from now on.
    watched: Option<WatchedRun>,
    n_handed: u64,
    n_stored: u64,
    /// Frames found no room.
    lacks_frames: bool,
    /// The store's thread sleeps until it is woken.
    is_asleep: bool,
    /// A run has begun.
    is_due_soon: bool,
    /// The store's thread looks by itself in a moment. Waking it would take longer than all else that
    /// a cell does here.
    looks_soon: bool,
    /// A thread waits for the queue to be written.
    is_urgent: bool,
    is_over: bool,
    has_ended: bool,
    /// The file was lost: all frames are to be handed over again.
    wants_all: bool,
    state: StoreState,
}

/// The samples of a run that is under way.
#[derive(Clone)]
pub(super) struct WatchedRun {
    pub(super) run: RunIdx,
    pub(super) so_far: SoFar,
    /// Where the run stood among the out-of-memory errors when it began.
    pub(super) ooms: observer::OomMark,
    /// Names of variables may be kept.
    pub(super) keeps_names: bool,
}

/// What has become of the store.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct StoreState {
    /// Where the session is kept, once it is.
    pub(crate) path: Option<String>,
    /// Why it is not kept now.
    pub(crate) trouble: Option<String>,
    /// What happened to the file, though the session is kept.
    pub(crate) note: Option<String>,
    /// Trouble and note have been said.
    pub(crate) is_said: bool,
}

/// What the store's thread takes out of the queue.
pub(super) struct Batch {
    pub(super) frames: Vec<Frame>,
    pub(super) watched: Option<WatchedRun>,
    pub(super) n_handed: u64,
    /// Others found no room.
    pub(super) lacks_frames: bool,
    pub(super) is_over: bool,
}

impl FrameQueue {
    pub(super) fn new(shared: Arc<StoreShared>) -> Self {
        Self {
            pid: process::id(),
            shared,
        }
    }

    /// Leaves a frame to be kept. True where all frames have to be left again.
    pub(crate) fn note(&self, frame: &Frame) -> bool {
        let _timed = Timed::new(&HANDING);
        let mut wants_all = false;
        if self.is_here() {
            let mut queue = lock(&self.shared.queue);
            wants_all = mem::take(&mut queue.wants_all);
            if queue.frames.len() < MAX_WAITING {
                queue.frames.push(frame.clone());
                queue.n_handed += 1;
            } else {
                queue.lacks_frames = true;
            }
            let begins =
                matches!(frame, Frame::Run(run) if run.ended.is_none() && run.parent.is_none());
            if begins && !queue.is_due_soon && !queue.looks_soon {
                queue.is_due_soon = true;
                drop(queue);
                self.shared.filled.notify_one();
            } else {
                self.wake(queue);
            }
        }
        wants_all
    }

    /// Keeps what is sampled in a run while it is under way.
    pub(crate) fn watch(&self, run: RunIdx, so_far: SoFar, keeps_names: bool) {
        let _timed = Timed::new(&HANDING);
        if self.is_here() {
            let watched = WatchedRun {
                run,
                so_far,
                ooms: observer::mark(),
                keeps_names,
            };
            let mut queue = lock(&self.shared.queue);
            queue.watched = Some(watched);
            self.wake(queue);
        }
    }

    /// Requests that pending frames are written soon, without waiting.
    pub(crate) fn hurry(&self) {
        let _timed = Timed::new(&HANDING);
        if self.is_here() {
            let mut queue = lock(&self.shared.queue);
            queue.is_urgent = queue.n_stored < queue.n_handed;
            if queue.is_urgent && !queue.looks_soon && !queue.is_due_soon {
                drop(queue);
                self.shared.filled.notify_one();
            }
        }
    }

    /// A handle with which to wait for what was left until now; `None` if all of it is kept already.
    pub(crate) fn unfinished(&self) -> Option<Unfinished> {
        if !self.is_here() {
            return None;
        }
        let mut queue = lock(&self.shared.queue);
        queue.is_urgent = queue.n_stored < queue.n_handed;
        let is_stored = !queue.is_urgent || queue.state.trouble.is_some();
        let n_handed = queue.n_handed;
        drop(queue);
        (!is_stored).then(|| {
            self.shared.filled.notify_one();
            Unfinished {
                shared: Arc::clone(&self.shared),
                n_handed,
            }
        })
    }

    /// The session is over: its file is closed. The handle waits for that.
    pub(crate) fn end(&self) -> Option<Unfinished> {
        if !self.is_here() {
            return None;
        }
        let mut queue = lock(&self.shared.queue);
        queue.is_over = true;
        drop(queue);
        self.shared.filled.notify_one();
        Some(Unfinished {
            shared: Arc::clone(&self.shared),
            n_handed: u64::MAX,
        })
    }

    pub(crate) fn state(&self) -> StoreState {
        if self.is_here() {
            lock(&self.shared.queue).state.clone()
        } else {
            StoreState::default()
        }
    }

    /// Why the session is not kept, or what happened to its file, the first time that this is called.
    pub(crate) fn take_trouble(&self) -> Option<String> {
        if !self.is_here() {
            return None;
        }
        let state = &mut lock(&self.shared.queue).state;
        let words = state.trouble.as_ref().or(state.note.as_ref());
        let words = words.filter(|_| !state.is_said)?.clone();
        state.is_said = true;
        Some(words)
    }

    /// Most frames find it awake, or asleep for half a second at most.
    fn wake(&self, queue: MutexGuard<'_, Queue>) {
        if queue.is_asleep {
            drop(queue);
            self.shared.filled.notify_one();
        }
    }

    fn is_here(&self) -> bool {
        self.pid == process::id()
    }
}

impl Drop for FrameQueue {
    fn drop(&mut self) {
        // Do not wait: the thread ends by itself.
        self.end();
    }
}

/// Frames that are not on the disk yet.
pub(crate) struct Unfinished {
    shared: Arc<StoreShared>,
    n_handed: u64,
}

impl Unfinished {
    /// Waits until they are, or until there is trouble.
    pub(crate) fn wait(&self, patience: Duration) {
        let _timed = Timed::new(&WAITING);
        let until = Instant::now() + patience;
        let mut queue = lock(&self.shared.queue);
        while queue.n_stored < self.n_handed && !queue.has_ended {
            let is_stuck = queue.state.trouble.is_some() && self.n_handed < u64::MAX;
            let left = until.saturating_duration_since(Instant::now());
            if is_stuck || left.is_zero() {
                return;
            }
            (queue, _) = unpoisoned(self.shared.stored.wait_timeout(queue, left));
        }
    }
}

impl StoreShared {
    pub(super) fn wake_up(&self) {
        drop(lock(&self.queue));
        self.filled.notify_all();
    }

    /// Takes what is there, and waits for it first: no longer than `patience` where that is given.
    pub(super) fn take(&self, patience: Option<Duration>) -> Batch {
        let mut until = patience.map(|patience| Instant::now() + patience);
        let mut queue = lock(&self.queue);
        while !queue.is_over && !queue.is_urgent && !threads::are_paused() {
            if mem::take(&mut queue.is_due_soon) {
                let soon = Instant::now() + PAUSE;
                until = Some(until.map_or(soon, |until| until.min(soon)));
            }
            let left = until.map(|until| until.saturating_duration_since(Instant::now()));
            queue = match left {
                None if !queue.frames.is_empty() || queue.watched.is_some() => break,
                None => {
                    queue.is_asleep = true;
                    let mut queue = unpoisoned(self.filled.wait(queue));
                    queue.is_asleep = false;
                    queue
                }
                Some(Duration::ZERO) => break,
                Some(left) => {
                    queue.looks_soon = left <= PAUSE;
                    let (mut queue, _) = unpoisoned(self.filled.wait_timeout(queue, left));
                    queue.looks_soon = false;
                    queue
                }
            };
        }
        queue.is_urgent = false;
        queue.is_due_soon = false;
        Batch {
            frames: mem::take(&mut queue.frames),
            watched: queue.watched.take(),
            n_handed: queue.n_handed,
            lacks_frames: mem::take(&mut queue.lacks_frames),
            is_over: queue.is_over,
        }
    }

    /// Everything up to the `n`th frame is on the disk, at this path.
    pub(super) fn note_stored(&self, n: u64, path: String) {
        let mut queue = lock(&self.queue);
        queue.n_stored = n;
        let state = &mut queue.state;
        if state.trouble.take().is_some() {
            // Should it come back, it is news.
            state.is_said = false;
        }
        state.path = Some(path);
        drop(queue);
        self.stored.notify_all();
    }

    /// Nothing is written for now; or no more.
    pub(super) fn note_trouble(&self, words: &str) {
        let mut queue = lock(&self.queue);
        let state = &mut queue.state;
        if state.trouble.as_deref() != Some(words) {
            state.trouble = Some(words.to_owned());
            state.is_said = false;
        }
        drop(queue);
        self.stored.notify_all();
    }

    /// What happened to the file, though the session is kept.
    pub(super) fn note_lost(&self, words: String) {
        let state = &mut lock(&self.queue).state;
        (state.note, state.is_said) = (Some(words), false);
    }

    /// With the next frame all others come again.
    pub(super) fn want_all(&self) {
        lock(&self.queue).wants_all = true;
    }

    pub(super) fn note_end(&self) {
        lock(&self.queue).has_ended = true;
        self.stored.notify_all();
    }
}

/// What cells have spent on handing over and on waiting, in nanoseconds: what a benchmark reads.
static HANDING: AtomicU64 = AtomicU64::new(0);
static WAITING: AtomicU64 = AtomicU64::new(0);

/// Adds the time until it is dropped.
struct Timed {
    began: Instant,
    sum: &'static AtomicU64,
}

impl Timed {
    fn new(sum: &'static AtomicU64) -> Self {
        Self {
            began: Instant::now(),
            sum,
        }
    }
}

impl Drop for Timed {
    fn drop(&mut self) {
        let nanos = u64::try_from(self.began.elapsed().as_nanos()).unwrap_or(u64::MAX);
        self.sum.fetch_add(nanos, Ordering::Relaxed);
    }
}

/// Nanoseconds that cells have spent on handing over, and on waiting for a line's run to be kept.
#[pyo3::pyfunction]
pub(crate) fn store_nanos() -> (u64, u64) {
    let read = |sum: &AtomicU64| sum.load(Ordering::Relaxed);
    (read(&HANDING), read(&WAITING))
}
