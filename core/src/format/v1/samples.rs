//! The frame of points.

use serde::Serialize;

use super::columns::{Columns, Levels, levels, steps};
use crate::format::messagepack::{Outcome, Reader};
use crate::format::record::{Decode, DecodeFields};
use crate::recording::{DeviceIdx, Frame, RunIdx, Samples, Series};

#[derive(Serialize)]
pub(in crate::format) struct WireSamples {
    run: u32,
    device: u32,
    /// The label of the marks; absent where the sampler read.
    #[serde(skip_serializing_if = "Option::is_none")]
    marks: Option<String>,
    at_steps: Vec<u64>,
    ordinal_steps: Vec<u64>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    allocated: Levels,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    reserved: Levels,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    device_used: Levels,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    process_used: Levels,
}

impl From<&Samples> for WireSamples {
    fn from(samples: &Samples) -> Self {
        let points = &samples.points;
        Self {
            run: samples.run.0,
            device: samples.device.0,
            marks: match &samples.series {
                Series::Sampled => None,
                Series::Marked(label) => Some(label.clone()),
            },
            at_steps: steps(points.at().iter().map(|at| at.get())),
            ordinal_steps: steps(points.ordinals()),
            allocated: levels(points.iter().map(|point| point.allocated)),
            reserved: levels(points.iter().map(|point| point.reserved)),
            device_used: levels(points.iter().map(|point| point.device_used)),
            process_used: levels(points.iter().map(|point| point.process_used)),
        }
    }
}

/// A frame of points as it is read.
#[derive(Default)]
pub(in crate::format) struct FoundSamples {
    run: RunIdx,
    device: DeviceIdx,
    marks: Option<String>,
    columns: Columns,
}

impl DecodeFields for FoundSamples {
    fn required(&self) -> &'static [&'static str] {
        &["run", "device", "at_steps", "ordinal_steps"]
    }

    fn field(&mut self, name: &str, value: &mut Reader<'_>) -> Outcome<()> {
        match name {
            "run" => self.run.fill(value),
            "device" => self.device.fill(value),
            "marks" => self.marks.fill(value),
            _ => self.columns.field(name, value),
        }
    }
}

impl FoundSamples {
    /// The frame; in words what does not fit where it is none.
    pub(in crate::format) fn frame(self) -> Result<Frame, String> {
        let points = self.columns.points();
        Ok(Frame::Samples(Samples {
            run: self.run,
            device: self.device,
            series: self.marks.map_or(Series::Sampled, Series::Marked),
            points: points.map_err(|words| format!("samples of run {}: {words}", self.run.0))?,
        }))
    }
}
