//! The frame of a trace.

use super::columns::SampleColumns;
use crate::budget::ListBudget;
use crate::record::{encoded_as, wire};
use gpumem_model::recording::{
    AllocationTally, Frame, LifetimeClass, LineTally, ModuleTally, Points, Sample, StackTally,
    Trace, TracedPeak,
};

/// Steps as columns, as in a frame of samples; everything else by name.
#[derive(Default)]
pub(crate) struct WireTrace<T> {
    trace: T,
    columns: SampleColumns,
}

wire! { WireTrace<&Trace> => WireTrace<Trace> {
    required "run" => trace.run,
    required "device" => trace.device,
    "at_steps" => columns.at,
    "ordinal_steps" => columns.ordinals,
    "allocated" => columns.allocated,
    "reserved" => columns.reserved,
    "n_events" => trace.n_events,
    "is_cut" => trace.is_cut,
    "total" => trace.total,
    "peak" => trace.peak,
    "lines" => trace.lines,
    "modules" => trace.modules,
    "stacks" => trace.stacks,
    "lifetimes" => trace.lifetimes,
}}

encoded_as! {
    Trace: trace => WireTrace {
        trace,
        columns: (&trace.steps.iter().copied().collect::<Points>()).into(),
    };
}

impl WireTrace<Trace> {
    /// The frame; in words what does not fit where it is none.
    pub(crate) fn frame(self, budget: &mut ListBudget) -> Result<Frame, String> {
        let mut trace = self.trace;
        let points = self.columns.points();
        let points = points.map_err(|words| format!("trace of run {}: {words}", trace.run.0))?;
        let n_bytes = points.len() * size_of::<Sample>();
        budget.spend(n_bytes).map_err(|refused| refused.0)?;
        trace.steps = Vec::with_capacity(points.len());
        trace.steps.extend(points.iter());
        trace.peak.high = trace.peak.high.max(trace.peak.low);
        Ok(Frame::Trace(Box::new(trace)))
    }
}

wire! { TracedPeak {
    "at_nanos" => at,
    "low" => low,
    "high" => high,
    "from_before" => from_before,
}}

wire! { AllocationTally {
    "n_allocations" => n_allocations,
    "allocated" => allocated,
    "retained" => retained,
    "at_peak" => at_peak,
    "long_lived" => long_lived,
    "longest_nanos" => longest,
}}

wire! { LineTally {
    sparse "line" => line,
    "tally" => tally,
}}

wire! { ModuleTally {
    required "path" => path,
    "tally" => tally,
}}

wire! { StackTally {
    "frames" => frames,
    "tally" => tally,
}}

wire! { LifetimeClass {
    sparse "up_to_nanos" => up_to,
    "n_blocks" => n_blocks,
    "bytes" => bytes,
}}
