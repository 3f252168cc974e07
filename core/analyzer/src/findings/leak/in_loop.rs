//! What is different if the steps that grow are iterations of a loop that nobody has marked.

use super::super::decision::{Intent, LoopFacts};
use super::super::growing_holders::{self, GrowingHolders, Looks, MIN_ENTRIES};
use super::super::suggest;
use super::{
    Context, Finding, FindingDetails, Growth, GrowthVerdict, Judged, NEARLY_ALL, STILL_THERE,
    StepSeries,
};
use crate::loop_place::LoopUnit;
use crate::reason::Reason;
use gpumem_heap::{Uses, is_data};
use gpumem_model::holders::{Holder, Keeper, variable_of};
use gpumem_model::recording::{Recording, Run, RunKind};
use gpumem_model::source_text;
use gpumem_model::units::{ByteDelta, Bytes, Nanos};

/// Growth by run and by iteration is reported once: by run, if there are enough runs.
pub(super) fn tell_once(findings: &mut Vec<Finding>) {
    let cell = |it: &Finding| it.cell.as_ref().map(|cell| cell.idx);
    let grows = |it: &Finding| it.state.is_some_and(GrowthVerdict::grows);
    let of_runs = |it: &Finding| matches!(&it.details, FindingDetails::Growth(of) if !of.steps);
    let is_same = |a: &Finding, b: &Finding| (cell(a), a.device) == (cell(b), b.device);
    let (in_loops, others): (Vec<Finding>, Vec<Finding>) =
        findings.drain(..).partition(|it| it.in_loop().is_some());
    let is_reported = |it: &&Finding| {
        let mut of_runs = others.iter().filter(|other| of_runs(other) && grows(other));
        of_runs.any(|other| is_same(it, other))
    };
    let mut merged: Vec<Finding> = Vec::new();
    for finding in in_loops.iter().filter(|it| !is_reported(it)) {
        // Loops that no stack has shown in each other see the same name grow.
        let same = merged.iter_mut().find(|it| is_of_one_name(it, finding));
        match same {
            Some(same) if rank(finding) > rank(same) => *same = finding.clone(),
            Some(_) => {}
            None => merged.push(finding.clone()),
        }
    }
    let is_early = |it: &Finding| it.state == Some(GrowthVerdict::NotEnoughData) && of_runs(it);
    let others = others
        .into_iter()
        .filter(|it| !is_early(it) || !merged.iter().any(|of_loop| is_same(it, of_loop)));
    findings.extend(others);
    findings.extend(merged);
}

/// Both are of the run's loops, and of what one name has.
fn is_of_one_name(a: &Finding, b: &Finding) -> bool {
    let names = [a, b].map(Finding::first_name);
    names[0].is_some() && (names[0], &a.runs, a.device) == (names[1], &b.runs, b.device)
}

/// Rather a loop that stands in a cell; rather its iterations than its items, and these than seconds.
fn rank(finding: &Finding) -> Option<(bool, u8)> {
    let at = finding.in_loop()?;
    let of_unit = match at.unit {
        LoopUnit::Iteration | LoopUnit::Call => 2,
        LoopUnit::Item => 1,
        LoopUnit::Second => 0,
    };
    Some((at.file.is_empty(), of_unit))
}

/// Levels of a loop that grow by a quarter of what is worth a word may be all that was read of it: names tell.
pub(super) fn min_growth_of_steps(context: Context<'_>, series: &StepSeries) -> Bytes {
    let unit = series.in_loop.as_ref().map(|it| it.unit);
    if unit == Some(LoopUnit::Item) {
        return context.min_growth_of_names(series.key.device);
    }
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
/// … and at most this many entries in each iteration: an output, a loss and related values.
const MAX_ENTRIES_EACH: u64 = 4;
/// A graph that is nearly all that stays grew with the loop, if of at least so many iterations …
const MIN_ITERATIONS: usize = 20;
/// … the median one kept at least this share of the average.
const MIN_OF_AVERAGE: f64 = 0.5;
/// Counted iterations may have taken this many times as long as earlier ones.
const SLOWER: f64 = 1.25;
/// … and on a busy machine this many times as long.
const MUCH_SLOWER: f64 = 1.4;
/// If the loop may have iterated this many times as often as counted, an average says little.
const UNCOUNTED: f64 = 1.3;

/// Memory that a function keeps until it returns is reported from this size on.
const MUCH_RETURNED: Bytes = Bytes::mib(64);

impl Judged {
    /// Takes in who holds what was kept, by the looks after the runs. Looks inside of its run tell it while the
    /// run goes on, of what its end has given back, and where the look after it had no answer.
    pub(super) fn take_growers(&mut self, context: Context<'_>, kept: Bytes) {
        let (runs, device) = (&self.runs, self.key.device);
        let last = runs.last().filter(|_| self.in_loop.is_some());
        // The loop's levels begin when it was found; iterations of a fast one are missing at its end, too.
        let end = last.and_then(|run| context.rows.row(*run, device)?.after);
        let since_start = end.map_or(Bytes::ZERO, |end| end.saturating_sub(self.start));
        let steps_grew = self.steps.then_some(kept.max(since_start));
        let growers =
            |looks| growing_holders::from_looks(context, runs, device, steps_grew, kept, looks);
        let goes_on = last.is_some_and(|run| context.recording.run(*run).ended.is_none());
        let series = (&**runs, device, self.steps.then_some(self.n_runs));
        let after = growers(Looks::AfterRuns);
        let is_gone = !self.is_left(context.rows) && !is_most(&after, STILL_THERE, kept);
        if goes_on || last.is_some() && (is_gone || !after.is_looked_at()) {
            let inside = growers(Looks::InsideRuns);
            self.growers = inside.with_branches(context, series, Looks::InsideRuns);
            if let Some(place) = &self.in_loop {
                self.growers.take_loop(context.recording, place);
            }
            self.looks = Looks::InsideRuns;
        } else {
            self.growers = after.with_branches(context, series, Looks::AfterRuns);
            self.take_text(context.recording);
        }
    }

    /// Takes in whether the text of the run's cell makes the name anew.
    pub(super) fn take_text(&mut self, recording: &Recording) {
        let run = self.runs.last().map(|run| recording.run(*run));
        let Some((run, text)) = run.and_then(|run| Some((run, recording.text(run)?))) else {
            return;
        };
        match &self.in_loop {
            Some(place) if place.file.is_empty() && place.execution_count.is_none() => {
                let loops = recording.loops(run.idx);
                let same =
                    loops.filter(|it| it.line == place.line && it.function == place.function);
                let n_iterations = same.map(|it| it.n_iterations).max();
                let lines = text.lines().skip(place.line as usize);
                let below: Vec<&str> = lines.collect();
                let n_iterations = n_iterations.unwrap_or_default();
                self.growers
                    .take_join(recording, &below.join("\n"), n_iterations);
            }
            // What a block is a part of was not run again with it.
            None if !self.steps && self.n_runs > 1 && run.kind == RunKind::Cell => {
                self.growers.take_cell(text);
            }
            Some(_) | None => {}
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

    /// A name was filled in the run with tensors of each iteration, or with a graph of all of them, whose rate it
    /// takes: no noise of the levels hides that.
    pub(super) fn take_rate_of_filled_name(&mut self, context: Context<'_>, kept: Bytes) -> bool {
        let in_loop = self.in_loop.as_ref();
        let is_counted = in_loop.is_some_and(|it| it.unit != LoopUnit::Second);
        let is_unclear = matches!(
            self.growth.state,
            GrowthVerdict::NotEnoughData | GrowthVerdict::Stable
        );
        let first = self.growers.holders.first();
        let first = first.filter(|_| is_counted && is_unclear);
        let first = first.filter(|_| is_most(&self.growers, MOST_AFTER, kept));
        let first = first.filter(|it| self.share_shown(context, it) >= MOST_INSIDE);
        let of_entries = first.and_then(|it| self.each_iteration(context, it));
        let each = of_entries.or_else(|| self.each_of_graph(first?, kept));
        self.set_rate(each);
        each.is_some()
    }

    fn set_rate(&mut self, each: Option<ByteDelta>) {
        if let Some(each) = each {
            self.growth.bytes_per_run = each;
            self.growth.interval = (each, each);
        }
    }

    /// What is counted is known by the name alone, so nothing but a verdict is worth a word.
    pub(super) fn counts_items(&self) -> bool {
        let in_loop = self.in_loop.as_ref();
        in_loop.is_some_and(|it| it.unit == LoopUnit::Item)
    }

    fn is_of_time(&self) -> bool {
        let in_loop = self.in_loop.as_ref();
        in_loop.is_some_and(|it| it.unit == LoopUnit::Second)
    }

    /// What is known of the loop, if the user has not marked it.
    pub(super) fn loop_facts(
        &self,
        context: Context<'_>,
        kept: Bytes,
        is_filled: bool,
    ) -> Option<LoopFacts> {
        self.in_loop.as_ref()?;
        let first = self.growers.holders.first();
        let most = match self.looks {
            Looks::InsideRuns => MOST_INSIDE,
            Looks::AfterRuns => MOST_AFTER,
        };
        let device = context.recording.device(self.key.device);
        Some(LoopFacts {
            is_filled,
            is_steady: self.grew_each_time() && self.n_chances >= growing_holders::ENOUGH_RUNS,
            has_most: is_most(&self.growers, most, kept),
            has_graph: first.is_some_and(|it| it.traits.graph > Bytes::ZERO),
            is_host: !device.kind.is_accelerator(),
            is_of_time: self.is_of_time(),
            may_begin_anew: self.may_begin_anew,
            is_collection: first
                .is_some_and(|it| is_data(it) && it.traits.n_tensors >= MIN_ENTRIES),
        })
    }

    /// The user did not ask about a loop: the cells' use of the name decides whether it is there to collect.
    pub(super) fn intent_in_loop(&self, context: Context<'_>, is_accident: bool) -> Option<Intent> {
        let recording = context.recording;
        let run = recording.run(*self.runs.last().expect("a series has runs"));
        let place = self.in_loop.as_ref()?;
        let header = place.header(recording, run);
        let header = header.filter(|_| place.is_comprehension(recording, run));
        let first = self.growers.holders.first();
        // A name that a look found while a comprehension went on has nothing of that.
        let made =
            first.filter(|it| self.looks == Looks::AfterRuns || it.traits.graph > Bytes::ZERO);
        let uses = first.map_or(Uses::None, |it| suggest::uses(recording, run, it));
        let is_kept_by = |keeper| first.is_some_and(|it| it.traits.keeper == Some(keeper));
        let is_error = is_kept_by(Keeper::Traceback);
        Some(match uses {
            // What cells do with the module tells nothing of its hooks.
            _ if is_kept_by(Keeper::Hooks) => Intent::Accident,
            _ if header.is_some_and(|header| makes(header, made)) => Intent::May(Reason::Meant),
            Uses::LooksUp => Intent::Accident,
            // The loop was over at once, and the next cell may go back through it.
            Uses::None if self.counts_items() && !is_error => Intent::May(Reason::MayBeMeant),
            Uses::Whole | Uses::Indexes | Uses::None if is_accident => Intent::Accident,
            Uses::GoesBack | Uses::Whole => Intent::May(Reason::Meant),
            Uses::Indexes | Uses::None => Intent::May(Reason::MayBeMeant),
        })
    }

    /// The rate of a loop that grows is what its name, or each of its tensors, has.
    pub(super) fn take_rate_of_loop(&mut self, context: Context<'_>) {
        let grows = self.state.grows() && self.reason != Reason::WaitsForCollector;
        let first = self.growers.holders.first();
        let Some(first) = first.filter(|_| grows && self.in_loop.is_some()) else {
            return;
        };
        let recording = context.recording;
        let by_name = if self.is_of_time() {
            let run = recording.run(*self.runs.last().expect("a series has runs"));
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
            let is_accelerator = recording.device(self.key.device).kind.is_accelerator();
            if is_accelerator { None } else { of_host() }
        };
        let each = by_name.or_else(|| each_entry(first, &self.growth));
        self.set_rate(each);
    }

    /// A name's growth by iteration, if the run filled it with the same number of entries in each: the possible number
    /// that is closest to the levels.
    fn each_iteration(&self, context: Context<'_>, holder: &Holder) -> Option<ByteDelta> {
        let n_counted = self.n_runs as u64;
        let grown = holder.grown?.as_f64();
        let (n_entries, n_bytes) = holder.entries();
        // Of graphs that another name has, too, the entries retain nothing.
        let is_shared =
            holder.traits.graph.as_f64() >= MOST_AFTER * grown && n_bytes < MOST_AFTER * grown;
        let n_bytes = if is_shared { grown } else { n_bytes };
        let n_timed = self.most_iterations(context).unwrap_or_default();
        let n_most = (SLOWER * n_timed).max(2.0 * n_counted as f64);
        let is_filled = grown >= FILLED * n_bytes;
        // Another loop of the run may have filled it.
        let is_seen = self.kept().as_f64() >= MOST_INSIDE * grown;
        if n_entries < n_counted.max(MIN_ENTRIES) || !is_filled || !is_seen {
            return None;
        }
        // One in each, if there was time for that many: the host's level has what iterations only pass through.
        let is_host = !context
            .recording
            .device(self.key.device)
            .kind
            .is_accelerator();
        let rate = if is_host && n_entries as f64 <= MUCH_SLOWER * n_timed {
            n_bytes / n_entries as f64
        } else {
            self.growth.bytes_per_run.as_f64()
        };
        let each = (1..=MAX_ENTRIES_EACH)
            .map(|n| n as f64)
            .map(|n| (n_entries as f64 / n, n_bytes * n / n_entries as f64))
            // The last one's may have other names, too.
            .filter(|(n, _)| n + 1.0 >= n_counted as f64 && *n <= n_most)
            .map(|(_, each)| each)
            .min_by(|a, b| (a - rate).abs().total_cmp(&(b - rate).abs()));
        each.map(ByteDelta::from_f64)
    }

    /// An iteration's share of a graph that is nearly all that stays. The graph of the last iteration alone comes at
    /// once. One that each iteration extends shows in most of them, even if the host's level falls when free memory
    /// is given back.
    fn each_of_graph(&self, holder: &Holder, kept: Bytes) -> Option<ByteDelta> {
        let grown = holder.grown?.as_f64();
        let is_graph = holder.traits.graph.as_f64() >= NEARLY_ALL * grown;
        let is_all = self.looks == Looks::AfterRuns && grown >= NEARLY_ALL * kept.as_f64();
        let changes = self.levels.windows(2).map(|pair| pair[1].since(pair[0]));
        let mut changes: Vec<ByteDelta> = changes.collect();
        changes.sort_unstable();
        let median = changes.get(changes.len() / 2)?.as_f64();
        let is_in_most = median * changes.len() as f64 >= MIN_OF_AVERAGE * grown;
        let is_known = changes.len() >= MIN_ITERATIONS && is_graph && is_all && is_in_most;
        is_known.then(|| ByteDelta::from_f64(grown / self.n_runs as f64))
    }

    /// What an iteration of a run that is over kept on average, by what its first name has more and the level
    /// shows.
    fn average_iteration(&self, context: Context<'_>, holder: &Holder) -> Option<ByteDelta> {
        let n_counted = self.n_runs as f64;
        let n_timed = SLOWER * self.most_iterations(context)?.max(n_counted);
        let run = context.recording.run(*self.runs.last()?);
        let length = self.known_length(context.recording, run);
        // The last one's may have another name, too.
        let (n_least, n_most) = match length.map(|n| n as f64) {
            Some(n) => ((n - 1.0).max(n_counted), n),
            None => (n_counted, n_timed),
        };
        let is_certain = length.is_some() || n_timed <= SLOWER * UNCOUNTED * n_counted;
        let is_certain = is_certain && self.looks == Looks::AfterRuns;
        let shown = self.shown(context, holder).filter(|_| is_certain)?.as_f64();
        let rate = self.growth.bytes_per_run.as_f64();
        (shown > 0.0).then(|| ByteDelta::from_f64(average(shown, n_least, n_most, rate)))
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
}

/// The loop turned so many times at least and at most: of the averages between, the one that the rate of the
/// levels comes closest to.
fn average(shown: f64, n_least: f64, n_most: f64, rate: f64) -> f64 {
    rate.clamp(shown / n_most, shown / n_least)
}

fn run_time(run: &Run) -> Option<Nanos> {
    Some(run.ended?.since(run.started))
}

/// What a comprehension makes has no name before it has ended, and then one that stands beside it.
fn makes(header: &str, holder: Option<&Holder>) -> bool {
    holder.is_none_or(|it| {
        let has_name = it.kind.is_named() && !it.is_local();
        let attribute = it.name.rsplit('.').next().unwrap_or_default();
        let mut names = [variable_of(&it.name), attribute].into_iter();
        let is_beside = names.any(|name| source_text::has_word(header, name));
        it.traits.graph == Bytes::ZERO && (!has_name || is_beside)
    })
}

/// The first of them has this share of what was kept.
fn is_most(growers: &GrowingHolders, share: f64, kept: Bytes) -> bool {
    let first = growers.holders.first();
    let grown = first.and_then(|holder| holder.grown);
    grown.is_some_and(|grown| grown.as_f64() >= share * kept.as_f64())
}

/// What each entry of a holder has, if that is what each iteration keeps as far as its levels tell.
fn each_entry(holder: &Holder, growth: &Growth) -> Option<ByteDelta> {
    let (n, n_bytes) = holder.entries();
    if n < MIN_ENTRIES {
        return None;
    }
    let each = ByteDelta::from_f64(n_bytes / n as f64);
    let off = (each.as_f64() / growth.bytes_per_run.as_f64() - 1.0).abs();
    let is_within = growth.interval.0 <= each && each <= growth.interval.1;
    (off <= 0.2 || is_within && off <= 0.5).then_some(each)
}

#[cfg(test)]
mod tests {
    use super::average;
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
        assert_eq!(holder.entries(), (n, Bytes::mib(mib).as_f64()));
    }

    #[test]
    fn an_average_is_what_the_levels_tell_of_iterations_that_can_be() {
        let average = |rate: f64| average(120.0, 50.0, 60.0, rate);
        assert!((average(2.2) - 2.2).abs() < 1e-9);
        assert!((average(0.1) - 2.0).abs() < 1e-9);
        assert!((average(9.0) - 2.4).abs() < 1e-9);
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
