//! What growth is called, and why: every rule of precedence, as the table in `docs/findings.md` has them.

use super::{Finding, FindingKind, Withdrawn};
use crate::growth::GrowthVerdict;
use crate::reason::Reason;
use gpumem_model::severity::Severity;

/// What is known of a series that may grow. Its caller fills it; no caller decides.
#[derive(Debug, Clone)]
pub(super) struct SeriesFacts {
    /// What its levels alone say.
    pub(super) levels: GrowthVerdict,
    /// Among as many series chance may explain its trend.
    pub(super) may_be_chance: bool,
    /// A name that would be growth if it did not slow down.
    pub(super) slows: bool,
    /// What the allocators' counters say.
    pub(super) allocations: Allocations,
    /// Who holds it; `None` if its levels give no reason to ask.
    pub(super) holders: Option<HolderFacts>,
}

/// How many allocations were alive after each run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Allocations {
    /// More in nearly every run.
    Grew { n_grown: usize, n_runs: usize },
    /// Never more after the first run.
    Stayed { n_runs: usize },
    /// Neither, or not known.
    Unclear,
}

/// Who holds what grew.
#[derive(Debug, Clone)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub(super) struct HolderFacts {
    /// There is a name.
    pub(super) is_named: bool,
    /// What that name does.
    pub(super) course: NameCourse,
    /// The name had more after each of five runs or more, and is an accident.
    pub(super) is_proven: bool,
    /// The name had more storages after each of four runs or more.
    pub(super) collects_early: bool,
    /// On the host, memory that was allocated before is written.
    pub(super) writes_first: bool,
    /// The name is cyclic garbage.
    pub(super) waits_for_collector: bool,
    /// A cell takes older items out of it again, at a size that is not known.
    pub(super) is_trimmed: bool,
    /// Whether somebody may want it.
    pub(super) intent: Intent,
    /// What it does to the device, if that is grave.
    pub(super) consequence: Option<Reason>,
    /// The loop, if the series is of one that nobody has marked.
    pub(super) in_loop: Option<LoopFacts>,
}

/// What a name does from run to run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NameCourse {
    /// It has most of what grew, and more after each run.
    Collects,
    /// It grows to a bound.
    Ends(Reason),
    /// Neither is known.
    Unclear,
}

/// Whether somebody may want what a name holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Intent {
    /// There is a sign of an accident.
    Accident,
    /// There is none, or a cell uses all of it: so the reason says.
    May(Reason),
    /// Nobody has looked.
    Unknown,
}

/// What is known of a loop beside its levels.
#[derive(Debug, Clone)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub(super) struct LoopFacts {
    /// The run filled a name with tensors of each iteration.
    pub(super) is_filled: bool,
    /// It grew in each of five iterations or more.
    pub(super) is_steady: bool,
    /// The name has most of what grew.
    pub(super) has_most: bool,
    /// The name keeps a graph.
    pub(super) has_graph: bool,
    /// Its levels are those of the host.
    pub(super) is_host: bool,
    /// No loop was counted, only seconds.
    pub(super) is_of_time: bool,
    /// Each pass of the loop around it may have begun anew.
    pub(super) may_begin_anew: bool,
    /// The name is a collection of several tensors.
    pub(super) is_collection: bool,
}

impl SeriesFacts {
    /// It grows, so that the names that hold it have a say. Its levels show that, or what a name does.
    pub(super) fn grows(&self) -> bool {
        let of_name = |it: &HolderFacts| {
            let is_filled = it.in_loop.as_ref().is_some_and(|it| it.is_filled);
            is_filled || it.is_proven
        };
        self.levels.grows() || self.slows || self.holders.as_ref().is_some_and(of_name)
    }

    /// How strong the signs of growth are together, and what decided that.
    fn strength(&self, holders: &HolderFacts) -> (GrowthVerdict, Option<Reason>) {
        let is_certain = self.levels == GrowthVerdict::Leak && !self.may_be_chance;
        let allocations = match self.allocations {
            known if self.levels.grows() => known,
            _ => Allocations::Unclear,
        };
        match allocations {
            Allocations::Grew { n_grown, n_runs } if !is_certain => {
                let grew = Reason::AllocationsGrew { n_grown, n_runs };
                (GrowthVerdict::Leak, Some(grew))
            }
            // A name holds what grows in its place as well: the counters know better.
            Allocations::Stayed { n_runs } if is_certain => {
                let stayed = Reason::AllocationsStayed { n_runs };
                (GrowthVerdict::Suspected, Some(stayed))
            }
            _ if is_certain => (GrowthVerdict::Leak, None),
            _ if self.grows() && holders.course == NameCourse::Collects => {
                (GrowthVerdict::Leak, None)
            }
            _ => (GrowthVerdict::Suspected, None),
        }
    }
}

/// What growth is called, and why: the first rule that applies.
pub(super) fn decide(facts: &SeriesFacts) -> (GrowthVerdict, Reason) {
    let Some(holders) = &facts.holders else {
        return quiet(facts);
    };
    let unclear = if holders.is_named {
        Reason::NotBeyondDoubt
    } else {
        Reason::HolderUnknown
    };
    // What has a bound has it from the first run on.
    if holders.writes_first {
        return (GrowthVerdict::Stable, Reason::FirstWrites);
    }
    if let NameCourse::Ends(reason) = holders.course {
        return (GrowthVerdict::Stable, reason);
    }
    let is_steady = |it: &LoopFacts| it.is_steady && it.has_most;
    let is_steady = facts.levels == GrowthVerdict::NotEnoughData
        && holders.in_loop.as_ref().is_some_and(is_steady);
    if !facts.grows() && !is_steady {
        return match (quiet(facts), holders.intent) {
            ((GrowthVerdict::NotEnoughData, _), Intent::May(reason)) if holders.collects_early => {
                (GrowthVerdict::NotEnoughData, reason)
            }
            ((GrowthVerdict::NotEnoughData, _), _) if holders.waits_for_collector => {
                (GrowthVerdict::NotEnoughData, Reason::WaitsForCollector)
            }
            (quiet, _) => quiet,
        };
    }
    if let Some(it) = &holders.in_loop {
        // The host's memory may grow by what no program holds. What takes its time to be loaded grows by the
        // second, too: what collects has no end.
        let needs_collection = it.is_of_time && !(holders.is_named && it.is_collection);
        // One tensor that has grown in a pass may be the last pass's alone.
        let is_of_a_pass =
            it.may_begin_anew && holders.is_named && !it.is_collection && !it.has_graph;
        if it.is_host && !it.has_most || needs_collection || is_of_a_pass {
            return (GrowthVerdict::Stable, Reason::NotCollected);
        }
        // What a comprehension makes has no name yet.
        if !holders.is_named && holders.intent != Intent::May(Reason::Meant) {
            return (GrowthVerdict::Suspected, Reason::HolderUnknown);
        }
    }
    // However soon it fills the device.
    if holders.waits_for_collector {
        return (GrowthVerdict::Suspected, Reason::WaitsForCollector);
    }
    if holders.is_trimmed {
        return (GrowthVerdict::Suspected, Reason::Trimmed);
    }
    let (state, decided) = facts.strength(holders);
    match (&holders.in_loop, holders.intent) {
        // The user did not ask about a loop, and it may be there to collect.
        (Some(_), Intent::May(reason)) => (GrowthVerdict::Suspected, reason),
        // A graph that each iteration keeps is a leak always.
        (Some(it), Intent::Accident) if it.has_graph && it.has_most => {
            (GrowthVerdict::Leak, Reason::Accident)
        }
        _ if state == GrowthVerdict::Suspected => (state, decided.unwrap_or(unclear)),
        (None, Intent::May(reason)) => match holders.consequence {
            Some(consequence) => (state, decided.unwrap_or(consequence)),
            None => (GrowthVerdict::Suspected, reason),
        },
        (_, Intent::Accident) if holders.is_named => (state, decided.unwrap_or(Reason::Accident)),
        _ => (state, decided.unwrap_or(Reason::HolderUnknown)),
    }
}

fn quiet(facts: &SeriesFacts) -> (GrowthVerdict, Reason) {
    match facts.levels {
        GrowthVerdict::NotEnoughData => (GrowthVerdict::NotEnoughData, Reason::TooFewRuns),
        _ => (GrowthVerdict::Stable, Reason::Stopped),
    }
}

impl Finding {
    /// Growth of a device or a cache, which no name can hold, is never beyond doubt.
    pub(super) fn without_holder(self) -> Self {
        Self {
            severity: Severity::Warning,
            state: Some(GrowthVerdict::Suspected),
            reason: Some(Reason::HolderUnknown),
            ..self
        }
    }
}

/// What a finding of growth is about.
pub(super) fn kind(
    state: GrowthVerdict,
    reason: Reason,
    withdrawn: Option<Withdrawn>,
) -> FindingKind {
    match state {
        _ if withdrawn.is_some() => FindingKind::Settled,
        GrowthVerdict::Leak => FindingKind::Leak,
        GrowthVerdict::Suspected | GrowthVerdict::NotEnoughData => FindingKind::Growing,
        GrowthVerdict::Stable if reason.is_bound() => FindingKind::Bounded,
        GrowthVerdict::Stable => FindingKind::Settled,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn held(intent: Intent) -> HolderFacts {
        HolderFacts {
            is_named: true,
            course: NameCourse::Unclear,
            is_proven: false,
            collects_early: false,
            writes_first: false,
            waits_for_collector: false,
            is_trimmed: false,
            intent,
            consequence: None,
            in_loop: None,
        }
    }

    #[track_caller]
    fn check(
        levels: GrowthVerdict,
        change: impl Fn(&mut HolderFacts),
        expected: (GrowthVerdict, Reason),
    ) {
        let mut holders = held(Intent::May(Reason::MayBeMeant));
        change(&mut holders);
        let facts = SeriesFacts {
            levels,
            may_be_chance: false,
            slows: false,
            allocations: Allocations::Unclear,
            holders: Some(holders),
        };
        assert_eq!(decide(&facts), expected);
    }

    #[test]
    fn the_first_rule_that_applies_decides() {
        use GrowthVerdict::{Leak, NotEnoughData, Stable, Suspected};
        let soon = Reason::FullSoon { n_runs: 24 };
        check(Leak, |_| {}, (Suspected, Reason::MayBeMeant));
        check(Leak, |it| it.consequence = Some(soon), (Leak, soon));
        let is_accident = |it: &mut HolderFacts| it.intent = Intent::Accident;
        check(Leak, is_accident, (Leak, Reason::Accident));
        check(Suspected, is_accident, (Suspected, Reason::NotBeyondDoubt));
        check(
            NotEnoughData,
            is_accident,
            (NotEnoughData, Reason::TooFewRuns),
        );
        let asks = |it: &mut HolderFacts| it.collects_early = true;
        check(NotEnoughData, asks, (NotEnoughData, Reason::MayBeMeant));
        let is_proven = |it: &mut HolderFacts| {
            (it.intent, it.course, it.is_proven) = (Intent::Accident, NameCourse::Collects, true);
        };
        check(NotEnoughData, is_proven, (Leak, Reason::Accident));
        let waits = |it: &mut HolderFacts| {
            (it.consequence, it.waits_for_collector) = (Some(soon), true);
        };
        check(Leak, waits, (Suspected, Reason::WaitsForCollector));
        let early = (NotEnoughData, Reason::WaitsForCollector);
        check(NotEnoughData, waits, early);
        let ends = |it: &mut HolderFacts| {
            (it.waits_for_collector, it.course) = (true, NameCourse::Ends(Reason::OneTensor));
        };
        check(NotEnoughData, ends, (Stable, Reason::OneTensor));
        let unnamed = |intent: Intent| {
            move |it: &mut HolderFacts| {
                it.is_named = false;
                it.intent = intent;
                it.in_loop = Some(LoopFacts {
                    is_filled: false,
                    is_steady: true,
                    has_most: false,
                    has_graph: false,
                    is_host: false,
                    is_of_time: false,
                    may_begin_anew: false,
                    is_collection: false,
                });
            }
        };
        let of_accident = unnamed(Intent::Accident);
        check(Leak, of_accident, (Suspected, Reason::HolderUnknown));
        // A comprehension.
        let is_meant = unnamed(Intent::May(Reason::Meant));
        check(Leak, is_meant, (Suspected, Reason::Meant));
    }
}
