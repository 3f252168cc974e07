//! Reads files of other programs and checks the results and their texts.

mod chrome_trace;
mod device_profile;
mod nsight;
mod nvidia_smi;
mod nvidia_smi_forms;
mod stormlog;
