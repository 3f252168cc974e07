//! What files of other programs are read as, and how that is said.

mod chrome_trace;
mod device_profile;
mod nsight;
mod nvidia_smi;
mod nvidia_smi_forms;
mod stormlog;
