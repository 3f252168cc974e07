//! What only one kind of finding has, as JSON: an object whose `type` names its fields.

use serde::Serialize;

use gpumem_analyzer::{
    Details, DoublingDetails, FragmentationDetails, GrowthDetails, OomBreakdown, RetentionDetails,
    SeriesGrowth,
};
use gpumem_model::json_form::JsonNumber;
use gpumem_model::recording::Recording;
use gpumem_model::units::Bytes;

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum JsonDetails<'a> {
    Growth(&'a GrowthDetails),
    UnattributedGrowth(&'a SeriesGrowth),
    Fragmentation(&'a FragmentationDetails),
    ReservedGrowth(&'a SeriesGrowth),
    Pressure {
        n_flushes: u64,
    },
    Spike {
        excess_bytes: Bytes,
        usual_bytes: Bytes,
    },
    RepeatedAllocation {
        n_all_runs: usize,
    },
    InefficientAllocation {
        used_share: JsonNumber,
    },
    RerunDoubling(&'a DoublingDetails),
    GrowingGap(&'a SeriesGrowth),
    LongLivedIntermediates {
        line: u32,
        held_bytes: Bytes,
        peak_bytes: Bytes,
    },
    OutOfMemory(&'a OomBreakdown),
    Retention(JsonRetention<'a>),
}

/// What a place of IPython's or Python's keeps.
#[derive(Serialize)]
pub(super) struct JsonRetention<'a> {
    #[serde(flatten)]
    details: &'a RetentionDetails,
    /// What to type so that it lets go.
    release: Option<&'static str>,
    since_execution_count: Option<u32>,
}

impl<'a> JsonDetails<'a> {
    pub(super) fn of(recording: &Recording, details: &'a Details) -> Self {
        match details {
            Details::Growth(details) => Self::Growth(details),
            Details::UnattributedGrowth(series) => Self::UnattributedGrowth(series),
            Details::Fragmentation(details) => Self::Fragmentation(details),
            Details::ReservedGrowth { growth, .. } => Self::ReservedGrowth(growth),
            Details::Pressure { n_flushes } => Self::Pressure {
                n_flushes: *n_flushes,
            },
            Details::NearlyFull { .. } => Self::Pressure { n_flushes: 0 },
            Details::Spike { excess, usual } => Self::Spike {
                excess_bytes: *excess,
                usual_bytes: *usual,
            },
            Details::Repeated { n_all } => Self::RepeatedAllocation { n_all_runs: *n_all },
            Details::Inefficient { used_share } => Self::InefficientAllocation {
                used_share: JsonNumber(*used_share),
            },
            Details::Doubling(details) => Self::RerunDoubling(details),
            Details::Gap(series) => Self::GrowingGap(series),
            Details::LongLived { line, held, peak } => Self::LongLivedIntermediates {
                line: *line,
                held_bytes: *held,
                peak_bytes: *peak,
            },
            Details::OutOfMemory(breakdown) => Self::OutOfMemory(breakdown),
            Details::Retention(details) => Self::Retention(JsonRetention {
                details,
                release: details.place.release(),
                since_execution_count: recording.run(details.since).execution_count,
            }),
        }
    }
}
