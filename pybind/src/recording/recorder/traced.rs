//! The allocator's history of a run becomes its trace, those of the blocks in it, and runs of
//! the parts that the user's code gave a name.

use gpumem_model::downsample::{self, Spacing};
use gpumem_model::recording::{
    AllocatorLevels, DeviceIdx, Frame, Reading, Run, RunIdx, RunKind, RunLevels, Sample, Source,
    Status, Trace,
};
use gpumem_model::trace::{
    Annotation, History, HistoryLevels, Labelled, Replay, TraceLimits, labels,
};
use gpumem_model::units::Nanos;

use super::{Recorder, SourceText, index};

/// The most named parts of a run that become runs: the outer and earlier ones.
const MAX_LABELLED: usize = 256;

/// Beyond this number of traces in a session the oldest are reduced.
const MAX_TRACES: usize = 512;

/// What a slimmed trace keeps of its lines and places.
const SLIM_STEPS: usize = 16;
const SLIM_PLACES: usize = 8;

/// The history of one device that a run was traced on.
pub(crate) struct Traced {
    pub(crate) device: String,
    pub(crate) source: Source,
    pub(crate) history: History,
}

/// What a run's history is compared with.
pub(crate) struct RunAsTraced {
    pub(crate) span: (Nanos, Nanos),
    pub(crate) execution_count: Option<u32>,
    /// The devices of torch's allocator, with its levels when the run began.
    pub(crate) torch_devices: Vec<(String, HistoryLevels)>,
}

impl Recorder {
    /// The sources of allocators on a run's devices.
    pub(crate) fn allocators_of(&self, run: RunIdx) -> Vec<Source> {
        let levels = self.recording.run(run).levels.iter();
        let allocators = levels.flat_map(|levels| &levels.before.allocators);
        allocators.map(|levels| levels.source).collect()
    }

    pub(crate) fn run_as_traced(&self, run: RunIdx) -> RunAsTraced {
        let run = self.recording.run(run);
        let torch_devices = run.levels.iter().filter_map(|levels| {
            let mut allocators = levels.before.allocators.iter();
            let torch = allocators.find(|levels| levels.source == Source::Torch)?;
            let began_with = HistoryLevels {
                allocated: torch.allocated.known().unwrap_or_default(),
                reserved: torch.reserved.known().unwrap_or_default(),
            };
            let label = self.recording.device(levels.device).label.clone();
            Some((label, began_with))
        });
        RunAsTraced {
            span: (run.started, run.ended.unwrap_or_else(|| self.clock.now())),
            execution_count: run.execution_count,
            torch_devices: torch_devices.collect(),
        }
    }

    /// The run, which has ended, was traced. How many named parts there was no room for.
    pub(crate) fn traced(
        &mut self,
        run: RunIdx,
        traced: Vec<Traced>,
        annotations: &[Annotation],
    ) -> usize {
        let replays: Vec<(DeviceIdx, Source, Replay)> = traced
            .into_iter()
            .filter_map(|traced| {
                let devices = self.recording.devices();
                let device = devices
                    .iter()
                    .find(|device| device.label == traced.device)?;
                Some((device.idx, traced.source, Replay::new(traced.history)))
            })
            .collect();
        let blocks = self.blocks_in(run);
        for (device, _, replay) in &replays {
            self.trace(replay, run, *device, TraceLimits::default());
            for block in &blocks {
                self.trace(replay, *block, *device, TraceLimits::of_a_part());
            }
        }
        let (labelled, n_more) = labels(annotations, MAX_LABELLED);
        self.label(run, &blocks, &labelled, &replays);
        self.slim();
        n_more
    }

    fn trace(&mut self, replay: &Replay, idx: RunIdx, device: DeviceIdx, limits: TraceLimits) {
        let run = self.recording.run(idx);
        let ended = run.ended.unwrap_or_else(|| self.clock.now());
        let trace = replay.trace((idx, device), run.started, ended, limits);
        self.emit_trace(trace);
    }

    /// Where a cell's text is not kept, neither is what its functions and files are called.
    fn emit_trace(&mut self, mut trace: Trace) {
        if self.source_text != SourceText::Full {
            trace.stacks.clear();
            trace.modules.clear();
        }
        self.emit(Frame::Trace(Box::new(trace)));
    }

    /// The blocks inside a run that have ended.
    fn blocks_in(&self, run: RunIdx) -> Vec<RunIdx> {
        let later = self.recording.runs()[run.get() + 1..].iter();
        later
            .filter(|inner| inner.ended.is_some() && self.recording.outermost(inner.idx) == run)
            .map(|inner| inner.idx)
            .collect()
    }

    /// Makes a run of each named part, with the levels of the history at its ends.
    fn label(
        &mut self,
        run: RunIdx,
        blocks: &[RunIdx],
        labelled: &[Labelled],
        replays: &[(DeviceIdx, Source, Replay)],
    ) {
        let mut runs: Vec<RunIdx> = Vec::new();
        for part in labelled {
            let idx = RunIdx(index(self.recording.runs().len()));
            let around = match part.parent {
                Some(parent) => runs[parent],
                None => self.block_around(blocks, part).unwrap_or(run),
            };
            let around = self.recording.run(around);
            let limits = TraceLimits::of_a_part();
            let traces = replays.iter().map(|(device, source, replay)| {
                let trace = replay.trace((idx, *device), part.started, part.ended, limits);
                (*source, trace)
            });
            let traces: Vec<(Source, Trace)> = traces.collect();
            let levels = traces.iter().map(|(source, trace)| ends(*source, trace));
            let frame = Frame::Run(Run {
                idx,
                cell: around.cell,
                revision: around.revision,
                parent: Some(around.idx),
                kind: RunKind::Block,
                label: Some(part.name.clone()),
                execution_count: around.execution_count,
                started: part.started,
                ended: Some(part.ended),
                status: Status::Ok,
                overlaps: around.overlaps.clone(),
                levels: levels.collect(),
                ..Run::default()
            });
            self.emit(frame);
            for (_, trace) in traces {
                self.emit_trace(trace);
            }
            runs.push(idx);
        }
    }

    /// The innermost block that is open from the part's start to its end.
    fn block_around(&self, blocks: &[RunIdx], part: &Labelled) -> Option<RunIdx> {
        let is_around = |block: &&RunIdx| {
            let block = self.recording.run(**block);
            block.started <= part.started && block.ended.is_some_and(|at| at >= part.ended)
        };
        blocks.iter().rfind(is_around).copied()
    }

    /// Keeps only the outline of the oldest traces.
    fn slim(&mut self) {
        let n_over = self.recording.traces().count().saturating_sub(MAX_TRACES);
        let is_whole = |trace: &&Trace| {
            trace.steps.len() > SLIM_STEPS
                || trace.lines.len() > SLIM_PLACES
                || !trace.stacks.is_empty()
        };
        let oldest = self.recording.traces().take(n_over).filter(is_whole);
        let slimmed: Vec<Trace> = oldest.map(outline).collect();
        for trace in slimmed {
            self.emit(Frame::Trace(Box::new(trace)));
        }
    }
}

fn outline(trace: &Trace) -> Trace {
    let mut outline = Trace {
        steps: downsample::downsampled(trace.steps.clone(), SLIM_STEPS, Spacing::Time),
        stacks: Vec::new(),
        ..trace.clone()
    };
    outline.lines.truncate(SLIM_PLACES);
    outline.modules.truncate(SLIM_PLACES);
    outline
}

/// The levels at a part's ends.
fn ends(source: Source, trace: &Trace) -> RunLevels {
    let reading = |step: Option<&Sample>| {
        let level = |bytes: Option<_>| bytes.map(Into::into).unwrap_or_default();
        Reading {
            allocators: vec![AllocatorLevels {
                allocated: level(step.and_then(|step| step.allocated)),
                reserved: level(step.and_then(|step| step.reserved)),
                ..AllocatorLevels::unread(source)
            }],
            ..Reading::default()
        }
    };
    RunLevels {
        device: trace.device,
        before: reading(trace.steps.first()),
        after: Some(reading(trace.steps.last())),
        peak_reset: false,
    }
}
