//! The frame of a trace.

use serde::Serialize;

use super::columns::{Columns, Levels, levels, steps};
use crate::format::messagepack::{Outcome, Reader};
use crate::format::record::{Decode, DecodeFields};
use crate::recording::{
    Frame, Lifetimes, LineTally, ModuleTally, StackTally, Tally, Trace, TracedPeak,
};
use crate::units::Nanos;

/// Steps as columns, as in a frame of samples; everything else by name.
#[derive(Serialize)]
pub(in crate::format) struct WireTrace {
    run: u32,
    device: u32,
    at_steps: Vec<u64>,
    ordinal_steps: Vec<u64>,
    allocated: Levels,
    reserved: Levels,
    n_events: u64,
    is_cut: bool,
    total: WireTally,
    peak: WirePeak,
    lines: Vec<WireLine>,
    modules: Vec<WireModule>,
    stacks: Vec<WireStack>,
    lifetimes: Vec<WireLifetimes>,
}

#[derive(Serialize)]
struct WireTally {
    n_allocations: u64,
    allocated: u64,
    retained: u64,
    at_peak: u64,
    long_lived: u64,
    longest_nanos: u64,
}

#[derive(Serialize)]
struct WirePeak {
    at_nanos: u64,
    low: u64,
    high: u64,
    from_before: u64,
}

#[derive(Serialize)]
struct WireLine {
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<u32>,
    tally: WireTally,
}

#[derive(Serialize)]
struct WireModule {
    path: String,
    tally: WireTally,
}

#[derive(Serialize)]
struct WireStack {
    frames: Vec<String>,
    tally: WireTally,
}

#[derive(Serialize)]
struct WireLifetimes {
    #[serde(skip_serializing_if = "Option::is_none")]
    up_to_nanos: Option<u64>,
    n_blocks: u64,
    bytes: u64,
}

impl From<&Trace> for WireTrace {
    fn from(trace: &Trace) -> Self {
        let points = || trace.steps.iter();
        Self {
            run: trace.run.0,
            device: trace.device.0,
            at_steps: steps(points().map(|point| point.at.get())),
            ordinal_steps: steps(points().map(|point| point.ordinal)),
            allocated: levels(points().map(|point| point.allocated)),
            reserved: levels(points().map(|point| point.reserved)),
            n_events: trace.n_events,
            is_cut: trace.is_cut,
            total: (&trace.total).into(),
            peak: WirePeak {
                at_nanos: trace.peak.at.get(),
                low: trace.peak.low.get(),
                high: trace.peak.high.get(),
                from_before: trace.peak.from_before.get(),
            },
            lines: trace.lines.iter().map(WireLine::from).collect(),
            modules: trace.modules.iter().map(WireModule::from).collect(),
            stacks: trace.stacks.iter().map(WireStack::from).collect(),
            lifetimes: trace.lifetimes.iter().map(WireLifetimes::from).collect(),
        }
    }
}

/// A trace as it is read.
#[derive(Default)]
pub(in crate::format) struct FoundTrace {
    trace: Trace,
    columns: Columns,
}

impl DecodeFields for FoundTrace {
    fn required(&self) -> &'static [&'static str] {
        &["run", "device"]
    }

    fn field(&mut self, name: &str, value: &mut Reader<'_>) -> Outcome<()> {
        let trace = &mut self.trace;
        match name {
            "run" => trace.run.fill(value),
            "device" => trace.device.fill(value),
            "n_events" => trace.n_events.fill(value),
            "is_cut" => trace.is_cut.fill(value),
            "total" => trace.total.fill(value),
            "peak" => trace.peak.fill(value),
            "lines" => trace.lines.fill(value),
            "modules" => trace.modules.fill(value),
            "stacks" => trace.stacks.fill(value),
            "lifetimes" => trace.lifetimes.fill(value),
            _ => self.columns.field(name, value),
        }
    }
}

impl FoundTrace {
    /// The frame; in words what does not fit where it is none.
    pub(in crate::format) fn frame(self) -> Result<Frame, String> {
        let mut trace = self.trace;
        let points = self.columns.points();
        let points = points.map_err(|words| format!("trace of run {}: {words}", trace.run.0))?;
        trace.steps = points.iter().collect();
        trace.peak.high = trace.peak.high.max(trace.peak.low);
        Ok(Frame::Trace(Box::new(trace)))
    }
}

impl DecodeFields for TracedPeak {
    fn field(&mut self, name: &str, value: &mut Reader<'_>) -> Outcome<()> {
        match name {
            "at_nanos" => self.at.fill(value),
            "low" => self.low.fill(value),
            "high" => self.high.fill(value),
            "from_before" => self.from_before.fill(value),
            _ => value.skip(),
        }
    }
}

impl From<&Tally> for WireTally {
    fn from(tally: &Tally) -> Self {
        Self {
            n_allocations: tally.n_allocations,
            allocated: tally.allocated.get(),
            retained: tally.retained.get(),
            at_peak: tally.at_peak.get(),
            long_lived: tally.long_lived.get(),
            longest_nanos: tally.longest.get(),
        }
    }
}

impl DecodeFields for Tally {
    fn field(&mut self, name: &str, value: &mut Reader<'_>) -> Outcome<()> {
        match name {
            "n_allocations" => self.n_allocations.fill(value),
            "allocated" => self.allocated.fill(value),
            "retained" => self.retained.fill(value),
            "at_peak" => self.at_peak.fill(value),
            "long_lived" => self.long_lived.fill(value),
            "longest_nanos" => self.longest.fill(value),
            _ => value.skip(),
        }
    }
}

impl From<&LineTally> for WireLine {
    fn from(line: &LineTally) -> Self {
        Self {
            line: line.line,
            tally: (&line.tally).into(),
        }
    }
}

impl DecodeFields for LineTally {
    fn field(&mut self, name: &str, value: &mut Reader<'_>) -> Outcome<()> {
        match name {
            "line" => self.line.fill(value),
            "tally" => self.tally.fill(value),
            _ => value.skip(),
        }
    }
}

impl From<&ModuleTally> for WireModule {
    fn from(module: &ModuleTally) -> Self {
        Self {
            path: module.path.clone(),
            tally: (&module.tally).into(),
        }
    }
}

impl DecodeFields for ModuleTally {
    fn required(&self) -> &'static [&'static str] {
        &["path"]
    }

    fn field(&mut self, name: &str, value: &mut Reader<'_>) -> Outcome<()> {
        match name {
            "path" => self.path.fill(value),
            "tally" => self.tally.fill(value),
            _ => value.skip(),
        }
    }
}

impl From<&StackTally> for WireStack {
    fn from(stack: &StackTally) -> Self {
        Self {
            frames: stack.frames.clone(),
            tally: (&stack.tally).into(),
        }
    }
}

impl DecodeFields for StackTally {
    fn field(&mut self, name: &str, value: &mut Reader<'_>) -> Outcome<()> {
        match name {
            "frames" => self.frames.fill(value),
            "tally" => self.tally.fill(value),
            _ => value.skip(),
        }
    }
}

impl From<&Lifetimes> for WireLifetimes {
    fn from(class: &Lifetimes) -> Self {
        Self {
            up_to_nanos: class.up_to.map(Nanos::get),
            n_blocks: class.n_blocks,
            bytes: class.bytes.get(),
        }
    }
}

impl DecodeFields for Lifetimes {
    fn field(&mut self, name: &str, value: &mut Reader<'_>) -> Outcome<()> {
        match name {
            "up_to_nanos" => self.up_to.fill(value),
            "n_blocks" => self.n_blocks.fill(value),
            "bytes" => self.bytes.fill(value),
            _ => value.skip(),
        }
    }
}
