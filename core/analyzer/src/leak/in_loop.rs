//! What is different if the steps that grow are iterations of a loop that nobody has marked.

use super::{Context, DecidedBy, Details, Finding, Growth, Judged, STILL_THERE, State, StepSeries};
use crate::held::{self, Growers, Looks};
use crate::loop_place::LoopUnit;
use crate::suggest;
use gpumem_heap::{Uses, is_data};
use gpumem_model::holders::Holder;
use gpumem_model::recording::Run;
use gpumem_model::units::{ByteDelta, Bytes, Nanos};

/// A collection of fewer tensors does not tell what each of them takes.
const MIN_TENSORS: u64 = 6;

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
/// … and so many tensors in each iteration: an output, a loss and what belongs to them.
const MOST_TENSORS: u64 = 4;
/// Iterations that were counted may have taken so many times as long as those before.
const SLOWER: f64 = 1.25;

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
        if let Some(each) = first.and_then(|it| self.each_iteration(context, it)) {
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
        if is_of_time && !(is_data(first) && first.traits.n_tensors >= MIN_TENSORS) {
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
            let each = self.each_iteration(context, first);
            each.filter(|_| !is_accelerator)
        };
        if let Some(each) = by_name.or_else(|| each_tensor(first, &self.growth)) {
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

    /// What a name has more after each iteration, if it was filled in the run with so many tensors in each. Of
    /// the numbers that may be, the one that the levels come closest to.
    fn each_iteration(&self, context: Context<'_>, holder: &Holder) -> Option<ByteDelta> {
        let (n_tensors, n_counted) = (holder.traits.n_tensors, self.n_runs as u64);
        let n_most = self.most_iterations(context).unwrap_or_default();
        let n_most = n_most.max(2.0 * n_counted as f64);
        let (retained, grown) = (holder.retained.as_f64(), holder.grown?.as_f64());
        let is_filled = grown >= FILLED * retained;
        // Another loop of the run may have filled it.
        let is_seen = self.kept().as_f64() >= MOST_INSIDE * grown;
        // On the host what was free may have.
        let device = self.key.device;
        let is_host = !context.recording.device(device).kind.is_accelerator();
        let row = context.rows.row(*self.runs.last()?, device);
        let kept_by_run = row.and_then(|row| row.kept).filter(|_| is_host);
        let is_new = kept_by_run.is_none_or(|kept| FILLED * grown <= kept.as_f64());
        if n_tensors < n_counted.max(MIN_TENSORS) || !is_filled || !is_seen || !is_new {
            return None;
        }
        let rate = self.growth.bytes_per_run.as_f64();
        let each = (1..=MOST_TENSORS)
            .map(|n| {
                (
                    n_tensors as f64 / n as f64,
                    retained * n as f64 / n_tensors as f64,
                )
            })
            // The last one's may have other names, too.
            .filter(|(n, _)| n + 1.0 >= n_counted as f64 && *n <= n_most)
            .map(|(_, each)| each)
            .min_by(|a, b| (a - rate).abs().total_cmp(&(b - rate).abs()));
        each.map(ByteDelta::from_f64)
    }

    /// So often the loop can have turned in its run, if it always took as long as when it was counted.
    fn most_iterations(&self, context: Context<'_>) -> Option<f64> {
        let time = run_time(context.recording.run(*self.runs.last()?))?;
        Some(SLOWER * time.as_f64() / self.period?.as_f64().max(1.0))
    }

    /// What the first name of a loop's growth has more since the run began: the loop is counted from a moment
    /// on.
    pub(super) fn grown_by_name(&self) -> ByteDelta {
        let first = self.growers.holders.first();
        let named = first.and_then(|holder| holder.grown);
        named.filter(|_| self.in_loop.is_some()).unwrap_or_default()
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

/// What each tensor of a holder has, if that is what each iteration keeps as far as its levels tell.
fn each_tensor(holder: &Holder, growth: &Growth) -> Option<ByteDelta> {
    let n = holder.traits.n_tensors;
    if n < MIN_TENSORS {
        return None;
    }
    let each = ByteDelta::new(i64::try_from(holder.retained.get() / n).ok()?);
    let off = (each.as_f64() / growth.bytes_per_run.as_f64() - 1.0).abs();
    let is_within = growth.interval.0 <= each && each <= growth.interval.1;
    (off <= 0.2 || is_within && off <= 0.5).then_some(each)
}
