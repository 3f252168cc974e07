//! What is different if the steps that grow are iterations of a loop that nobody has marked.

use super::{Context, DecidedBy, Details, Finding, Growth, Judged, STILL_THERE, State, StepSeries};
use crate::held::{self, Growers, Looks};
use crate::loop_place::LoopUnit;
use crate::suggest;
use gpumem_heap::{Uses, is_data};
use gpumem_model::holders::Holder;
use gpumem_model::recording::Run;
use gpumem_model::units::{ByteDelta, Bytes, Nanos};

/// A collection of fewer entries does not tell what each of them takes.
const MIN_ENTRIES: u64 = 6;

/// What grows from run to run and from iteration to iteration is told once: of the runs, if they are enough.
pub(super) fn tell_once(findings: &mut Vec<Finding>) {
    let cell = |it: &Finding| it.cell.as_ref().map(|cell| cell.idx);
    let grows = |it: &Finding| matches!(it.state, Some(State::Leak | State::Suspected));
    let of_runs = |it: &Finding| matches!(&it.details, Details::Growth(of) if !of.steps);
    let is_same = |a: &Finding, b: &Finding| (cell(a), a.device) == (cell(b), b.device);
    let (in_loops, others): (Vec<Finding>, Vec<Finding>) =
        findings.drain(..).partition(|it| it.in_loop().is_some());
    let is_told = |it: &&Finding| {
        let mut of_runs = others.iter().filter(|other| of_runs(other) && grows(other));
        of_runs.any(|other| is_same(it, other))
    };
    let mut told: Vec<Finding> = Vec::new();
    for finding in in_loops.iter().filter(|it| !is_told(it)) {
        // Loops that no stack has shown in each other see the same name grow.
        let same = told.iter_mut().find(|it| is_of_one_name(it, finding));
        match same {
            Some(same) if is_users(finding) && !is_users(same) => *same = finding.clone(),
            Some(_) => {}
            None => told.push(finding.clone()),
        }
    }
    let is_early = |it: &Finding| it.state == Some(State::NotEnoughData) && of_runs(it);
    let others = others
        .into_iter()
        .filter(|it| !is_early(it) || !told.iter().any(|of_loop| is_same(it, of_loop)));
    findings.extend(others);
    findings.extend(told);
}

/// Both are of the run's loops, and of what one name has.
fn is_of_one_name(a: &Finding, b: &Finding) -> bool {
    let name = |it: &Finding| it.holders.first().map(held::key);
    name(a).is_some() && (name(a), &a.runs, a.device) == (name(b), &b.runs, b.device)
}

/// The loop stands in a cell.
fn is_users(finding: &Finding) -> bool {
    let at = finding.in_loop();
    at.is_some_and(|it| it.file.is_empty())
}

/// Levels of a loop that grow by a quarter of what is worth a word may be all that was read of it: names tell.
pub(super) fn min_growth_of_steps(context: Context<'_>, series: &StepSeries) -> Bytes {
    let least = context.min_growth(series.key.device);
    let share = if series.in_loop.is_some() { 4 } else { 1 };
    Bytes::new(least.get() / share)
}

/// What names had at a look inside of a run is less than what grew until its end: the next look was due when
/// it had doubled.
const MOST_INSIDE: f64 = 0.25;
const MOST_AFTER: f64 = 0.5;

/// A name was filled in a run that gave it this share of what it has, …
const FILLED: f64 = 0.8;
/// … and at most so many entries in each iteration: an output, a loss and what belongs to them.
const MAX_ENTRIES_EACH: u64 = 4;
/// Iterations that were counted may have taken so many times as long as those before.
const SLOWER: f64 = 1.25;
/// If the loop may have turned so many times as often as it was counted, an average says little.
const UNCOUNTED: f64 = 1.3;

/// What a function keeps until it returns is worth a word from so many bytes on.
const MUCH_RETURNED: Bytes = Bytes::mib(64);

impl Judged {
    /// Takes in who holds what was kept, by the looks after the runs. Looks inside of its run tell it while the
    /// run goes on, of what its end has given back, and where the look after it had no answer.
    pub(super) fn take_growers(&mut self, context: Context<'_>, kept: Bytes) {
        let (runs, device) = (&self.runs, self.key.device);
        let growers =
            |looks| held::growers(context.recording, runs, device, self.steps, kept, looks);
        let last = runs.last().filter(|_| self.in_loop.is_some());
        let goes_on = last.is_some_and(|run| context.recording.run(*run).ended.is_none());
        let after = growers(Looks::AfterRuns);
        let is_gone = !self.is_left(context.rows) && !is_most(&after, STILL_THERE, kept);
        if goes_on || last.is_some() && (is_gone || !after.is_looked_at()) {
            self.looks = Looks::InsideRuns;
            self.growers = growers(Looks::InsideRuns);
        } else {
            self.growers = after;
        }
    }

    /// Its end has given back what a look inside of its run found.
    pub(super) fn is_returned(&self, context: Context<'_>) -> bool {
        let last = self.runs.last().filter(|_| self.looks == Looks::InsideRuns);
        let kept = self.kept().magnitude();
        last.is_some_and(|run| context.recording.run(*run).ended.is_some())
            && !self.is_left(context.rows)
            && kept >= MUCH_RETURNED
            && is_most(&self.growers, MOST_INSIDE, kept)
    }

    /// A name that was filled in the run with tensors of each iteration: no noise of the levels hides that.
    pub(super) fn trust_names(&mut self, context: Context<'_>, kept: Bytes) {
        let in_loop = self.in_loop.as_ref();
        let is_counted = in_loop.is_some_and(|it| it.unit != LoopUnit::Second);
        let is_unclear = matches!(self.growth.state, State::NotEnoughData | State::Stable);
        if !is_counted || !is_unclear || self.decided_by.is_some() {
            return;
        }
        let first = self.growers.holders.first();
        let first = first.filter(|_| is_most(&self.growers, MOST_AFTER, kept));
        let Some(first) = first.filter(|it| self.share_shown(context, it) >= MOST_INSIDE) else {
            return;
        };
        if let Some(each) = self.each_iteration(context, first) {
            self.growth.state = State::Suspected;
            self.growth.bytes_per_run = each;
            self.growth.interval = (each, each);
        }
    }

    /// The user has not asked about a loop, and it may be there to collect: only what nobody means to keep is
    /// a leak. A graph that each iteration keeps is one always.
    pub(super) fn weigh_loop(&mut self, context: Context<'_>, kept: Bytes) {
        let recording = context.recording;
        let is_of_time = self
            .in_loop
            .as_ref()
            .is_some_and(|it| it.unit == LoopUnit::Second);
        let is_accelerator = recording.device(self.key.device).kind.is_accelerator();
        let run = recording.run(*self.runs.last().expect("a series has runs"));
        let first = self.growers.holders.first();
        let most = match self.looks {
            Looks::InsideRuns => MOST_INSIDE,
            Looks::AfterRuns => MOST_AFTER,
        };
        let is_most = is_most(&self.growers, most, kept);
        let is_early = self.growth.state == State::NotEnoughData;
        let is_steady = self.grew_each_time() && self.n_chances >= held::ENOUGH_RUNS;
        if is_early && is_steady && is_most {
            self.growth.state = State::Suspected;
        }
        let grows = matches!(self.growth.state, State::Leak | State::Suspected);
        if !grows || self.decided_by.is_some() {
            return;
        }
        // The host's memory may grow by what no program holds.
        if !is_most && !is_accelerator {
            self.growth.state = State::Stable;
            return;
        }
        let Some(first) = first else {
            self.growth.state = if is_of_time {
                State::Stable
            } else {
                State::Suspected
            };
            return;
        };
        // What takes its time to be loaded grows by the second, too: what collects has no end.
        if is_of_time && !(is_data(first) && first.traits.n_tensors >= MIN_ENTRIES) {
            self.growth.state = State::Stable;
            return;
        }
        if self.growers.wait_for_collector() {
            self.growth.state = State::Suspected;
            self.decided_by = Some(DecidedBy::WaitsForCollector);
            return;
        }
        let by_name = if is_of_time {
            let seconds = run_time(run).map(|time| time.as_f64() / 1e9);
            let grown = first.grown.zip(seconds.filter(|it| *it > 0.0));
            grown.map(|(grown, seconds)| ByteDelta::from_f64(grown.as_f64() / seconds))
        } else {
            // The levels of an accelerator's allocator are exact.
            let of_host = || {
                let is_shown = self.share_shown(context, first) >= FILLED;
                let each = is_shown.then(|| self.each_iteration(context, first));
                let each = each.flatten();
                each.or_else(|| self.average_iteration(context, first))
            };
            if is_accelerator { None } else { of_host() }
        };
        if let Some(each) = by_name.or_else(|| each_entry(first, &self.growth)) {
            self.growth.bytes_per_run = each;
            self.growth.interval = (each, each);
        }
        let uses = suggest::uses(recording, run, first);
        let has_graph = first.traits.graph > Bytes::ZERO;
        let is_accident = match uses {
            Uses::GoesBack => false,
            Uses::Whole | Uses::None => self.growers.is_accident(is_accelerator),
            Uses::Little => true,
        };
        if is_accident && has_graph && is_most {
            self.growth.state = State::Leak;
        } else if !is_accident {
            self.growth.state = State::Suspected;
            self.decided_by = Some(DecidedBy::MayBeMeant);
        }
    }

    /// What a name has more after each iteration, if the run filled it with so many entries in each. Of the
    /// numbers that may be, the one that the levels come closest to.
    fn each_iteration(&self, context: Context<'_>, holder: &Holder) -> Option<ByteDelta> {
        let n_counted = self.n_runs as u64;
        let (n_entries, n_bytes) = entries(holder);
        let n_most = SLOWER * self.most_iterations(context).unwrap_or_default();
        let n_most = n_most.max(2.0 * n_counted as f64);
        let grown = holder.grown?.as_f64();
        let is_filled = grown >= FILLED * n_bytes;
        // Another loop of the run may have filled it.
        let is_seen = self.kept().as_f64() >= MOST_INSIDE * grown;
        if n_entries < n_counted.max(MIN_ENTRIES) || !is_filled || !is_seen {
            return None;
        }
        let rate = self.growth.bytes_per_run.as_f64();
        let each = (1..=MAX_ENTRIES_EACH)
            .map(|n| n as f64)
            .map(|n| (n_entries as f64 / n, n_bytes * n / n_entries as f64))
            // The last one's may have other names, too.
            .filter(|(n, _)| n + 1.0 >= n_counted as f64 && *n <= n_most)
            .map(|(_, each)| each)
            .min_by(|a, b| (a - rate).abs().total_cmp(&(b - rate).abs()));
        each.map(ByteDelta::from_f64)
    }

    /// What an iteration of a run that is over kept on average, by what its first name has more and the level
    /// shows. How often the loop turned before it was counted is estimated by how often it can have.
    fn average_iteration(&self, context: Context<'_>, holder: &Holder) -> Option<ByteDelta> {
        let n_counted = self.n_runs as f64;
        let n_most = self.most_iterations(context)?.max(n_counted);
        let is_certain = self.looks == Looks::AfterRuns && n_most <= UNCOUNTED * n_counted;
        let n = n_counted.midpoint(n_most);
        let shown = self.shown(context, holder).filter(|_| is_certain)?;
        Some(ByteDelta::from_f64(shown.as_f64() / n))
    }

    /// What a name has more since the run began. The host's level may show less of it: free memory may have
    /// taken the rest, and what a program never wrote takes none.
    fn shown(&self, context: Context<'_>, holder: &Holder) -> Option<ByteDelta> {
        let device = self.key.device;
        let row = context.rows.row(*self.runs.last()?, device);
        let is_host = !context.recording.device(device).kind.is_accelerator();
        let kept = row.and_then(|row| row.kept).filter(|_| is_host);
        let grown = holder.grown?;
        Some(kept.map_or(grown, |kept| kept.min(grown)))
    }

    fn share_shown(&self, context: Context<'_>, holder: &Holder) -> f64 {
        let grown = holder.grown.unwrap_or_default().as_f64().max(1.0);
        self.shown(context, holder).unwrap_or_default().as_f64() / grown
    }

    /// So often the loop can have turned in its run, if it always took as long as when it was counted.
    fn most_iterations(&self, context: Context<'_>) -> Option<f64> {
        let time = run_time(context.recording.run(*self.runs.last()?))?;
        Some(time.as_f64() / self.period?.as_f64().max(1.0))
    }

    /// What the first name of a loop's growth has more since the run began: the loop is counted from a moment
    /// on.
    pub(super) fn grown_by_name(&self) -> ByteDelta {
        let first = self.growers.holders.first();
        let named = first.and_then(|holder| holder.grown);
        named.filter(|_| self.in_loop.is_some()).unwrap_or_default()
    }

    /// The same, as far as the level shows it.
    pub(super) fn shown_by_name(&self, context: Context<'_>) -> ByteDelta {
        let first = self.growers.holders.first();
        let shown = first.and_then(|holder| self.shown(context, holder));
        shown.filter(|_| self.in_loop.is_some()).unwrap_or_default()
    }

    /// There was a look, and nothing that it found is there to be kept.
    pub(super) fn is_meant_by_nobody(&self) -> bool {
        self.growers.is_looked_at() && self.decided_by.is_none()
    }
}

fn run_time(run: &Run) -> Option<Nanos> {
    Some(run.ended?.since(run.started))
}

/// The first of them has this share of what was kept.
fn is_most(growers: &Growers, share: f64, kept: Bytes) -> bool {
    let first = growers.holders.first();
    let grown = first.and_then(|holder| holder.grown);
    grown.is_some_and(|grown| grown.as_f64() >= share * kept.as_f64())
}

/// What each entry of a holder has, if that is what each iteration keeps as far as its levels tell.
fn each_entry(holder: &Holder, growth: &Growth) -> Option<ByteDelta> {
    let (n, n_bytes) = entries(holder);
    if n < MIN_ENTRIES {
        return None;
    }
    let each = ByteDelta::from_f64(n_bytes / n as f64);
    let off = (each.as_f64() / growth.bytes_per_run.as_f64() - 1.0).abs();
    let is_within = growth.interval.0 <= each && each <= growth.interval.1;
    (off <= 0.2 || is_within && off <= 0.5).then_some(each)
}

/// How many entries the container in a holder has that holds most of it, and their bytes; its tensors, if none
/// holds most.
fn entries(holder: &Holder) -> (u64, f64) {
    let mut branches = &holder.branches;
    while let Some(first) = branches.first() {
        if first.n_bytes.as_f64() < FILLED * holder.retained.as_f64() {
            break;
        }
        if first.n > 1 {
            return (first.n, first.n_bytes.as_f64());
        }
        branches = &first.branches;
    }
    (holder.traits.n_tensors, holder.retained.as_f64())
}

#[cfg(test)]
mod tests {
    use super::entries;
    use gpumem_model::holders::{Holder, HolderBranch, RootKind, Traits};
    use gpumem_model::units::Bytes;

    fn branch(n: u64, mib: u64, branches: Vec<HolderBranch>) -> HolderBranch {
        HolderBranch {
            n,
            n_bytes: Bytes::mib(mib),
            branches,
            ..HolderBranch::default()
        }
    }

    #[track_caller]
    fn check(branches: Vec<HolderBranch>, expected: (u64, u64)) {
        let holder = Holder {
            branches,
            traits: Traits {
                n_tensors: 80,
                ..Traits::default()
            },
            ..Holder::new(RootKind::Variable, "trainer", Bytes::mib(128))
        };
        let (n, mib) = expected;
        assert_eq!(entries(&holder), (n, Bytes::mib(mib).as_f64()));
    }

    #[test]
    fn entries_are_those_of_the_container_that_holds_most() {
        let list = || branch(1, 120, vec![branch(60, 120, Vec::new())]);
        check(vec![list(), branch(12, 8, Vec::new())], (60, 120));
        check(vec![branch(60, 128, Vec::new())], (60, 128));
        check(vec![branch(1, 128, Vec::new())], (80, 128));
        let half = || branch(1, 64, vec![branch(60, 64, Vec::new())]);
        check(vec![half(), half()], (80, 128));
    }
}
