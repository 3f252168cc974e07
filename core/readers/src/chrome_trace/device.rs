//! Devices, as a trace numbers them.

use std::fmt;

use serde::{Serialize, Serializer};

/// A device of `PyTorch`: its type and its number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TraceDevice {
    /// `PyTorch`'s number of the type: 0 is the CPU, 1 is CUDA.
    pub kind: i64,
    /// The number among the devices of this type; negative if there is only one.
    pub number: i64,
}

/// `PyTorch`'s names of device types, by number (`c10/core/DeviceType.h`).
const KINDS: [&str; 20] = [
    "cpu", "cuda", "mkldnn", "opengl", "opencl", "ideep", "hip", "fpga", "maia", "xla", "vulkan",
    "metal", "xpu", "mps", "meta", "hpu", "ve", "lazy", "ipu", "mtia",
];

impl TraceDevice {
    /// Whether it is the CPU, whose memory is not what runs short first.
    pub const fn is_cpu(self) -> bool {
        self.kind == 0
    }
}

impl Serialize for TraceDevice {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl fmt::Display for TraceDevice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match usize::try_from(self.kind)
            .ok()
            .and_then(|kind| KINDS.get(kind))
        {
            Some(kind) => f.write_str(kind)?,
            None => write!(f, "device type {}", self.kind)?,
        }
        if self.number >= 0 && !self.is_cpu() {
            write!(f, ":{}", self.number)?;
        }
        Ok(())
    }
}
