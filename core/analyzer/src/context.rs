//! What every verdict may rest on, beside the series or the device that it is about.

use super::device_rows::RowsByDevice;
use super::levels::DeviceSummary;
use super::names::NameHistory;
use super::paths::Paths;
use super::rules::Rules;
use gpumem_model::recording::{DeviceIdx, Recording};
use gpumem_model::units::Bytes;

/// A recording, what was derived from it, and the rules to judge it by.
#[derive(Clone, Copy)]
pub(super) struct Context<'a> {
    pub(super) recording: &'a Recording,
    /// The levels around each run.
    pub(super) rows: RowsByDevice<'a>,
    /// The blocks that each run is nested in.
    pub(super) paths: &'a Paths,
    /// What each name has, look by look.
    pub(super) names: &'a NameHistory,
    /// The latest levels of each device that was read.
    pub(super) devices: &'a [DeviceSummary],
    pub(super) rules: &'a Rules,
}

impl<'a> Context<'a> {
    /// Growth below this is not worth a word on that device.
    pub(super) fn min_growth(&self, device: DeviceIdx) -> Bytes {
        let kind = self.recording.device(device).kind;
        kind.min_growth(self.rules)
    }

    /// The same of what a name has, which no noise hides: on the host it is less.
    pub(super) fn min_growth_of_names(&self, device: DeviceIdx) -> Bytes {
        self.min_growth(device).min(self.rules.min_growth)
    }

    /// The latest levels of a device; `None` if it was never read.
    pub(super) fn summary(&self, device: DeviceIdx) -> Option<&'a DeviceSummary> {
        let found = self.devices.binary_search_by_key(&device, |it| it.device);
        Some(&self.devices[found.ok()?])
    }

    /// The smallest limit that applies to a device, if it is known.
    pub(super) fn capacity(&self, device: DeviceIdx) -> Option<Bytes> {
        self.summary(device)?.capacity
    }
}
