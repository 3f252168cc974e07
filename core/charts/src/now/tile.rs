//! How full each of several accelerators is, for the tiles that choose one.

use super::super::alarm::Alarm;
use super::in_use;
use super::segment::segments;
use gpumem_analyzer::{Analysis, FindingKind};
use gpumem_model::recording::{DeviceIdx, Recording};
use gpumem_model::units::{Bytes, Units};

/// Devices beyond these are only counted, because a page has an end.
const MAX_DEVICES: usize = 32;

/// One of several accelerators.
#[derive(Debug, Clone, PartialEq)]
pub struct DeviceTile {
    /// Which device.
    pub device: DeviceIdx,
    /// Its name.
    pub label: String,
    /// `43.9 GiB left`.
    pub words: String,
    /// What leaks hold, and everything else in use, as shares of the device.
    pub shares: (f64, f64),
    /// Whether it has a leak.
    pub leaks: bool,
}

/// How full each accelerator is; nothing if there are fewer than two. The second figure is how many are left
/// out.
pub fn device_tiles(
    recording: &Recording,
    analysis: &Analysis,
    shown: DeviceIdx,
    units: Units,
) -> (Vec<DeviceTile>, usize) {
    let known = recording.devices().iter().filter(|device| {
        let mut summaries = analysis.devices.iter();
        device.kind.is_accelerator() && summaries.any(|it| it.device == device.idx)
    });
    let known: Vec<_> = known.collect();
    if known.len() < 2 {
        return (Vec::new(), 0);
    }
    let is_kept = |(place, device): &(usize, &&gpumem_model::recording::Device)| {
        *place < MAX_DEVICES || device.idx == shown
    };
    let kept = known.iter().enumerate().filter(is_kept);
    let tiles: Vec<DeviceTile> = kept
        .map(|(_, device)| {
            let segments = segments(recording, analysis, device.idx);
            let usage = in_use(&segments);
            let leak = segments.iter().filter(|it| it.alarm == Some(Alarm::Leak));
            let leak: Bytes = leak.map(|it| it.size).sum();
            let all = (usage.used + usage.cache + usage.free).as_f64().max(1.0);
            let words = if usage.is_limited {
                format!("{} free", units.size(usage.free))
            } else {
                usage.describe(units)
            };
            let mut findings = analysis.findings.iter();
            DeviceTile {
                device: device.idx,
                label: device.label.clone(),
                words,
                shares: (
                    leak.as_f64() / all,
                    usage.used.saturating_sub(leak).as_f64() / all,
                ),
                leaks: findings.any(|it| {
                    it.device == device.idx
                        && it.kind == FindingKind::Leak
                        && it.withdrawn.is_none()
                }),
            }
        })
        .collect();
    let n_more = known.len() - tiles.len();
    (tiles, n_more)
}
