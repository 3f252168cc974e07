//! What is known, by instant.

use super::super::Lanes;
use super::super::scene::Role;
use super::super::session::Session;
use super::scale::{Stretch, TimeScale};
use crate::analyze::{Lane, Peak, RunRow};
use crate::recording::{Sample, Series};
use crate::units::{Bytes, Nanos};

/// Levels by their place in logical pixels, from left to right.
type Trace = Vec<(f64, Bytes)>;

/// The highest level in a run.
pub(super) struct PeakBar {
    pub(super) left: f64,
    pub(super) right: f64,
    pub(super) level: Bytes,
    pub(super) is_exact: bool,
}

/// Everything that the timeline draws.
pub(super) struct Traces {
    /// The device's use, one unbroken piece after the other.
    pub(super) device: Vec<Trace>,
    /// This process's use.
    pub(super) process: Vec<Trace>,
    /// Per run the lane that growth is judged on: at its ends, and where marks were set.
    pub(super) inside: Vec<Trace>,
    /// Allocated as the allocator's history tells it, change by change.
    pub(super) exact: Vec<Trace>,
    pub(super) lane: Lane,
    pub(super) peaks: Vec<PeakBar>,
    /// `None` where nothing is known.
    pub(super) highest: Option<Bytes>,
}

impl Traces {
    pub(super) fn new(session: &Session<'_>, scale: &TimeScale, lanes: Lanes) -> Self {
        let mut traces = Self {
            device: Vec::new(),
            process: Vec::new(),
            inside: Vec::new(),
            exact: Vec::new(),
            lane: session.lane(),
            peaks: Vec::new(),
            highest: None,
        };
        for stretch in scale.stretches() {
            traces.add(session, stretch);
        }
        traces.keep(lanes);
        let lines = [
            &traces.device,
            &traces.process,
            &traces.inside,
            &traces.exact,
        ];
        let levels = lines
            .into_iter()
            .flatten()
            .flatten()
            .map(|(_, level)| *level);
        let peaks = traces.peaks.iter().map(|peak| peak.level);
        traces.highest = levels.chain(peaks).max();
        traces
    }

    /// Drops what is not to be drawn.
    fn keep(&mut self, lanes: Lanes) {
        let drops = [
            (lanes.device, &mut self.device),
            (lanes.process, &mut self.process),
            (lanes.held, &mut self.inside),
            (lanes.held, &mut self.exact),
        ];
        for (_, lane) in drops.into_iter().filter(|(stays, _)| !stays) {
            lane.clear();
        }
        if !lanes.peaks {
            self.peaks.clear();
        }
    }

    pub(super) fn dots_role(&self) -> Role {
        match self.lane {
            Lane::Allocated => Role::Text,
            Lane::ProcessUsed => Role::Process,
            Lane::DeviceUsed => Role::Device,
        }
    }

    fn add(&mut self, session: &Session<'_>, stretch: &Stretch) {
        let row = session.row(stretch.run);
        let run = session.recording.run(stretch.run);
        let in_view = |at: &Nanos| (stretch.from..=stretch.to).contains(at);
        let begun = Some(run.started).filter(in_view);
        let ended = run.ended.filter(in_view);
        let levels = |sample: &'_ [Sample], level: fn(&Sample) -> Option<Bytes>, ends: Ends| {
            let inside = sample.iter().filter(|sample| in_view(&sample.at));
            let first = begun.map(|at| (at, ends.0));
            let last = ended.map(|at| (at, ends.1));
            first
                .into_iter()
                .chain(inside.map(move |sample| (sample.at, level(sample))))
                .chain(last)
                .map(|(at, level)| level.map(|level| (stretch.x(at), level)))
                .collect::<Vec<_>>()
        };
        let sampled = session
            .recording
            .samples(stretch.run, session.device, &Series::Sampled);
        if !sampled.is_empty() {
            let ends = |ends: fn(&RunRow) -> Ends| row.map_or((None, None), ends);
            let device = levels(sampled, |s| s.device_used, ends(|row| row.device_used));
            self.device.extend(unbroken(&device));
            let process = levels(sampled, |s| s.process_used, ends(|row| row.process_used));
            self.process.extend(unbroken(&process));
        }
        let marked = session.marked(stretch.run);
        let ends = row.map_or((None, None), |row| (row.before, row.after));
        let inside = levels(&marked, level_in(self.lane), ends);
        let inside: Trace = inside.into_iter().flatten().collect();
        let trace = session.recording.trace(stretch.run, session.device);
        if let Some(trace) = trace.filter(|_| self.lane == Lane::Allocated) {
            let steps = trace.steps.iter().filter(|step| in_view(&step.at));
            let steps = steps.filter_map(|step| Some((stretch.x(step.at), step.allocated?)));
            self.exact.push(staircase(steps));
            // What lies between these dots is known: no dotted line.
            self.inside
                .extend(inside.into_iter().map(|point| vec![point]));
            return;
        }
        if !inside.is_empty() {
            self.inside.push(inside);
        }
        // A peak that is no higher than the ends is known from them.
        let news = |peak: &Peak| Some(peak.low()) > ends.0.max(ends.1);
        let peak = row.and_then(|row| row.peak).filter(news);
        self.peaks.extend(peak.map(|peak| PeakBar {
            left: stretch.left,
            right: stretch.right,
            level: peak.low(),
            is_exact: peak.is_exact(),
        }));
    }
}

/// A level at the beginning and at the end of a run.
type Ends = (Option<Bytes>, Option<Bytes>);

fn level_in(lane: Lane) -> fn(&Sample) -> Option<Bytes> {
    match lane {
        Lane::Allocated => |sample| sample.allocated,
        Lane::ProcessUsed => |sample| sample.process_used,
        Lane::DeviceUsed => |sample| sample.device_used,
    }
}

/// A level stays as it is until the next change.
fn staircase(steps: impl Iterator<Item = (f64, Bytes)>) -> Trace {
    let mut stairs: Trace = Vec::new();
    for (x, level) in steps {
        if let Some((_, last)) = stairs.last().copied() {
            stairs.push((x, last));
        }
        stairs.push((x, level));
    }
    stairs
}

/// The pieces between instants at which the level was not read.
fn unbroken(levels: &[Option<(f64, Bytes)>]) -> impl Iterator<Item = Trace> {
    levels
        .split(Option::is_none)
        .map(|piece| piece.iter().copied().flatten().collect::<Trace>())
        .filter(|piece| piece.len() > 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(levels: &[Option<u64>], pieces: &[&[u64]]) {
        let at = |(x, level): (usize, &Option<u64>)| level.map(|n| (x as f64, Bytes::new(n)));
        let levels: Vec<_> = levels.iter().enumerate().map(at).collect();
        let found: Vec<Vec<u64>> = unbroken(&levels)
            .map(|piece| piece.iter().map(|(_, level)| level.get()).collect())
            .collect();
        assert_eq!(found, pieces);
    }

    #[test]
    fn no_line_is_drawn_over_what_was_not_read() {
        check(
            &[Some(1), Some(2), None, Some(4), Some(5)],
            &[&[1, 2], &[4, 5]],
        );
        check(&[None, Some(1), None, Some(3)], &[]);
        check(&[], &[]);
    }
}
