//! The frame of points.

use super::columns::SampleColumns;
use crate::record::{encoded_as, wire};
use gpumem_model::recording::{DeviceIdx, Frame, LoopIdx, RunIdx, Samples, Series};

#[derive(Default)]
pub(crate) struct WireSamples {
    run: RunIdx,
    device: DeviceIdx,
    /// The label of the marks; absent where the sampler read.
    marks: Option<String>,
    /// The loop whose iterations these are.
    in_loop: Option<LoopIdx>,
    columns: SampleColumns,
}

wire! { WireSamples {
    required "run" => run,
    required "device" => device,
    sparse "marks" => marks,
    sparse "loop" => in_loop,
    required "at_steps" => columns.at,
    required "ordinal_steps" => columns.ordinals,
    sparse "allocated" => columns.allocated,
    sparse "reserved" => columns.reserved,
    sparse "device_used" => columns.device_used,
    sparse "process_used" => columns.process_used,
}}

encoded_as! {
    Samples: samples => WireSamples {
        run: samples.run,
        device: samples.device,
        marks: match &samples.series {
            Series::Marked(label) => Some(label.clone()),
            Series::Sampled | Series::Loop(_) => None,
        },
        in_loop: match samples.series {
            Series::Loop(idx) => Some(idx),
            Series::Sampled | Series::Marked(_) => None,
        },
        columns: (&samples.points).into(),
    };
}

impl WireSamples {
    /// The frame; in words what does not fit where it is none.
    pub(crate) fn frame(self) -> Result<Frame, String> {
        let points = self.columns.points();
        Ok(Frame::Samples(Samples {
            run: self.run,
            device: self.device,
            series: match (self.in_loop, self.marks) {
                (Some(idx), _) => Series::Loop(idx),
                (None, Some(label)) => Series::Marked(label),
                (None, None) => Series::Sampled,
            },
            points: points.map_err(|words| format!("samples of run {}: {words}", self.run.0))?,
        }))
    }
}
