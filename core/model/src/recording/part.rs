//! Some of the runs as a recording of their own.

use super::{Loop, Recording, Run, RunIdx, SegmentSnapshot, Trace};

impl Recording {
    /// The first `n_runs` runs and the rest, each a recording of its own with the
    /// devices and cells of the whole.
    pub fn split_at(&self, n_runs: usize) -> (Self, Self) {
        let n_runs = n_runs.min(self.runs.len());
        (self.part(0..n_runs), self.part(n_runs..self.runs.len()))
    }

    /// Some of the runs, numbered anew; a run whose parent is not among them has none.
    fn part(&self, range: std::ops::Range<usize>) -> Self {
        let renumbered = |idx: RunIdx| {
            let is_inside = range.contains(&idx.get());
            is_inside.then(|| RunIdx(idx.0 - range.start as u32))
        };
        let elsewhere = RunIdx(u32::MAX);
        let runs = self.runs[range.clone()].iter().filter_map(|run| {
            Some(Run {
                idx: renumbered(run.idx)?,
                parent: run.parent.and_then(renumbered),
                overlaps: run
                    .overlaps
                    .iter()
                    .map(|idx| renumbered(*idx).unwrap_or(elsewhere))
                    .collect(),
                ..run.clone()
            })
        });
        let mut part = Self {
            header: self.header.clone(),
            devices: self.devices.clone(),
            cells: self.cells.clone(),
            revisions: self.revisions.clone(),
            latest: vec![None; self.cells.len()],
            missing: self.missing.clone(),
            finish: self.finish,
            ..Self::default()
        };
        if range.end < self.runs.len() {
            part.devices.iter_mut().for_each(|it| it.outside = None);
        }
        runs.for_each(|run| part.put_run(run));
        let samples = self.samples.iter().filter_map(|(key, points)| {
            let (run, device, series) = key;
            Some(((renumbered(*run)?, *device, series.clone()), points.clone()))
        });
        let loops = self.loops.values().filter_map(|counted| {
            let run = renumbered(counted.run)?;
            let counted = Loop {
                run,
                ..counted.clone()
            };
            Some(((run, counted.idx), counted))
        });
        let traces = self.traces().filter_map(|trace| {
            let run = renumbered(trace.run)?;
            let trace = Trace {
                run,
                ..trace.clone()
            };
            Some(((run, trace.device), trace))
        });
        let held = self.held.iter().filter_map(|((device, run), holders)| {
            Some(((*device, renumbered(*run)?), holders.clone()))
        });
        let held_inside = self.held_inside.iter();
        let held_inside = held_inside.filter_map(|((device, run, at), holders)| {
            Some(((*device, renumbered(*run)?, *at), holders.clone()))
        });
        let mapped = self.mapped.values().filter_map(|mapped| {
            let run = renumbered(mapped.run)?;
            let mapped = SegmentSnapshot {
                run,
                ..mapped.clone()
            };
            Some(((mapped.device, run), mapped))
        });
        part.samples = samples.collect();
        part.loops = loops.collect();
        part.traces = traces.collect();
        part.held = held.collect();
        part.held_inside = held_inside.collect();
        part.mapped = mapped.collect();
        part
    }
}
