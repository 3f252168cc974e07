//! Cells that run beside the recorded ones.

use gpumem_model::recording::{Frame, Run};

use super::Recorder;

impl Recorder {
    /// A cell runs unrecorded: what it reads and defines is unknown.
    pub(crate) fn note_unrecorded(&mut self) {
        let mut runs = self.recording.runs().iter().rev();
        let Some(run) = runs.find(|run| run.parent.is_none()) else {
            self.follows_unrecorded = true;
            return;
        };
        if run.beside_unrecorded {
            return;
        }
        let run = Run {
            beside_unrecorded: true,
            ..run.clone()
        };
        let idx = run.idx;
        let was_changed = self.changed.contains(&idx);
        self.emit(Frame::Run(run));
        // No verdict on the run is another by that.
        if !was_changed {
            self.changed.remove(&idx);
        }
    }
}
