//! The evidence rule on one series of levels.
//!
//! It has two parts, which look at different things and rarely err together. **Floor**: the minima of up
//! to six blocks rise by more than their scatter, and the last quarter still contributes to what is never
//! freed. **Trend**: the level rises monotonically by more than autocorrelation explains. Both together
//! are a leak. The floor alone, or a trend to which every quarter contributes and which stands out of the
//! scatter, is only suspected.
//!
//! The trend is a Mann-Kendall test whose variance is corrected for autocorrelation (Hamed and Rao,
//! *J. Hydrology* 204, 1998), the slope that of Theil (1950) and Sen (*J. Am. Stat. Assoc.* 63, 1968).
//!
//! What slows down clearly has a warm-up that is not over: neither part counts.
//!
//! A warm-up hides the slow leak behind it, so the **second half** is also judged alone: it never falls
//! below what the second quarter reached, its floor rises, and it is nearly a straight line, which the
//! end of a warm-up is not. That is a leak, too.

mod shape;
#[cfg(test)]
mod tests;

use self::shape::shape;
use super::evidence::{Evidence, Explained, Statistic};
use super::rules::Rules;
use super::trend::{self, MAX_POINTS};
use gpumem_model::json_form::JsonNumber;
use gpumem_model::units::{ByteDelta, Bytes};
use gpumem_model::{named, object};

pub(super) use self::shape::settling;

/// Growing series have risen for good more often than this.
const LEAST_RISES: f64 = 1.0;

/// A warm-up slows down: the rise bends so clearly, and the last third has less than this share of the
/// whole series' slope.
const BENDS: f64 = -2.0;
const LATE_SHARE: f64 = 0.4;

/// The second half of a slow leak is straight: its last third has more than this share.
const LATE_SHARE_OF_TAIL: f64 = 0.75;

named! {
    /// The verdict on a series. The order is that of the cards.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
    pub enum GrowthVerdict {
        /// Both parts of the evidence rule agree that it grows, on enough runs.
        Leak = "leak",
        /// One part says that it grows: not yet beyond doubt.
        Suspected = "suspected",
        /// It does not grow; the shape says what it does.
        Stable = "stable",
        /// Too few runs to tell.
        NotEnoughData = "not_enough_data",
    }
}

impl GrowthVerdict {
    /// It grows, beyond doubt or nearly so.
    pub const fn grows(self) -> bool {
        matches!(self, Self::Leak | Self::Suspected)
    }
}

impl GrowthVerdict {
    /// The more cautious of two verdicts on the same growth.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        self.max(other)
    }
}

named! {
    /// The course of a series: [`Growth::shape`].
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
    pub enum GrowthShape {
        /// No significant change.
        Flat = "flat",
        /// Rises in the first runs, then stays.
        WarmUp = "warm-up",
        /// One jump, flat before and after.
        Step = "step",
        /// Rises and falls back to where it was.
        Sawtooth = "sawtooth",
        /// Flat except for single high readings.
        Spikes = "spikes",
        /// Several jumps, flat between them.
        Staircase = "staircase",
        /// Grows throughout.
        Growth = "growth",
        /// Flat first, grows at the end.
        LateGrowth = "late growth",
        /// Reserved grows, allocated does not: the allocator cannot reuse what it holds.
        ReservedOnly = "reserved-only",
    }
}

/// The verdict on one series, with its figures.
#[derive(Debug, Clone, PartialEq)]
pub struct Growth {
    /// The verdict.
    pub state: GrowthVerdict,
    /// The course of the series.
    pub shape: GrowthShape,
    /// What each run keeps: the Theil-Sen slope (Sen, 1968) without the first quarter (warm-up).
    pub bytes_per_run: ByteDelta,
    /// Its 95 % confidence interval.
    pub interval: (ByteDelta, ByteDelta),
    /// Last level minus first.
    pub total: ByteDelta,
    /// How many more runs are needed for a verdict, if there are too few.
    pub n_missing: usize,
    /// One-sided p of the trend: the probability that chance alone shows as much.
    pub p: f64,
    /// It would be growth, or a leak, if it did not clearly slow down.
    pub(super) slows: bool,
    /// The figures.
    pub evidence: Vec<Evidence>,
}

object! { Growth, it => {
    state: it.state,
    shape: it.shape,
    bytes_per_run: it.bytes_per_run,
    interval: it.interval,
    total_bytes: it.total,
    n_missing: it.n_missing,
    p: JsonNumber(it.p),
    evidence: it.evidence.iter().map(Explained).collect::<Vec<_>>(),
}}

impl Growth {
    /// A leak's trend does not hold against as many series: its p is above `bound`.
    pub(super) fn may_be_chance(&mut self, bound: f64) -> bool {
        let may_be = self.state == GrowthVerdict::Leak && self.p > bound;
        if may_be {
            self.evidence.push(Evidence {
                holds: false,
                ..Evidence::met(Statistic::PBound, self.p, bound)
            });
        }
        may_be
    }
}

/// Judges the levels of a caching allocator: allocated as [`classify_growth`] does; if that is stable
/// but reserved grows, the verdict is [`GrowthShape::ReservedOnly`].
pub fn classify_allocator(
    allocated: &[Bytes],
    reserved: &[Bytes],
    min_growth: Bytes,
    rules: &Rules,
) -> Growth {
    let growth = classify_growth(allocated, min_growth, rules);
    let of_reserved = classify_growth(reserved, min_growth, rules);
    if growth.state == GrowthVerdict::Stable && of_reserved.state == GrowthVerdict::Leak {
        return Growth {
            state: GrowthVerdict::Suspected,
            shape: GrowthShape::ReservedOnly,
            ..of_reserved
        };
    }
    growth
}

/// Judges a series of levels, one after each run, in the order of the runs.
///
/// Growth of less than `min_growth` over the series is flat. A series of more than 256 levels is judged
/// on the minima of 256 equal blocks.
pub fn classify_growth(levels: &[Bytes], min_growth: Bytes, rules: &Rules) -> Growth {
    SeriesStats::from_levels(levels).judged(min_growth, rules)
}

/// What a series of levels shows, whatever the thresholds are: all of its statistics.
#[derive(Debug, Clone)]
pub(super) struct SeriesStats {
    /// The levels, or the minima of equal blocks of them.
    values: Vec<f64>,
    runs_per_point: f64,
    n_levels: usize,
    total: ByteDelta,
    /// What comes cheap.
    outline: Outline,
    /// Theil-Sen slope without the first quarter, and its interval, per point; computed on demand.
    slope: Option<(f64, (f64, f64))>,
    /// Once a trend decides.
    whole: Option<Whole>,
    /// See [`late_share`]; looked at only where the whole says that it grows.
    late_share: Option<f64>,
    /// Looked at only where the whole does not decide.
    tail: SecondHalf,
}

/// What is never given back of a whole series.
#[derive(Debug, Clone)]
struct Outline {
    kept: f64,
    n_rises: f64,
    /// The least share of the later quarters, and the last one's.
    shares: (f64, f64),
}

/// The figures of a whole series, in the order of the text.
#[derive(Debug, Clone)]
struct Whole {
    slope: f64,
    block_t: f64,
    z: f64,
    rise: f64,
}

/// The second half of a series.
#[derive(Debug, Clone)]
enum SecondHalf {
    NotLookedAt,
    TooShort,
    Known(Tail),
}

/// The figures of a second half.
#[derive(Debug, Clone)]
struct Tail {
    kept: f64,
    low: f64,
    reached: f64,
    block_t: f64,
    rise: f64,
    z: f64,
    late_share: f64,
}

impl SeriesStats {
    pub(super) fn from_levels(levels: &[Bytes]) -> Self {
        let raw: Vec<f64> = levels.iter().map(|level| level.as_f64()).collect();
        let n_levels = raw.len();
        let values = if n_levels > MAX_POINTS {
            trend::block_minima(&raw, MAX_POINTS)
        } else {
            raw
        };
        Self {
            runs_per_point: n_levels as f64 / values.len().max(1) as f64,
            n_levels,
            total: total(levels),
            outline: Outline::new(&values),
            slope: None,
            whole: None,
            late_share: None,
            tail: SecondHalf::NotLookedAt,
            values,
        }
    }

    /// The verdict under these rules.
    pub(super) fn judged(&mut self, min_growth: Bytes, rules: &Rules) -> Growth {
        let (verdict, p, evidence) = self.weigh(min_growth, rules);
        let (slope, interval) = self.slope();
        let state = state(self.n_levels, verdict, rules);
        let per_run = |slope: f64| ByteDelta::from_f64(slope / self.runs_per_point);
        Growth {
            state,
            shape: shape(
                &self.values,
                min_growth,
                matches!(verdict, TrendStrength::Grows | TrendStrength::MayGrow),
            ),
            bytes_per_run: per_run(slope),
            interval: (per_run(interval.0), per_run(interval.1)),
            total: self.total,
            n_missing: rules.min_runs.saturating_sub(self.n_levels),
            p,
            slows: state == GrowthVerdict::Stable && verdict == TrendStrength::Slows,
            evidence,
        }
    }

    /// State and p of that verdict, which cost less than all of it.
    pub(super) fn state(&mut self, min_growth: Bytes, rules: &Rules) -> (GrowthVerdict, f64) {
        let (verdict, p, _) = self.weigh(min_growth, rules);
        (state(self.n_levels, verdict, rules), p)
    }

    /// Its verdict may be growth. What says so costs no trend, and is most often no.
    pub(super) fn may_grow(&self, min_growth: Bytes) -> bool {
        self.outline.grows(min_growth)
    }

    fn slope(&mut self) -> (f64, (f64, f64)) {
        let values = &self.values;
        *self.slope.get_or_insert_with(|| {
            trend::slope(&values[values.len() / 4..]).unwrap_or_else(|| plain_slope(values))
        })
    }

    /// What the rule's parts say, the p of the trend that decides, and the figures.
    fn weigh(&mut self, min_growth: Bytes, rules: &Rules) -> (TrendStrength, f64, Vec<Evidence>) {
        if self.whole.is_none() {
            self.whole = Whole::new(&self.values);
        }
        let Some(whole) = &self.whole else {
            return (TrendStrength::Quiet, 1.0, Vec::new());
        };
        let of_all = whole.figures(&self.outline, min_growth, rules);
        let [kept, rises, floor, still, trend, quarters, rise] =
            of_all.each_ref().map(|it| it.holds);
        let grows = kept && rises;
        let floor = floor && still;
        let p = trend::p_above(whole.z);
        let mut evidence = Vec::from(of_all);
        let says = grows && (floor || trend && quarters && rise);
        let slope = whole.slope;
        let values = &self.values;
        let late = says.then(|| {
            *self
                .late_share
                .get_or_insert_with(|| late_share(values, slope))
        });
        let slows = late.filter(|share| *share < LATE_SHARE);
        evidence
            .extend(slows.map(|share| Evidence::above(Statistic::LateShare, share, LATE_SHARE)));
        if says && floor && trend && slows.is_none() {
            return (TrendStrength::Grows, p, evidence);
        }
        if grows && matches!(self.tail, SecondHalf::NotLookedAt) {
            self.tail = Tail::new(&self.values).map_or(SecondHalf::TooShort, SecondHalf::Known);
        }
        if grows && let SecondHalf::Known(tail) = &self.tail {
            let of_tail = tail.figures(min_growth, rules);
            let share = tail.late_share;
            let of_bend = (share < LATE_SHARE_OF_TAIL)
                .then(|| Evidence::above(Statistic::TailLateShare, share, LATE_SHARE_OF_TAIL));
            let goes_on = of_tail.iter().all(|figure| figure.holds) && of_bend.is_none();
            evidence.extend(of_tail);
            evidence.extend(of_bend);
            if goes_on {
                return (TrendStrength::Grows, trend::p_above(tail.z), evidence);
            }
        }
        let verdict = match slows {
            Some(_) => TrendStrength::Slows,
            None if says => TrendStrength::MayGrow,
            None => TrendStrength::Quiet,
        };
        (verdict, p, evidence)
    }
}

/// What the two parts of the rule say together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TrendStrength {
    /// Both: it grows.
    Grows,
    /// One, by itself beyond what chance explains.
    MayGrow,
    /// It would be one of these, if it did not clearly slow down.
    Slows,
    /// Neither.
    Quiet,
}

fn state(n_runs: usize, verdict: TrendStrength, rules: &Rules) -> GrowthVerdict {
    match verdict {
        _ if n_runs < rules.min_runs => GrowthVerdict::NotEnoughData,
        TrendStrength::Grows => GrowthVerdict::Leak,
        TrendStrength::MayGrow => GrowthVerdict::Suspected,
        TrendStrength::Slows | TrendStrength::Quiet => GrowthVerdict::Stable,
    }
}

impl Outline {
    fn new(values: &[f64]) -> Self {
        let envelope = trend::envelope(values);
        let [first, .., last] = *envelope else {
            return Self {
                kept: 0.0,
                n_rises: 0.0,
                shares: (0.0, 0.0),
            };
        };
        let [_, later @ ..] = trend::quarter_shares(&envelope);
        Self {
            kept: last - first,
            n_rises: trend::n_rises(&envelope) as f64,
            shares: (later.into_iter().fold(f64::INFINITY, f64::min), later[2]),
        }
    }

    /// Without this no part of the rule says that it grows.
    fn grows(&self, min_growth: Bytes) -> bool {
        self.kept > min_growth.as_f64() && self.n_rises > LEAST_RISES
    }
}

impl Whole {
    /// `None` where there are too few values for a trend.
    fn new(values: &[f64]) -> Option<Self> {
        let found = trend::trend(values)?;
        Some(Self {
            slope: found.slope,
            // Too few points for blocks: the floor cannot be said to rise.
            block_t: trend::block_t(&values[values.len() / 4..]).unwrap_or(0.0),
            z: found.z,
            rise: trend::relative_rise(values, found.slope),
        })
    }

    /// In the order in which [`SeriesStats::weigh`] reads them.
    fn figures(&self, outline: &Outline, min_growth: Bytes, rules: &Rules) -> [Evidence; 7] {
        let (least_share, last_share) = outline.shares;
        [
            (Statistic::Kept, outline.kept, min_growth.as_f64()),
            (Statistic::NRises, outline.n_rises, LEAST_RISES),
            (Statistic::BlockT, self.block_t, rules.block_t),
            (
                Statistic::LastQuarterShare,
                last_share,
                rules.last_quarter_share,
            ),
            (Statistic::TrendZ, self.z, rules.trend_z),
            (
                Statistic::LeastQuarterShare,
                least_share,
                rules.quarter_share,
            ),
            (Statistic::RelativeRise, self.rise, rules.relative_rise),
        ]
        .map(|(statistic, value, threshold)| Evidence::above(statistic, value, threshold))
    }
}

impl Tail {
    /// `None` where the second half is too short for blocks.
    fn new(values: &[f64]) -> Option<Self> {
        let (before, tail) = values.split_at(values.len() / 2);
        let block_t = trend::block_t(tail)?;
        let found = trend::trend(tail)?;
        let envelope = trend::envelope(tail);
        Some(Self {
            kept: envelope[envelope.len() - 1] - envelope[0],
            low: envelope[0],
            reached: trend::quantile(&before[before.len() / 2..], 0.5),
            block_t,
            rise: trend::relative_rise(tail, found.slope),
            z: found.z,
            late_share: late_share(tail, found.slope),
        })
    }

    fn figures(&self, min_growth: Bytes, rules: &Rules) -> [Evidence; 4] {
        [
            (Statistic::TailKept, self.kept, min_growth.as_f64()),
            (Statistic::TailLow, self.low, self.reached.next_down()),
            (Statistic::TailBlockT, self.block_t, rules.tail_block_t),
            (Statistic::TailRise, self.rise, rules.tail_rise),
        ]
        .map(|(statistic, value, threshold)| Evidence::above(statistic, value, threshold))
    }
}

/// The share of its slope that a series has in its last third, if it clearly bends down; else all.
fn late_share(values: &[f64], slope: f64) -> f64 {
    let share = trend::late_share(values, slope);
    if share < 1.0 && trend::curvature_t(values) < BENDS {
        share
    } else {
        1.0
    }
}

/// The slope of two points or fewer, as its own interval.
fn plain_slope(values: &[f64]) -> (f64, (f64, f64)) {
    let slope = match values {
        [.., before, last] => last - before,
        _ => 0.0,
    };
    (slope, (slope, slope))
}

/// From the first level to the last.
pub(super) fn total(levels: &[Bytes]) -> ByteDelta {
    match levels {
        [first, .., last] => last.since(*first),
        _ => ByteDelta::ZERO,
    }
}
