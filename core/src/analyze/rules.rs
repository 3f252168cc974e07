//! The thresholds that a user may move.

use crate::recording::DeviceKind;
use crate::units::Bytes;

/// Thresholds of the evidence rule. The defaults are what the labelled series
/// were measured with (`tests/leaks.rs`).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rules {
    /// Fewest runs (or steps) on which growth may be called a leak.
    pub min_runs: usize,
    /// Floor: the t-statistic of the block minima's increments must exceed this.
    pub block_t: f64,
    /// Floor: the last quarter must carry more than this share of what is never given back.
    pub last_quarter_share: f64,
    /// Trend: the Mann-Kendall z, corrected for autocorrelation, must exceed this.
    pub trend_z: f64,
    /// Trend by itself: each later quarter must carry more than this share of the growth.
    pub quarter_share: f64,
    /// Trend by itself: the rise over the series must exceed so many standard deviations.
    pub relative_rise: f64,
    /// Second half: the t-statistic of its block minima's increments must exceed this.
    pub tail_block_t: f64,
    /// Second half: its rise must exceed so many standard deviations; a straight line has √12.
    pub tail_rise: f64,
    /// Growth over the whole series below this is not worth a card, on a device.
    pub min_growth: Bytes,
    /// The same for host memory, where the interpreter's own growth is noise.
    pub min_host_growth: Bytes,
    /// Cache ratio, (reserved − allocated) / reserved, above which a device is looked at for fragmentation.
    pub fragmentation_ratio: f64,
}

impl Default for Rules {
    fn default() -> Self {
        Self {
            min_runs: 9,
            block_t: 1.7,
            last_quarter_share: 0.03,
            trend_z: 1.645,
            quarter_share: 0.03,
            relative_rise: 1.6,
            tail_block_t: 3.0,
            tail_rise: 3.1,
            min_growth: Bytes::mib(1),
            min_host_growth: Bytes::mib(64),
            fragmentation_ratio: 0.3,
        }
    }
}

impl Rules {
    /// Growth over a whole series on a device of that kind below which the series is flat.
    pub fn min_growth_on(&self, kind: DeviceKind) -> Bytes {
        match kind {
            DeviceKind::Host => self.min_host_growth,
            _ => self.min_growth,
        }
    }
}
