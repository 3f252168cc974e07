//! The subscriber to the recording's changes: an open report.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use gpumem_model::recording::{Changes, Frame};
use gpumem_model::units::Nanos;

use super::Recorder;

/// Wakes the one thread that waits for news. Notifying takes no lock: it is done inside the user's cell.
#[derive(Debug, Default)]
pub(crate) struct Notifier {
    waiting: OnceLock<Thread>,
    is_notified: AtomicBool,
    is_over: AtomicBool,
}

impl Notifier {
    /// There will be no more news.
    pub(crate) fn end(&self) {
        self.is_over.store(true, Ordering::Release);
        self.wake();
    }

    /// Waits until it is notified, no longer than `patience` where that is given, and for `pause` after
    /// that: there may be more. False where there will be no more news.
    pub(crate) fn wait(&self, patience: Option<Duration>, pause: Duration) -> bool {
        self.waiting.get_or_init(thread::current);
        let is_notified = || self.is_notified.load(Ordering::Acquire);
        self.sleep(patience, is_notified);
        self.sleep(Some(pause), || false);
        self.is_notified.store(false, Ordering::Release);
        !self.is_over()
    }

    fn sleep(&self, limit: Option<Duration>, is_enough: impl Fn() -> bool) {
        let began = Instant::now();
        while !self.is_over() && !is_enough() {
            match limit.map(|limit| limit.saturating_sub(began.elapsed())) {
                None => thread::park(),
                Some(Duration::ZERO) => return,
                Some(left) => thread::park_timeout(left),
            }
        }
    }

    fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Acquire)
    }

    fn notify(&self) {
        if !self.is_notified.swap(true, Ordering::AcqRel) {
            self.wake();
        }
    }

    fn wake(&self) {
        if let Some(thread) = self.waiting.get() {
            thread.unpark();
        }
    }
}

/// What the subscriber has not received yet.
#[derive(Debug)]
pub(super) struct Followed {
    changes: Changes,
    notifier: Arc<Notifier>,
}

impl Followed {
    /// Points alone wake nobody, for they come with every step of a loop: who follows comes for
    /// them as long as a run is open.
    pub(super) fn note(&mut self, frame: &Frame) {
        self.changes.note(frame);
        if !matches!(frame, Frame::Samples(_)) {
            self.notifier.notify();
        }
    }
}

impl Drop for Followed {
    fn drop(&mut self) {
        self.notifier.end();
    }
}

impl Recorder {
    /// Sends everything after the first `n_runs` runs from now on, instead of to whoever got it
    /// so far.
    pub(crate) fn follow(&mut self, n_runs: usize, notifier: Arc<Notifier>) {
        let mut changes = Changes::default();
        if self.recording.runs().len() > n_runs {
            changes = Changes::since(&self.recording, n_runs);
            notifier.notify();
        }
        self.followed = Some(Followed { changes, notifier });
    }

    /// The news for the owner of the notifier, if it is the subscriber.
    pub(crate) fn news(&mut self, notifier: &Arc<Notifier>) -> Option<Vec<Frame>> {
        let followed = self.followed.as_mut()?;
        Arc::ptr_eq(&followed.notifier, notifier).then(|| followed.changes.take(&self.recording))
    }

    pub(crate) fn unfollow(&mut self, notifier: &Arc<Notifier>) {
        self.followed
            .take_if(|followed| Arc::ptr_eq(&followed.notifier, notifier));
    }

    /// For how long the first of the open runs has gone on.
    pub(crate) fn open_for(&self) -> Option<Nanos> {
        let (first, _) = self.open.first_key_value()?;
        let started = self.recording.run(*first).started;
        Some(self.clock.now().since(started))
    }
}
