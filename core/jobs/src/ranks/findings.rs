//! Compares the ranks of a job: one finding for each cause.

use super::steps::RankSteps;
use super::{Rank, RankEnding, RankRow};
use gpumem_analyzer::GrowthVerdict;
use gpumem_model::units::{Bytes, Nanos};

/// A session's last moments may not have reached the disk.
const UNHEARD: Nanos = Nanos::millis(3_000);
/// With fewer ranks, one that differs is not reported.
const MIN_RANKS: usize = 3;
/// A rank differs by more than this many median absolute deviations (scaled to a standard deviation),
const N_DEVIATIONS: f64 = 5.0;
/// by more than this part of the median,
const SHARE: f64 = 0.2;
/// and by more than this.
const MUCH: Bytes = Bytes::mib(64);
/// The median absolute deviation of a normal distribution is its standard deviation over this (Hampel, 1974).
const TO_DEVIATION: f64 = 1.4826;

/// One cause, and the ranks on which it is seen.
#[derive(Debug, Clone, PartialEq)]
pub struct RankFinding {
    /// The kind of cause.
    pub cause: RankCause,
    /// The rows on which it is seen: the first or the fastest one first.
    pub rows: Vec<usize>,
}

/// The kinds of causes.
#[derive(Debug, Clone, PartialEq)]
pub enum RankCause {
    /// Ranks ended badly. The first is the cause; `later` ended after it.
    Ended {
        /// The step that the first rank was in, from 1; `None` if it has no steps.
        step: Option<u64>,
        /// The request that failed there, if memory ran out.
        wanted: Option<Bytes>,
        /// Rows that ended badly after the first, with the time between; of one that was killed, at most.
        later: Vec<(usize, Nanos)>,
    },
    /// Ranks keep more with every step: the same cell and the same name.
    Growth {
        /// `Leak` if one of them leaks beyond doubt, else `Suspected`.
        state: GrowthVerdict,
    },
    /// Ranks whose highest level is not that of the others.
    Differs {
        /// The median of the ranks that do not grow.
        median: Bytes,
        /// The interquartile range.
        spread: Bytes,
    },
}

pub(super) fn findings(job: &[Rank], rows: &[RankRow], steps: &[RankSteps]) -> Vec<RankFinding> {
    let mut findings: Vec<RankFinding> = ended(job, rows).into_iter().collect();
    findings.extend(growing(job, rows, steps));
    findings.extend(differing(rows));
    findings
}

fn ended(job: &[Rank], rows: &[RankRow]) -> Option<RankFinding> {
    let mut bad: Vec<usize> = (0..rows.len())
        .filter(|idx| rows[*idx].ending.is_bad())
        .collect();
    bad.sort_by_key(|idx| at_the_latest(&rows[*idx]));
    let first = *bad.first()?;
    let row = &rows[first];
    let oom = || {
        let mut runs = job[row.rank].recording.runs().iter().rev();
        runs.find_map(|run| run.oom.as_ref()?.figures.wanted)
    };
    let wanted = (row.ending == RankEnding::OutOfMemory).then(oom).flatten();
    let later = bad[1..].iter();
    let later = later.map(|idx| (*idx, at_the_latest(&rows[*idx]).since(row.until)));
    Some(RankFinding {
        cause: RankCause::Ended {
            step: (row.n_steps > 0).then_some(row.n_steps + 1),
            wanted,
            later: later.collect(),
        },
        rows: vec![first],
    })
}

/// When a rank had ended. The last known instant of a killed rank is before its end, so it must not count as the
/// cause of an error that another rank reported later.
fn at_the_latest(row: &RankRow) -> Nanos {
    if row.ending.is_reported() {
        row.until
    } else {
        row.until + UNHEARD
    }
}

/// Growth of the same finding, with the same holder, is one cause.
fn growing(job: &[Rank], rows: &[RankRow], steps: &[RankSteps]) -> Vec<RankFinding> {
    let mut causes: Vec<(String, Option<String>, GrowthVerdict, Vec<usize>)> = Vec::new();
    for (idx, row) in rows.iter().enumerate() {
        let Some((finding, growth)) = job[row.rank].growth(&steps[row.rank]) else {
            continue;
        };
        // Each rank has a device of its own.
        let device = &job[row.rank].recording.device(finding.device).key;
        let id = finding.id.replace(&device.to_string(), "");
        let is_same = |cause: &&mut (String, Option<String>, GrowthVerdict, Vec<usize>)| {
            cause.0 == id && cause.1 == growth.holder
        };
        match causes.iter_mut().find(is_same) {
            Some((_, _, state, seen)) => {
                *state = (*state).min(growth.state);
                seen.push(idx);
            }
            None => causes.push((id, growth.holder, growth.state, vec![idx])),
        }
    }
    causes.sort_by_key(|cause| cause.2);
    let since = |idx: &usize| {
        let growth = rows[*idx].growth.as_ref();
        growth.map(|it| (it.since, std::cmp::Reverse(it.per_step)))
    };
    let finding = |(_, _, state, mut seen): (_, _, GrowthVerdict, Vec<usize>)| {
        seen.sort_by_key(since);
        RankFinding {
            cause: RankCause::Growth { state },
            rows: seen,
        }
    };
    causes.into_iter().map(finding).collect()
}

/// Ranks whose highest level is far from the median. Ranks that grow have a finding already and do not count.
fn differing(rows: &[RankRow]) -> Option<RankFinding> {
    let kind = |row: &RankRow| {
        let label = row.device.as_deref().unwrap_or_default();
        label
            .trim_end_matches(|c: char| c.is_ascii_digit())
            .to_owned()
    };
    let is_alike =
        |row: &RankRow| row.growth.is_none() && Some(kind(row)) == rows.first().map(kind);
    let known = rows
        .iter()
        .filter(|row| is_alike(row))
        .filter_map(|row| row.peak);
    let mut peaks: Vec<f64> = known.map(Bytes::as_f64).collect();
    if peaks.len() < MIN_RANKS {
        return None;
    }
    let middle = median(&mut peaks);
    let mut deviations: Vec<f64> = peaks.iter().map(|peak| (peak - middle).abs()).collect();
    let deviation = TO_DEVIATION * median(&mut deviations);
    let bound = (N_DEVIATIONS * deviation)
        .max(SHARE * middle)
        .max(MUCH.as_f64());
    let far = |row: &RankRow| row.peak.map_or(0.0, |peak| (peak.as_f64() - middle).abs());
    let tells = |row: &RankRow| is_alike(row) && far(row) > bound;
    let mut seen: Vec<usize> = (0..rows.len()).filter(|idx| tells(&rows[*idx])).collect();
    seen.sort_by(|a, b| far(&rows[*b]).total_cmp(&far(&rows[*a])));
    let (low, high) = (peaks[peaks.len() / 4], peaks[peaks.len() * 3 / 4]);
    (!seen.is_empty()).then(|| RankFinding {
        cause: RankCause::Differs {
            median: Bytes::new(middle as u64),
            spread: Bytes::new((high - low) as u64),
        },
        rows: seen,
    })
}

/// Sorts; the mean of both in the middle.
fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    let n = values.len();
    f64::midpoint(values[(n - 1) / 2], values[n / 2])
}
