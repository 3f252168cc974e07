//! The same as JSON.

mod device_profile;
mod level_log;
mod memory_timeline;
mod nsight;
mod torch_snapshot;
mod torch_trace;

pub use device_profile::device_profile_json;
pub use level_log::level_log_json;
pub use memory_timeline::memory_timeline_json;
pub use nsight::nsight_json;
pub use torch_snapshot::{torch_change_json, torch_snapshot_json};
pub use torch_trace::{torch_trace_json, torch_traces_json};
