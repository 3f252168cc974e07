//! Runs in progress at the same time that are not nested.

use gpumem_model::recording::{Frame, Run, RunIdx, RunKind};

use super::Recorder;
use gpumem_base::strand::Strand;

#[derive(Debug)]
pub(super) struct OpenRun {
    /// Where it began.
    pub(super) strand: Strand,
    /// The runs that had a part in its time.
    pub(super) overlaps: Vec<RunIdx>,
}

impl Recorder {
    /// The open runs of other threads: what moves from now on may be theirs.
    pub(crate) fn open_beside(&self, strand: Strand) -> Vec<RunIdx> {
        self.open_where(|it| it.thread != strand.thread)
    }

    /// A cell's run goes on in that thread.
    pub(crate) fn has_cell_in(&self, strand: Strand) -> bool {
        let open = self.open_where(|it| it.thread == strand.thread);
        let mut runs = open.into_iter().map(|run| self.recording.run(run));
        runs.any(|run| run.kind == RunKind::Cell)
    }

    fn open_where(&self, is_wanted: impl Fn(Strand) -> bool) -> Vec<RunIdx> {
        let open = self.open.iter().filter(|(_, it)| is_wanted(it.strand));
        open.map(|(run, _)| *run).collect()
    }

    /// Notes that a run has begun. Runs of other threads overlap with it, even if they have ended since
    /// its levels were requested. It also takes a turn from other tasks.
    pub(super) fn note_overlaps(&mut self, idx: RunIdx, strand: Strand, were_open: &[RunIdx]) {
        for other in were_open {
            self.note_overlap(idx, *other);
        }
        for other in self.open_beside(strand) {
            self.note_overlap(idx, other);
            self.note_overlap(other, idx);
        }
        self.note_turn(idx, strand);
    }

    /// A run has just begun or ended in a strand: it had a part in what the open runs of other tasks of the
    /// thread see. One that only waits, as a generator does that was left, had none.
    pub(super) fn note_turn(&mut self, idx: RunIdx, strand: Strand) {
        for other in self.open_where(|it| it.takes_turns_with(strand)) {
            self.note_overlap(other, idx);
        }
    }

    /// `other` had a part in the time of an open run: noted once, by the outermost run around it that is not
    /// around both.
    fn note_overlap(&mut self, idx: RunIdx, other: RunIdx) {
        let is_around =
            |outer: RunIdx, inner: RunIdx| self.with_ancestors(inner).any(|it| it == outer);
        if is_around(idx, other) || is_around(other, idx) {
            return;
        }
        let apart = self
            .with_ancestors(other)
            .take_while(|it| !is_around(*it, idx));
        let apart = apart.last().unwrap_or(other);
        let Some(open) = self.open.get_mut(&idx) else {
            return;
        };
        if open.overlaps.contains(&apart) || open.overlaps.len() >= Run::MAX_OVERLAPS {
            return;
        }
        open.overlaps.push(apart);
        // Known for a cell while it runs; for blocks, which are many, at their end.
        let run = self.recording.run(idx);
        if run.kind == RunKind::Cell {
            let overlaps = open.overlaps.clone();
            let run = run.clone();
            self.emit(Frame::Run(Run { overlaps, ..run }));
        }
    }

    /// A run and those around it, from the inside out.
    pub(super) fn with_ancestors(&self, run: RunIdx) -> impl Iterator<Item = RunIdx> {
        let known = self.recording.runs().get(run.get()).map(|run| run.idx);
        std::iter::successors(known, |run| self.recording.run(*run).parent)
    }
}
