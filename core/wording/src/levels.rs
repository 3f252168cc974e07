//! Names of levels and of the gaps between them.

use gpumem_analyzer::{CompositionPart, Gap, LimitedBy, Metric, OomPart, PartContent, Warning};
use gpumem_model::recording::{Recording, Source};
use gpumem_model::units::ByteDelta;

/// What fills a gap between two levels.
pub fn gap(gap: &Gap) -> &'static str {
    if gap.size < ByteDelta::ZERO {
        return "unmapped, managed or shared";
    }
    match (gap.from, gap.to) {
        ("allocated", "reserved") => "cache",
        ("allocated", "process_used") => "cache, context and libraries",
        ("allocated", _) => "cache, context, libraries and other processes",
        ("reserved", "process_used") => "context and libraries",
        ("reserved", _) => "context, libraries and other processes",
        _ => "other processes",
    }
}

/// The name of a part of a device: `context and libraries`.
pub fn part(part: &CompositionPart) -> &'static str {
    match part.content {
        PartContent::Level("allocated") => "allocated",
        PartContent::Level("reserved") => "reserved by the allocator",
        PartContent::Level("process_used") => "this process",
        PartContent::Level(_) => "in use",
        PartContent::Purpose(purpose) => purpose.description(),
        PartContent::Rounding => "rounding",
        PartContent::ThisRun => "this run",
        PartContent::Between(between) => gap(&between),
        PartContent::Free => "free",
    }
}

/// Who sets the limit; `None` if it is the device's own size.
pub fn limited_by(by: LimitedBy) -> Option<String> {
    match by {
        LimitedBy::Device => None,
        LimitedBy::Container => Some("the container's limit".to_owned()),
        LimitedBy::Service => Some("the limit of CUDA MPS".to_owned()),
        LimitedBy::Host => Some("shared with the host".to_owned()),
        LimitedBy::Allocator(source) => Some(format!("{}'s limit", source.name())),
    }
}

/// The level that growth is judged on.
pub const fn metric(metric: Metric) -> &'static str {
    match metric {
        Metric::Allocated => "allocated",
        Metric::ProcessUsed => "used by this process",
        Metric::DeviceUsed => "used on the device",
    }
}

/// What filled a device when memory ran out.
pub const fn oom_part(part: OomPart) -> &'static str {
    match part {
        OomPart::Tensors => "in tensors",
        OomPart::Cache => "cache",
        OomPart::Context => "context and libraries",
        OomPart::Others => "other processes",
        OomPart::Free => "free",
    }
}

/// What could not be read, in one sentence.
pub fn warning(recording: &Recording, warning: &Warning) -> String {
    match warning {
        Warning::Missing(said) => said.clone(),
        Warning::SourceFailed {
            device,
            source,
            said,
        } => {
            let label = &recording.device(*device).label;
            let source = source.map_or("the driver", Source::name);
            format!("{label}: {source} failed: {said}")
        }
    }
}
