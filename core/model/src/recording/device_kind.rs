//! Kinds of devices.

use crate::named;
use crate::rules::{Rules, Threshold};
use crate::units::Bytes;

named! {
    /// What a device is.
    #[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
    pub enum DeviceKind {
        /// A real accelerator.
        #[default]
        Gpu = "gpu",
        /// The simulated device of `gpumem.sim`.
        Simulated = "simulated",
        /// Managed (unified) memory, whose pages move between the host and the accelerators.
        Managed = "managed",
        /// Host memory pinned for an accelerator's transfers.
        Pinned = "pinned",
        /// The host's memory.
        Host = "host",
    }
}

impl DeviceKind {
    /// It has memory of its own, which a cell's tensors live in.
    pub const fn is_accelerator(self) -> bool {
        matches!(self, Self::Gpu | Self::Simulated)
    }

    /// The threshold of total growth that applies to it.
    pub const fn growth_threshold(self) -> Threshold {
        match self {
            Self::Host => Threshold::MinHostGrowth,
            _ => Threshold::MinGrowth,
        }
    }

    /// Growth over a whole series on it below which the series is flat.
    pub fn min_growth(self, rules: &Rules) -> Bytes {
        match self {
            Self::Host => rules.min_host_growth,
            _ => rules.min_growth,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn growth_on_the_host_has_a_threshold_of_its_own() {
        let thresholds = [DeviceKind::Host, DeviceKind::Gpu].map(DeviceKind::growth_threshold);
        assert_eq!(thresholds, [Threshold::MinHostGrowth, Threshold::MinGrowth]);
    }
}
