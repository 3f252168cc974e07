//! A trace's figures.

use serde::{Serialize, Serializer};

use super::device::TraceDevice;
use super::kind::{STEP, SpanKind};
use super::level_series::TraceLevelSeries;
use super::model::{ChromeTrace, TraceChange, Worker};
use super::nesting::{NONE, Nesting};
use super::operators::{GroupBy, Operator, kernels, nanos, operators};
use super::owners::{LiveAllocations, OperatorOwner, owners};
use gpumem_analyzer::{Growth, classify_growth};
use gpumem_model::rules::Rules;
use gpumem_model::units::{ByteDelta, Bytes, Nanos};

/// Levels within ranges are counted for this many devices, those with the highest peaks.
const N_WITH_RANGES: usize = 8;

/// A trace's devices, ranges, operators and kernels.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TraceSummary {
    /// The worker that wrote it, if there are several.
    #[serde(flatten)]
    pub worker: Worker,
    /// Number of events in the file.
    pub n_events: usize,
    /// From the first event that counts to the end of the last.
    #[serde(rename = "duration_nanos")]
    pub duration: Nanos,
    /// Whether the file says that memory was recorded.
    #[serde(skip)]
    pub profiled_memory: bool,
    /// Devices with changes of memory: the CPU last, highest peak first.
    pub devices: Vec<TraceDeviceLevels>,
    /// Requests that failed.
    #[serde(rename = "failed_requests")]
    pub failed: Vec<FailedAllocation>,
    /// Steps and labelled ranges in the order of their start.
    pub ranges: Vec<TraceRange>,
    /// By name, longest own time first.
    pub operators: Vec<Operator>,
    /// By name and shapes; empty if no shapes were recorded.
    #[serde(rename = "operators_by_shapes")]
    pub by_shapes: Vec<Operator>,
    /// By name and module; empty if no modules were recorded.
    #[serde(rename = "operators_by_module")]
    pub by_module: Vec<Operator>,
    /// By name and Python function; empty if no functions were recorded.
    #[serde(rename = "operators_by_function")]
    pub by_function: Vec<Operator>,
    /// Kernels, copies and fills by name, longest time first.
    #[serde(serialize_with = "without_memory")]
    pub kernels: Vec<Operator>,
}

/// A process's memory on one device.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TraceDeviceLevels {
    /// Which device.
    #[serde(rename = "label")]
    pub device: TraceDevice,
    /// The process, if the trace has several.
    pub process: Option<String>,
    /// The device's model, if recorded.
    pub model: Option<String>,
    /// The device's size, if recorded.
    #[serde(rename = "total_bytes")]
    pub total: Option<Bytes>,
    /// Whether the trace has totals; else levels are relative to its start.
    #[serde(rename = "is_relative", serialize_with = "negated")]
    pub is_absolute: bool,
    /// Number of allocations and frees.
    pub n_changes: usize,
    /// The level before the first of them.
    #[serde(rename = "start_bytes")]
    pub at_start: ByteDelta,
    /// The highest.
    #[serde(rename = "peak_bytes")]
    pub peak: ByteDelta,
    /// Where it was reached, unless at the start.
    pub peak_place: Option<PeakPlace>,
    /// What is allocated at the peak, by operator, largest first; `None` if the trace has no addresses.
    /// What was there before the trace has no owner.
    pub owners_at_peak: Option<Vec<OperatorOwner>>,
    /// The same at the end.
    pub owners_at_end: Option<Vec<OperatorOwner>>,
    /// The level after the last.
    #[serde(rename = "end_bytes")]
    pub at_end: ByteDelta,
    /// The most that the allocator held from the driver, if recorded.
    #[serde(rename = "peak_reserved_bytes")]
    pub peak_reserved: Option<Bytes>,
    /// The level at the end of each step.
    #[serde(rename = "after_steps_bytes")]
    pub after_steps: Vec<ByteDelta>,
    /// Whether it grows from step to step, by the same rule as for a cell's runs.
    pub growth: Option<Growth>,
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes a reference to the field"
)]
fn negated<S: Serializer>(flag: &bool, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_bool(!flag)
}

/// Kernels take no memory by themselves.
fn without_memory<S: Serializer>(kernels: &[Operator], to: S) -> Result<S::Ok, S::Error> {
    #[derive(Serialize)]
    struct Kernel<'a> {
        name: &'a str,
        n_calls: usize,
        total_nanos: Nanos,
    }

    to.collect_seq(kernels.iter().map(|kernel| Kernel {
        name: &kernel.name,
        n_calls: kernel.n_calls,
        total_nanos: kernel.total,
    }))
}

/// Where a peak was reached.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PeakPlace {
    /// Time after the trace's start.
    #[serde(rename = "after_nanos")]
    pub after: Nanos,
    /// The innermost operator.
    pub operator: Option<String>,
    /// The innermost module.
    pub module: Option<String>,
    /// The innermost Python function outside of torch.
    pub function: Option<String>,
    /// The innermost range.
    pub range: Option<String>,
    /// The step.
    pub step: Option<String>,
}

/// A step or a labelled range.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TraceRange {
    /// Its label.
    pub name: String,
    /// Whether it is a step of the profiler.
    pub is_step: bool,
    /// The range around it, by index in [`TraceSummary::ranges`].
    pub parent_idx: Option<usize>,
    /// How many ranges are around it.
    #[serde(skip)]
    pub depth: usize,
    /// Time after the trace's start.
    #[serde(rename = "start_nanos")]
    pub start: Nanos,
    /// From begin to end.
    #[serde(rename = "duration_nanos")]
    pub duration: Nanos,
    /// Its memory, by device.
    pub memory: Vec<RangeMemory>,
}

/// A device's levels within a range.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct RangeMemory {
    /// Its index in [`TraceSummary::devices`].
    pub device_idx: usize,
    /// Level at its end minus level at its start.
    #[serde(rename = "kept_bytes")]
    pub kept: ByteDelta,
    /// The highest level within.
    #[serde(rename = "peak_bytes")]
    pub peak: ByteDelta,
}

/// A request that failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct FailedAllocation {
    /// Which device.
    pub device: TraceDevice,
    /// The requested bytes.
    #[serde(rename = "wanted_bytes")]
    pub wanted: Bytes,
    /// Allocated at that moment, if recorded.
    #[serde(rename = "allocated_bytes")]
    pub allocated: Option<Bytes>,
    /// Reserved at that moment, if recorded.
    #[serde(rename = "reserved_bytes")]
    pub reserved: Option<Bytes>,
    /// Time after the trace's start.
    #[serde(rename = "after_nanos")]
    pub after: Nanos,
}

impl TraceSummary {
    /// Sums up a trace whose calls and levels are known; the highest peak first, as [`by_peak`] has them.
    pub(super) fn new(
        trace: &ChromeTrace,
        nesting: &Nesting,
        all_series: &[TraceLevelSeries],
    ) -> Self {
        let (start, end) = extent(trace);
        let spans = Ranges::new(trace);
        let context = SummaryContext {
            trace,
            nesting,
            start,
            ranges: &spans,
        };
        let rows = |by| operators(trace, nesting, all_series, by);
        let rows_within = |by| {
            let rows = Some(rows(by)).filter(|rows| rows.iter().any(|row| row.within.is_some()));
            rows.unwrap_or_default()
        };
        Self {
            worker: trace.worker.clone(),
            duration: nanos(end.saturating_sub(start)),
            n_events: trace.n_events,
            profiled_memory: trace.profiled_memory,
            devices: context.devices(all_series),
            ranges: context.all_ranges(all_series),
            failed: trace
                .failed
                .iter()
                .map(|failed| context.failed(failed))
                .collect(),
            operators: rows(GroupBy::Name),
            by_shapes: rows_within(GroupBy::Shapes),
            by_module: rows_within(GroupBy::Module),
            by_function: rows_within(GroupBy::Function),
            kernels: kernels(trace),
        }
    }

    /// The operators by what is wanted: by name if nothing else was recorded.
    pub fn operators_by(&self, by: GroupBy) -> &[Operator] {
        match by {
            GroupBy::Name => &self.operators,
            GroupBy::Shapes => &self.by_shapes,
            GroupBy::Module => &self.by_module,
            GroupBy::Function => &self.by_function,
        }
    }
}

/// The CPU last, the highest peak first.
pub(super) fn by_peak(mut all_series: Vec<TraceLevelSeries>) -> Vec<TraceLevelSeries> {
    all_series.sort_by_key(|series| (series.device.is_cpu(), std::cmp::Reverse(series.peak().0)));
    all_series
}

/// First start and last end, of what counts.
pub(super) fn extent(trace: &ChromeTrace) -> (i64, i64) {
    let spans = trace.spans.iter();
    let starts = spans.clone().map(|span| span.start);
    let ends = spans.map(super::model::TraceSpan::end);
    let changes = trace.changes.iter().map(|change| change.at);
    let start = starts.chain(changes.clone()).min().unwrap_or(0);
    let end = ends.chain(changes).max().unwrap_or(0);
    (start, end)
}

/// The spans that are ranges, in the order of their start.
struct Ranges {
    spans: Vec<u32>,
    /// By span: its index in `spans`, or [`NONE`].
    indices: Vec<u32>,
}

impl Ranges {
    fn new(trace: &ChromeTrace) -> Self {
        let is_range =
            |span: &u32| trace.label_of(&trace.spans[*span as usize]).kind == SpanKind::Range;
        let mut spans: Vec<u32> = (0..trace.spans.len() as u32).filter(is_range).collect();
        spans.sort_by_key(|span| {
            let span = &trace.spans[*span as usize];
            (span.start, std::cmp::Reverse(span.duration))
        });
        let mut indices = vec![NONE; trace.spans.len()];
        for (idx, span) in spans.iter().enumerate() {
            indices[*span as usize] = idx as u32;
        }
        Self { spans, indices }
    }
}

struct SummaryContext<'t> {
    trace: &'t ChromeTrace,
    nesting: &'t Nesting,
    start: i64,
    ranges: &'t Ranges,
}

impl SummaryContext<'_> {
    fn after(&self, at: i64) -> Nanos {
        nanos(at.saturating_sub(self.start))
    }

    fn name(&self, span: u32) -> Option<String> {
        let span = self.trace.spans.get(span as usize)?;
        Some(
            self.trace
                .names
                .text(self.trace.label_of(span).name)
                .to_owned(),
        )
    }

    fn is_step(&self, span: u32) -> bool {
        let name = self.trace.label_of(&self.trace.spans[span as usize]).name;
        self.trace.names.text(name).starts_with(STEP)
    }

    /// The steps of a process, in the order of their start.
    fn steps(&self, process: u32) -> impl Iterator<Item = u32> {
        let spans = self.ranges.spans.iter().copied();
        spans.filter(move |span| {
            let thread = self.trace.spans[*span as usize].thread;
            self.trace.process_of(thread) == process && self.is_step(*span)
        })
    }

    fn devices(&self, all_series: &[TraceLevelSeries]) -> Vec<TraceDeviceLevels> {
        let is_other = |series: &TraceLevelSeries| series.process != all_series[0].process;
        let has_processes = all_series.iter().any(is_other);
        let enumerated = all_series.iter().enumerate();
        enumerated
            .map(|(idx, series)| TraceDeviceLevels {
                process: has_processes.then(|| self.trace.names.text(series.process).to_owned()),
                ..self.device(series, idx < N_WITH_RANGES)
            })
            .collect()
    }

    fn device(&self, series: &TraceLevelSeries, has_ranges: bool) -> TraceDeviceLevels {
        let (peak, position) = series.peak();
        let change = |number: u32| &self.trace.changes[number as usize];
        let reserved = series
            .changes
            .iter()
            .filter_map(|number| change(*number).reserved);
        let properties = self.trace.properties.iter().find(|properties| {
            series.device.kind == 1 && properties.number == Some(series.device.number)
        });
        let alive = LiveAllocations::new(self.trace, series);
        let owners = |alive: &[u32]| owners(self.trace, self.nesting, alive);
        let ends = if has_ranges {
            self.step_ends(series.process)
        } else {
            Vec::new()
        };
        let after_steps: Vec<i64> = ends.iter().map(|end| series.until(*end)).collect();
        TraceDeviceLevels {
            device: series.device,
            process: None,
            model: properties.map(|properties| properties.name.clone()),
            total: properties
                .and_then(|properties| properties.total)
                .map(Bytes::new),
            is_absolute: series.is_absolute,
            n_changes: series.changes.len(),
            at_start: ByteDelta::new(series.at_start),
            peak: ByteDelta::new(peak),
            peak_place: position.map(|position| self.place(series, position, has_ranges)),
            owners_at_peak: alive.as_ref().map(|alive| owners(&alive.at_peak)),
            owners_at_end: alive.as_ref().map(|alive| owners(&alive.at_end)),
            at_end: ByteDelta::new(series.at_end()),
            peak_reserved: reserved.max().filter(|peak| *peak > 0).map(Bytes::new),
            growth: growth(&after_steps),
            after_steps: after_steps.into_iter().map(ByteDelta::new).collect(),
        }
    }

    fn step_ends(&self, process: u32) -> Vec<i64> {
        let steps = self.steps(process);
        steps
            .map(|step| self.trace.spans[step as usize].end())
            .collect()
    }

    fn place(&self, series: &TraceLevelSeries, position: usize, has_ranges: bool) -> PeakPlace {
        let number = series.changes[position] as usize;
        let at = self.trace.changes[number].at;
        let place = self.nesting.changes[number];
        let step = self
            .steps(series.process)
            .take_while(|_| has_ranges)
            .find(|step| {
                let step = &self.trace.spans[*step as usize];
                step.start <= at && at <= step.end()
            });
        let range = Some(place.range).filter(|range| *range != NONE && !self.is_step(*range));
        PeakPlace {
            after: self.after(at),
            operator: self.name(place.operator),
            module: self.name(place.module),
            function: self.name(place.function),
            range: range.and_then(|range| self.name(range)),
            step: step.and_then(|step| self.name(step)),
        }
    }

    fn all_ranges(&self, all_series: &[TraceLevelSeries]) -> Vec<TraceRange> {
        let spans = self.ranges.spans.iter();
        spans.map(|span| self.range(*span, all_series)).collect()
    }

    fn range(&self, number: u32, all_series: &[TraceLevelSeries]) -> TraceRange {
        let span = &self.trace.spans[number as usize];
        let process = self.trace.process_of(span.thread);
        let place = self.nesting.spans[number as usize];
        let parent = self.ranges.indices.get(place.range as usize);
        let (start, end) = (span.start, span.end());
        let all_series = all_series.iter().take(N_WITH_RANGES).enumerate();
        let memory = all_series
            .filter(|(_, series)| series.process == process)
            .map(|(device_idx, series)| RangeMemory {
                device_idx,
                kept: ByteDelta::new(series.until(end).saturating_sub(series.before(start))),
                peak: ByteDelta::new(series.peak_within(start, end)),
            });
        TraceRange {
            name: self.name(number).unwrap_or_default(),
            is_step: self.is_step(number),
            parent_idx: parent.map(|idx| *idx as usize),
            depth: usize::try_from(place.inside).unwrap_or(usize::MAX),
            start: self.after(start),
            duration: nanos(span.duration),
            memory: memory.collect(),
        }
    }

    fn failed(&self, failed: &TraceChange) -> FailedAllocation {
        FailedAllocation {
            device: failed.device,
            wanted: Bytes::new(failed.bytes.unsigned_abs()),
            allocated: failed.allocated.map(Bytes::new),
            reserved: failed.reserved.map(Bytes::new),
            after: self.after(failed.at),
        }
    }
}

/// Relative levels may be negative; only their differences count.
fn growth(levels: &[i64]) -> Option<Growth> {
    let lowest = levels.iter().min()?;
    let levels: Vec<Bytes> = levels
        .iter()
        .map(|level| Bytes::new(level.abs_diff(*lowest)))
        .collect();
    let rules = Rules::default();
    Some(classify_growth(&levels, rules.min_growth, &rules))
}
