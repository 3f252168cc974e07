//! Looks for holders during a run.

use super::course::IterationLevels;
use crate::device_view::DeviceView;
use gpumem_analyzer::Finding;
use gpumem_model::holders::Holder;
use gpumem_model::recording::Run;
use gpumem_model::units::{ByteDelta, Bytes, Nanos, Units, count};

/// Number of names shown per look.
const MAX_HOLDERS: usize = 3;

/// The result of a look during a run: [`LongRun::looks`](super::LongRun::looks).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InsideLook {
    /// Since the recording's start.
    pub at: Nanos,
    /// Since the run's start.
    pub after: Nanos,
    /// How many iterations had ended.
    pub iteration: u64,
    /// The names that grew: that of the finding first, then the one that grew most.
    pub holders: Vec<LookedHolder>,
}

/// A name with its memory at a look.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LookedHolder {
    /// Its path.
    pub name: String,
    /// Number of tensors; zero if unknown.
    pub n_tensors: u64,
    /// Its bytes.
    pub n_bytes: Bytes,
    /// How much more of both than at the look before.
    since: Option<(u64, ByteDelta)>,
    has_graph: bool,
}

impl LookedHolder {
    /// `12 tensors`; empty if that is not known.
    pub fn n_shown(&self) -> String {
        match usize::try_from(self.n_tensors) {
            Ok(n) if n > 0 => count(n, "tensor"),
            _ => String::new(),
        }
    }

    /// `12 tensors, 768 MiB`.
    pub fn count_and_size(&self, units: Units) -> String {
        match self.n_shown().as_str() {
            "" => units.size(self.n_bytes),
            n => format!("{n}, {}", units.size(self.n_bytes)),
        }
    }

    /// `+12 tensors of 64 MiB since the look before`, `each with its graph`.
    pub fn detail(&self, units: Units) -> Option<String> {
        match self.since {
            None => self.has_graph.then(|| "each with its graph".to_owned()),
            Some((n, more)) if n > 0 && more > ByteDelta::ZERO => {
                let each = units.size(Bytes::new(more.magnitude().get() / n));
                let n = count(usize::try_from(n).unwrap_or(usize::MAX), "tensor");
                Some(format!("+{n} of {each} since the look before"))
            }
            Some((_, more)) => Some(format!("{} since the look before", units.change(more))),
        }
    }
}

pub(super) fn looks(
    session: &DeviceView<'_>,
    run: &Run,
    axis: &IterationLevels,
    finding: Option<&Finding>,
) -> Vec<InsideLook> {
    let main = finding.and_then(|it| it.holders.first()).map(|it| &it.name);
    let mut looks: Vec<InsideLook> = Vec::new();
    for (at, found) in session.recording.holders_inside(run.idx, session.device) {
        let mut roots: Vec<&Holder> = found.roots.iter().collect();
        roots.sort_by_key(|it| Some(&it.name) != main);
        let holder = |it: &&Holder| {
            let earlier = looks.iter().rev().flat_map(|look| &look.holders);
            let earlier = earlier.clone().find(|known| known.name == it.name);
            LookedHolder {
                name: it.name.clone(),
                n_tensors: it.traits.n_tensors,
                n_bytes: it.retained,
                since: earlier.map(|known| {
                    let n_more = it.traits.n_tensors.saturating_sub(known.n_tensors);
                    (n_more, it.retained.since(known.n_bytes))
                }),
                has_graph: it.traits.graph > Bytes::ZERO,
            }
        };
        let holders = roots.iter().take(MAX_HOLDERS).map(holder).collect();
        looks.push(InsideLook {
            at,
            after: at.since(run.started),
            iteration: axis.iteration_in_run(at).floor() as u64,
            holders,
        });
    }
    looks
}
