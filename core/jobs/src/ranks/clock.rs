//! Corrects the clocks of a job's machines by the ends of steps.
//!
//! Ranks of one machine share its clock. Between machines, a step that all ranks end together shows how far a clock
//! is ahead: the median over the steps, and over the machine's ranks, of its instant minus the median instant of all
//! ranks. The rest is skew.

use super::steps::RankSteps;
use gpumem_model::units::Nanos;

/// With fewer common steps, clocks are not corrected.
const MIN_STEPS: usize = 4;
/// At most this many steps are compared, spread over all.
const MAX_STEPS: usize = 512;

#[derive(Debug, Default)]
pub(super) struct Clocks {
    /// By how many nanoseconds the clock of each rank is ahead.
    pub(super) ahead: Vec<i128>,
    pub(super) skew: Option<Nanos>,
    pub(super) correction: Option<Nanos>,
}

/// An instant by the corrected clock.
pub(super) fn corrected(at: Nanos, ahead: i128) -> Nanos {
    let at = (i128::from(at.get()) - ahead).clamp(0, i128::from(u64::MAX));
    Nanos::new(at as u64)
}

pub(super) fn aligned(nodes: &[&str], steps: &[RankSteps]) -> Clocks {
    let common = common(steps);
    let mut ahead = vec![0; steps.len()];
    let is_one = nodes.windows(2).all(|pair| pair[0] == pair[1]);
    if common.len() < MIN_STEPS {
        return Clocks {
            ahead,
            ..Clocks::default()
        };
    }
    let middle: Vec<i128> = common.iter().map(|ends| median(ends.clone())).collect();
    if !is_one {
        for idx in 0..steps.len() {
            let same = (0..steps.len()).filter(|other| nodes[*other] == nodes[idx]);
            let of_node = same.flat_map(|other| {
                let ends = common.iter().zip(&middle);
                ends.map(move |(ends, middle)| ends[other] - middle)
            });
            ahead[idx] = median(of_node.collect());
        }
    }
    let spread = |ends: &Vec<i128>| {
        let ends = ends.iter().zip(&ahead).map(|(at, ahead)| at - ahead);
        let (first, last) = ends.fold((i128::MAX, i128::MIN), |(first, last), at| {
            (first.min(at), last.max(at))
        });
        last - first
    };
    let skew = median(common.iter().map(spread).collect());
    let nanos = |it: i128| Nanos::new(u64::try_from(it).unwrap_or_default());
    let most = ahead.iter().map(|it| it.abs()).max().unwrap_or_default();
    Clocks {
        skew: (steps.len() > 1).then(|| nanos(skew)),
        correction: (most > 0).then(|| nanos(most)),
        ahead,
    }
}

/// For each step whose end every rank with steps has, the instants of the ranks.
fn common(steps: &[RankSteps]) -> Vec<Vec<i128>> {
    let Some(fewest) = steps.iter().min_by_key(|it| it.numbers().count()) else {
        return Vec::new();
    };
    let of_all = |number| {
        steps
            .iter()
            .map(|it| it.at(number))
            .collect::<Option<Vec<_>>>()
    };
    // The start of the loop is not the end of a step.
    let known: Vec<Vec<i128>> = fewest
        .numbers()
        .filter(|number| *number > 0)
        .filter_map(of_all)
        .collect();
    let each = known.len().div_ceil(MAX_STEPS).max(1);
    known.into_iter().step_by(each).collect()
}

/// The lower one of an even number; 0 of none.
fn median(mut values: Vec<i128>) -> i128 {
    values.sort_unstable();
    let middle = values.len().saturating_sub(1) / 2;
    values.get(middle).copied().unwrap_or_default()
}
