//! What keeps the recording on the disk.

use gpumem_model::recording::{Finish, Frame, RunIdx};

use super::{Recorder, SourceText};
use crate::machine::sampler::SoFar;
use crate::recording::store::{self, Handover, Origin, Setting};

/// Nothing is written before the first run: a session without runs leaves no file.
#[derive(Debug, Default)]
pub(super) struct Storing {
    setting: Setting,
    origin: Origin,
    handover: Option<Handover>,
}

impl Storing {
    /// Hands a frame on. True where storing has to begin with it, or to begin again.
    pub(super) fn takes(&self, frame: &Frame) -> bool {
        match &self.handover {
            Some(handover) => handover.note(frame),
            None => self.setting != Setting::Off && matches!(frame, Frame::Run(_)),
        }
    }
}

impl Recorder {
    /// Keeps the session there from now on, with what has been recorded already.
    pub(crate) fn keep_in(&mut self, setting: Setting, origin: Origin) {
        let storing = &mut self.storing;
        storing.origin = origin;
        if storing.setting != setting {
            storing.setting = setting;
            storing.handover = None;
            if !self.recording.runs().is_empty() {
                self.begin_storing();
            }
        }
    }

    /// Where the session is kept, and for whom.
    pub(crate) fn kept_in(&self) -> (Setting, Origin) {
        (self.storing.setting.clone(), self.storing.origin.clone())
    }

    /// What hands the session over to the disk, if it is kept.
    pub(crate) fn handover(&self) -> Option<&Handover> {
        self.storing.handover.as_ref()
    }

    /// What is sampled in a run from now on is kept while the run is under way; of one run at a time.
    pub(crate) fn store_watches(&self, run: RunIdx, so_far: SoFar) {
        if let Some(handover) = &self.storing.handover {
            handover.watch(run, so_far, self.source_text == SourceText::Full);
        }
    }

    /// The same of a run that began a while ago.
    pub(crate) fn store_watches_again(&mut self, run: RunIdx, so_far: SoFar) {
        self.store_watches(run, so_far);
        // The store learns anew of what run the samples are.
        self.emit(Frame::Run(self.recording.run(run).clone()));
    }

    /// The session ends in order.
    pub(crate) fn finish(&mut self) {
        if self.storing.handover.is_some() {
            let at = self.clock.now();
            self.emit(Frame::Finish(Finish { at }));
        }
    }

    pub(super) fn begin_storing(&mut self) {
        let storing = &mut self.storing;
        if let Some(handover) = &storing.handover {
            for frame in self.recording.frames() {
                handover.note(&frame);
            }
        } else if storing.setting != Setting::Off {
            let (setting, origin) = (&storing.setting, &storing.origin);
            storing.handover = store::begin(setting, origin, &self.recording, self.clock);
        }
    }
}
