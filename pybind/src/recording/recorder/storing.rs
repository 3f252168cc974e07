//! What keeps the recording on the disk.

use gpumem_model::recording::{Finish, Frame, RunIdx};

use super::{Recorder, SourceText};
use crate::recording::store::{self, FrameQueue, SessionOrigin, StoreSetting};
use gpumem_machine::sampler::SoFar;

/// Nothing is written before the first run: a session without runs leaves no file.
#[derive(Default)]
pub(super) struct Storing {
    setting: StoreSetting,
    origin: SessionOrigin,
    queue: Option<FrameQueue>,
}

impl Storing {
    /// Hands a frame on. True where storing has to begin with it, or to begin again.
    pub(super) fn takes(&self, frame: &Frame) -> bool {
        match &self.queue {
            Some(queue) => queue.note(frame),
            None => self.setting != StoreSetting::Off && matches!(frame, Frame::Run(_)),
        }
    }
}

impl Recorder {
    /// Keeps the session there from now on, with what has been recorded already.
    pub(crate) fn keep_in(&mut self, setting: StoreSetting, origin: SessionOrigin) {
        let storing = &mut self.storing;
        storing.origin = origin;
        if storing.setting != setting {
            storing.setting = setting;
            storing.queue = None;
            if !self.recording.runs().is_empty() {
                self.begin_storing();
            }
        }
    }

    /// Where the session is kept, and for whom.
    pub(crate) fn kept_in(&self) -> (StoreSetting, SessionOrigin) {
        (self.storing.setting.clone(), self.storing.origin.clone())
    }

    /// What hands the session over to the disk, if it is kept.
    pub(crate) fn queue(&self) -> Option<&FrameQueue> {
        self.storing.queue.as_ref()
    }

    /// What is sampled in a run from now on is kept while the run is under way; of one run at a time.
    pub(crate) fn store_watches(&self, run: RunIdx, so_far: SoFar) {
        if let Some(queue) = &self.storing.queue {
            queue.watch(run, so_far, self.source_text == SourceText::Full);
        }
    }

    /// The same of a run that began a while ago.
    pub(crate) fn store_watches_again(&mut self, run: RunIdx, so_far: SoFar) {
        self.store_watches(run, so_far);
        // The store needs the run of the samples again.
        self.emit(Frame::Run(self.recording.run(run).clone()));
    }

    pub(crate) fn finish(&mut self) {
        if self.storing.queue.is_some() {
            let at = self.clock.now();
            self.emit(Frame::Finish(Finish { at }));
        }
    }

    pub(super) fn begin_storing(&mut self) {
        let storing = &mut self.storing;
        if let Some(queue) = &storing.queue {
            for frame in self.recording.frames() {
                queue.note(&frame);
            }
        } else if storing.setting != StoreSetting::Off {
            let (setting, origin) = (&storing.setting, &storing.origin);
            storing.queue = store::begin(setting, origin, &self.recording, self.clock);
        }
    }
}
