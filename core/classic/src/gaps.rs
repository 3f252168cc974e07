//! The classic analysis of the gap between the device's use and the allocator's reserved bytes.

use super::calls::is_usable;
use super::statistics::{mean, regression, sample_deviation};
use super::{ClassicFigure, ClassicThresholds, Figures, MB, Severity};

use gpumem_model::named;

const MIN_SAMPLES: usize = 3;
const MIN_FOR_DRIFT: usize = 5;
/// Multiples of the threshold of z.
const CRITICAL_Z: f64 = 2.0;
const CERTAIN_Z: f64 = 3.0;
const CRITICAL_DRIFT: f64 = 0.85;
const CRITICAL_FRAGMENTATION: f64 = 0.5;
const CERTAIN_FRAGMENTATION: f64 = 0.6;

/// Device and allocator at one instant. Sizes are bytes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct GapSample {
    /// Seconds.
    pub at: f64,
    /// Allocated by the framework.
    pub allocated: f64,
    /// Reserved by the framework.
    pub reserved: f64,
    /// Used on the device.
    pub device_used: f64,
    /// The device's size, if known.
    pub device_total: Option<f64>,
}

impl GapSample {
    fn is_usable(&self) -> bool {
        let figures = [self.at, self.allocated, self.reserved, self.device_used];
        figures.into_iter().all(is_usable)
    }
}

named! {
    /// What a gap looks like: [`HiddenGap::kind`].
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub enum GapKind {
        /// It stood out for a moment.
        TransientSpike = "transient_spike",
        /// It grows.
        PersistentDrift = "persistent_drift",
        /// Much of reserved is not allocated.
        FragmentationLike = "fragmentation_like",
    }
}

/// A finding about the gap, from [`hidden_gaps`].
#[derive(Debug, Clone, PartialEq)]
pub struct HiddenGap {
    /// What it looks like.
    pub kind: GapKind,
    /// How bad it is.
    pub severity: Severity,
    /// From 0 to 1.
    pub confidence: f64,
    /// The figures behind it.
    pub evidence: Figures,
    /// One sentence.
    pub description: String,
    /// What to do.
    pub remediation: Vec<String>,
}

/// Findings about the gap, worst and most certain first. Samples without a known total or usable levels
/// are skipped.
pub fn hidden_gaps(samples: &[GapSample], thresholds: &ClassicThresholds) -> Vec<HiddenGap> {
    let known: Vec<(&GapSample, f64)> = samples
        .iter()
        .filter(|sample| sample.is_usable())
        .filter_map(|sample| Some((sample, sample.device_total.filter(|total| *total > 0.0)?)))
        .collect();
    let gaps: Vec<f64> = known
        .iter()
        .map(|(sample, _)| sample.device_used - sample.reserved)
        .collect();
    let is_wide = known
        .iter()
        .zip(&gaps)
        .any(|((_, total), gap)| (gap / total).abs() >= thresholds.gap_ratio_threshold);
    if known.len() < MIN_SAMPLES || !is_wide {
        return Vec::new();
    }
    let times: Vec<f64> = known.iter().map(|(sample, _)| sample.at).collect();
    let samples = known.into_iter().map(|(sample, _)| sample);
    let found = [
        spike(&gaps, thresholds),
        drift(&times, &gaps, thresholds),
        fragmentation(samples, &gaps, thresholds),
    ];
    let mut found: Vec<HiddenGap> = found.into_iter().flatten().collect();
    found.sort_by(|one, other| {
        let by_severity = other.severity.cmp(&one.severity);
        by_severity.then(other.confidence.total_cmp(&one.confidence))
    });
    found
}

fn spike(gaps: &[f64], thresholds: &ClassicThresholds) -> Option<HiddenGap> {
    let (centre, deviation) = (mean(gaps), sample_deviation(gaps));
    if deviation <= 0.0 {
        return None;
    }
    let z = |gap: &f64| (gap - centre) / deviation;
    let spikes: Vec<f64> = gaps
        .iter()
        .copied()
        .filter(|gap| z(gap) > thresholds.gap_spike_zscore)
        .collect();
    let most = spikes.iter().copied().reduce(f64::max)?;
    let highest_z = z(&most);
    let threshold = thresholds.gap_spike_zscore;
    Some(HiddenGap {
        kind: GapKind::TransientSpike,
        severity: critical_above(highest_z, CRITICAL_Z * threshold),
        confidence: certainty(highest_z / (CERTAIN_Z * threshold)),
        evidence: vec![
            ("spike_count", ClassicFigure::Whole(spikes.len() as f64)),
            ("max_gap_bytes", ClassicFigure::Whole(most)),
            ("max_zscore", ClassicFigure::Real(highest_z)),
            ("mean_gap_bytes", ClassicFigure::Real(centre)),
            ("std_gap_bytes", ClassicFigure::Real(deviation)),
        ],
        description: format!(
            "{} samples stand out of the gap between device and allocator, by up to {highest_z:.1} \
             standard deviations",
            spikes.len()
        ),
        remediation: vec![
            "see what else ran at that moment: workspaces of libraries, communication buffers, \
             another process on this device"
                .to_owned(),
        ],
    })
}

fn drift(times: &[f64], gaps: &[f64], thresholds: &ClassicThresholds) -> Option<HiddenGap> {
    if gaps.len() < MIN_FOR_DRIFT {
        return None;
    }
    let line = regression(times, gaps)?;
    let r_squared = line.r * line.r;
    let drifts = line.slope > 0.0 && r_squared >= thresholds.gap_drift_r_squared;
    drifts.then(|| HiddenGap {
        kind: GapKind::PersistentDrift,
        severity: critical_above(r_squared, CRITICAL_DRIFT),
        confidence: certainty(r_squared),
        evidence: vec![
            ("slope_bytes_per_sec", ClassicFigure::Real(line.slope)),
            ("r_squared", ClassicFigure::Real(r_squared)),
            ("p_value", ClassicFigure::Real(line.p)),
            ("gap_start_bytes", ClassicFigure::Whole(gaps[0])),
            ("gap_end_bytes", ClassicFigure::Whole(gaps[gaps.len() - 1])),
        ],
        description: format!(
            "what the device holds beside the allocator grows by {:.2} MiB/s",
            line.slope / MB
        ),
        remediation: vec![
            "look for what allocates without the framework: extensions, libraries, CUDA graphs, \
             another process on this device"
                .to_owned(),
            "see whether it levels off after the warm-up: then it is context and libraries"
                .to_owned(),
        ],
    })
}

fn fragmentation<'a>(
    samples: impl Iterator<Item = &'a GapSample>,
    gaps: &[f64],
    thresholds: &ClassicThresholds,
) -> Option<HiddenGap> {
    let ratios: Vec<f64> = samples
        .filter(|sample| sample.reserved > 0.0)
        .map(|sample| (sample.reserved - sample.allocated) / sample.reserved)
        // Of next to nothing reserved there is no share.
        .filter(|ratio| is_usable(*ratio))
        .collect();
    let average = mean(&ratios);
    let is_high = !ratios.is_empty() && average >= thresholds.gap_fragmentation_ratio;
    is_high.then(|| HiddenGap {
        kind: GapKind::FragmentationLike,
        severity: critical_above(average, CRITICAL_FRAGMENTATION),
        confidence: certainty(average / CERTAIN_FRAGMENTATION),
        evidence: vec![
            ("avg_fragmentation_ratio", ClassicFigure::Real(average)),
            (
                "max_fragmentation_ratio",
                ClassicFigure::Real(ratios.iter().copied().fold(f64::NEG_INFINITY, f64::max)),
            ),
            ("avg_gap_bytes", ClassicFigure::Real(mean(gaps))),
            ("sample_count", ClassicFigure::Whole(ratios.len() as f64)),
        ],
        description: format!("{:.0} % of reserved was not allocated", 100.0 * average),
        remediation: vec![
            "`empty_cache()` shows how much of it is cache".to_owned(),
            "`expandable_segments:True` in PYTORCH_CUDA_ALLOC_CONF lets freed pieces join"
                .to_owned(),
        ],
    })
}

fn critical_above(value: f64, bound: f64) -> Severity {
    if value > bound {
        Severity::Critical
    } else {
        Severity::Warning
    }
}

/// From 0 to 1, whatever the threshold that a figure was held against: nothing over nothing is sure.
fn certainty(ratio: f64) -> f64 {
    if ratio.is_nan() {
        1.0
    } else {
        ratio.clamp(0.0, 1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A device of 1000 B of which nothing is reserved: the gap is what is used.
    fn samples(gaps: &[f64]) -> Vec<GapSample> {
        (0_u32..)
            .zip(gaps)
            .map(|(second, &gap)| GapSample {
                at: f64::from(second),
                allocated: 0.0,
                reserved: 0.0,
                device_used: gap,
                device_total: Some(1000.0),
            })
            .collect()
    }

    #[track_caller]
    fn check(gaps: &[f64], expected: &[(GapKind, Severity)]) {
        let found = hidden_gaps(&samples(gaps), &ClassicThresholds::default());
        let found: Vec<_> = found.iter().map(|gap| (gap.kind, gap.severity)).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn each_shape_of_a_gap_has_its_kind() {
        check(&[10.0, 11.0, 12.0, 13.0, 14.0], &[]);
        check(&[100.0; 6], &[]);
        check(
            &[100.0, 120.0, 140.0, 160.0, 180.0],
            &[(GapKind::PersistentDrift, Severity::Critical)],
        );
        let mut spiky = vec![100.0; 30];
        spiky[3] = 400.0;
        check(&spiky, &[(GapKind::TransientSpike, Severity::Critical)]);
    }

    #[test]
    fn the_worst_and_surest_comes_first() {
        let mut split = samples(&[100.0, 120.0, 142.0, 160.0, 180.0]);
        for sample in &mut split {
            sample.reserved = 10.0;
            sample.allocated = 6.0;
        }
        let found = hidden_gaps(&split, &ClassicThresholds::default());
        let kinds: Vec<_> = found.iter().map(|gap| gap.kind).collect();
        assert_eq!(
            kinds,
            [GapKind::PersistentDrift, GapKind::FragmentationLike]
        );
    }

    #[test]
    fn a_gap_needs_usable_levels() {
        let mut broken = samples(&[100.0, f64::NAN, 140.0, f64::INFINITY]);
        broken[0].at = f64::NAN;
        assert_eq!(hidden_gaps(&broken, &ClassicThresholds::default()), []);
    }

    #[test]
    fn a_gap_needs_a_known_total() {
        let mut unknown = samples(&[100.0, 120.0, 140.0, 160.0, 180.0]);
        for sample in &mut unknown {
            sample.device_total = None;
        }
        assert_eq!(hidden_gaps(&unknown, &ClassicThresholds::default()), []);
    }
}
