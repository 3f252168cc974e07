//! What files of other programs say, as text for a terminal.

mod device_profile;
mod level_log;
mod memory_timeline;
mod nsight;
mod torch_change;
mod torch_snapshot;
mod torch_trace;

pub use device_profile::device_profile;
pub use level_log::level_log;
pub use memory_timeline::memory_timeline;
pub use nsight::nsight_export;
pub use torch_change::torch_change;
pub use torch_snapshot::{
    torch_snapshot, torch_snapshot_failure, torch_snapshot_headline, torch_snapshot_hint,
    torch_snapshot_totals,
};
pub use torch_trace::{
    torch_trace, torch_trace_conclusion, torch_trace_device, torch_trace_level, torch_trace_owner,
    torch_trace_parts, torch_trace_worker, torch_traces,
};
