//! The frame of a trace.

use serde::{Deserialize, Serialize};

use super::{cell_of, column, steps};
use crate::recording::{
    DeviceIdx, Frame, Lifetimes, LineTally, ModuleTally, RunIdx, Sample, StackTally, Tally, Trace,
    TracedPeak,
};
use crate::units::{Bytes, Nanos};

/// Steps as columns, as in a frame of samples; everything else by name.
#[derive(Serialize, Deserialize)]
pub(in crate::format) struct WireTrace {
    run: u32,
    device: u32,
    #[serde(default)]
    at_steps: Vec<u64>,
    #[serde(default)]
    ordinal_steps: Vec<u64>,
    #[serde(default)]
    allocated: Vec<Option<u64>>,
    #[serde(default)]
    reserved: Vec<Option<u64>>,
    #[serde(default)]
    n_events: u64,
    #[serde(default)]
    is_cut: bool,
    #[serde(default)]
    total: WireTally,
    #[serde(default)]
    peak: WirePeak,
    #[serde(default)]
    lines: Vec<WireLine>,
    #[serde(default)]
    modules: Vec<WireModule>,
    #[serde(default)]
    stacks: Vec<WireStack>,
    #[serde(default)]
    lifetimes: Vec<WireLifetimes>,
}

#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
struct WireTally {
    n_allocations: u64,
    allocated: u64,
    retained: u64,
    at_peak: u64,
    long_lived: u64,
    longest_nanos: u64,
}

#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
struct WirePeak {
    at_nanos: u64,
    low: u64,
    high: u64,
    from_before: u64,
}

#[derive(Serialize, Deserialize)]
struct WireLine {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    line: Option<u32>,
    #[serde(default)]
    tally: WireTally,
}

#[derive(Serialize, Deserialize)]
struct WireModule {
    path: String,
    #[serde(default)]
    tally: WireTally,
}

#[derive(Serialize, Deserialize)]
struct WireStack {
    #[serde(default)]
    frames: Vec<String>,
    #[serde(default)]
    tally: WireTally,
}

#[derive(Serialize, Deserialize)]
struct WireLifetimes {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    up_to_nanos: Option<u64>,
    #[serde(default)]
    n_blocks: u64,
    #[serde(default)]
    bytes: u64,
}

impl From<&Trace> for WireTrace {
    fn from(trace: &Trace) -> Self {
        Self {
            run: trace.run.0,
            device: trace.device.0,
            at_steps: steps(&trace.steps, |point| point.at.get()),
            ordinal_steps: steps(&trace.steps, |point| point.ordinal),
            allocated: column(&trace.steps, |point| point.allocated),
            reserved: column(&trace.steps, |point| point.reserved),
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

impl TryFrom<WireTrace> for Frame {
    type Error = String;

    fn try_from(wire: WireTrace) -> Result<Self, String> {
        let n_points = wire.at_steps.len();
        let columns = [
            ("allocated", wire.allocated.len()),
            ("reserved", wire.reserved.len()),
        ];
        let fits = |n_rows: usize| n_rows == n_points || n_rows == 0;
        let ordinals = ("ordinal_steps", wire.ordinal_steps.len());
        let other = columns.into_iter().find(|(_, n_rows)| !fits(*n_rows));
        let other = other.or(Some(ordinals).filter(|(_, n_rows)| *n_rows != n_points));
        if let Some((name, n_rows)) = other {
            return Err(format!(
                "trace of run {}: column {name} has {n_rows} rows, at_steps has {n_points}",
                wire.run
            ));
        }
        let (mut at, mut ordinal) = (0_u64, 0_u64);
        let points = (0..n_points).map(|idx| {
            at = at.saturating_add(wire.at_steps[idx]);
            ordinal = ordinal.saturating_add(wire.ordinal_steps[idx]);
            Sample {
                at: Nanos::new(at),
                ordinal,
                allocated: cell_of(&wire.allocated, idx),
                reserved: cell_of(&wire.reserved, idx),
                ..Sample::default()
            }
        });
        Ok(Self::Trace(Box::new(Trace {
            run: RunIdx(wire.run),
            device: DeviceIdx(wire.device),
            steps: points.collect(),
            n_events: wire.n_events,
            is_cut: wire.is_cut,
            total: wire.total.into(),
            peak: TracedPeak {
                at: Nanos::new(wire.peak.at_nanos),
                low: Bytes::new(wire.peak.low),
                high: Bytes::new(wire.peak.high.max(wire.peak.low)),
                from_before: Bytes::new(wire.peak.from_before),
            },
            lines: wire.lines.into_iter().map(LineTally::from).collect(),
            modules: wire.modules.into_iter().map(ModuleTally::from).collect(),
            stacks: wire.stacks.into_iter().map(StackTally::from).collect(),
            lifetimes: wire.lifetimes.into_iter().map(Lifetimes::from).collect(),
        })))
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

impl From<WireTally> for Tally {
    fn from(wire: WireTally) -> Self {
        Self {
            n_allocations: wire.n_allocations,
            allocated: Bytes::new(wire.allocated),
            retained: Bytes::new(wire.retained),
            at_peak: Bytes::new(wire.at_peak),
            long_lived: Bytes::new(wire.long_lived),
            longest: Nanos::new(wire.longest_nanos),
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

impl From<WireLine> for LineTally {
    fn from(wire: WireLine) -> Self {
        Self {
            line: wire.line,
            tally: wire.tally.into(),
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

impl From<WireModule> for ModuleTally {
    fn from(wire: WireModule) -> Self {
        Self {
            path: wire.path,
            tally: wire.tally.into(),
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

impl From<WireStack> for StackTally {
    fn from(wire: WireStack) -> Self {
        Self {
            frames: wire.frames,
            tally: wire.tally.into(),
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

impl From<WireLifetimes> for Lifetimes {
    fn from(wire: WireLifetimes) -> Self {
        Self {
            up_to: wire.up_to_nanos.map(Nanos::new),
            n_blocks: wire.n_blocks,
            bytes: Bytes::new(wire.bytes),
        }
    }
}
