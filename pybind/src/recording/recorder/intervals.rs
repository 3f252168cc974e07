//! What a worker of a cluster adds: a run whose cell becomes known at its end, tasks that are over, and
//! what has changed since somebody last fetched it.

use gpumem_model::downsample::{self, Spacing};
use gpumem_model::recording::{
    Changes, Frame, Missing, Reading, Run, RunIdx, RunKind, RunLevels, Samples, Status,
};
use gpumem_model::units::Nanos;

use super::{Launch, Recorder, index};
use gpumem_base::text::SourceCode;
use gpumem_machine::sources::SourceDevice;

/// A task that is over, with the levels at its ends.
#[derive(Debug)]
pub(crate) struct Task {
    /// The prefix of its key.
    pub(crate) name: String,
    /// What its function is in, if that is there.
    pub(crate) code: Option<SourceCode>,
    pub(crate) started: Nanos,
    pub(crate) ended: Nanos,
    pub(crate) status: Status,
    pub(crate) before: Vec<(SourceDevice, Reading)>,
    pub(crate) after: Vec<(SourceDevice, Reading)>,
}

impl Recorder {
    /// The open run, and what is nested in it, turn out to be of this cell. Tasks have their own.
    pub(crate) fn retitle(&mut self, idx: RunIdx, launch: Launch) {
        let revision = self.revision(&launch.code.text);
        let cell = self.cell(launch.cell_id, launch.code, revision);
        let before = self.recording.run(idx).cell;
        let runs = &self.recording.runs()[idx.get()..];
        let inside = runs
            .iter()
            .filter(|run| self.recording.outermost(run.idx) == idx && run.cell == before);
        let moved: Vec<Run> = inside
            .map(|run| Run {
                cell,
                revision,
                execution_count: launch.execution_count,
                label: if run.idx == idx {
                    launch.label.clone()
                } else {
                    run.label.clone()
                },
                ..run.clone()
            })
            .collect();
        for run in moved {
            self.emit(Frame::Run(run));
        }
    }

    /// A task ran in this open run; it is a block of it. A cell stands for the prefix of its key: its growth is
    /// judged over all its runs, whichever cell of the notebook they were for.
    pub(crate) fn ran(&mut self, task: Task, parent: RunIdx) {
        let after = |found: &SourceDevice| {
            let mut after = task.after.iter();
            let (_, reading) = after.find(|(it, _)| it.key == found.key)?;
            Some(reading.clone())
        };
        let levels = task.before.into_iter().map(|(found, before)| RunLevels {
            after: after(&found),
            device: self.device(found),
            before,
            peak_reset: false,
        });
        let levels = levels.collect();
        let named = || format!("{}  # a task", task.name).into();
        let code = task.code.unwrap_or_else(named);
        let revision = self.revision(&code.text);
        let id = format!("gpumem:task:{}", task.name);
        let cell = self.cell(Some(id), code, revision);
        let run = Run {
            idx: RunIdx(index(self.recording.runs().len())),
            cell,
            revision,
            parent: Some(parent),
            kind: RunKind::Block,
            label: Some(task.name),
            started: task.started,
            ended: Some(task.ended),
            status: task.status,
            levels,
            ..Run::default()
        };
        self.emit(Frame::Run(run));
    }

    /// One sentence on what the recording lacks.
    pub(crate) fn lacks(&mut self, words: String) {
        self.emit(Frame::Missing(Missing { words }));
    }

    /// What has changed since this was last called, but for the run that is open. Of each series at most
    /// `n_points` points, with the extremes.
    pub(crate) fn fetched(&mut self, n_points: usize) -> Vec<Frame> {
        let all = || Changes::since(&self.recording, 0);
        let mut changes = self.unfetched.take().unwrap_or_else(all);
        let frames = changes.take(&self.recording);
        let is_open = |frame: &Frame| {
            let run = frame.run().map(|run| self.recording.outermost(run));
            run.is_some_and(|run| self.open.contains_key(&run))
        };
        let (open, ended): (Vec<Frame>, Vec<Frame>) = frames.into_iter().partition(is_open);
        for frame in &open {
            changes.note(frame);
        }
        self.unfetched = Some(changes);
        ended
            .into_iter()
            .map(|frame| bounded(frame, n_points))
            .collect()
    }
}

pub(crate) fn bounded(frame: Frame, n_points: usize) -> Frame {
    match frame {
        Frame::Samples(samples) if samples.points.len() > n_points => {
            let spacing = Spacing::for_series(&samples.series);
            let points = samples.points.iter().collect();
            let points = downsample::downsampled(points, n_points, spacing).into();
            Frame::Samples(Samples { points, ..samples })
        }
        frame => frame,
    }
}
