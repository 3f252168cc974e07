//! What a series is called: its levels, its holders and the allocators' counters together.

use super::super::decision::{self, HolderFacts, Intent, NameCourse, SeriesFacts};
use super::super::growing_holders::{self, GrowingHolders, Looks};
use super::{
    ByteDelta, Bytes, Context, DeviceSummary, Evidence, GrowthVerdict, Judged, Metric, Peak,
    Reason, RunIdx, RunRow, Statistic, growth, scaled,
};
use gpumem_model::holders::{Holder, RootKind};
use std::ops::RangeInclusive;

/// Growth that fills the device within this many runs, or steps, has a consequence, whether it is intended or not.
const VERY_SOON: (u64, u64) = (100, 10_000);

/// What has taken this share of the device has one, too.
const TAKEN: f64 = 0.1;

/// Names that collect at least this share of the growth are reported one by one.
const SHARED_OUT: f64 = 0.5;

/// Ratio of names to the host's level at which names show memory that replaced freed memory.
const NAMES_PER_LEVEL: RangeInclusive<f64> = 1.25..=1.6;

impl Judged {
    /// Looks for all that is known of it, and decides what it is called.
    pub(super) fn decide(&mut self, context: Context<'_>) {
        let holders = self.holder_facts(context);
        let (holders, figure) =
            holders.map_or((None, None), |(facts, figure)| (Some(facts), figure));
        let facts = SeriesFacts {
            levels: self.growth.state,
            may_be_chance: self.may_be_chance,
            slows: self.name.is_some() && self.growth.slows,
            allocations: self.allocations,
            holders,
        };
        let figure = figure.filter(|_| facts.grows());
        self.growth.evidence.extend(figure);
        let intent = facts.holders.as_ref().map(|it| it.intent);
        self.may_be_meant = matches!(intent, Some(Intent::May(_)));
        (self.state, self.reason) = decision::decide(&facts);
        self.take_rate_of_loop(context);
    }

    /// Who holds it, if it may be growth, with the figure behind that. On the way its rate becomes that of
    /// the names.
    pub(super) fn holder_facts(
        &mut self,
        context: Context<'_>,
    ) -> Option<(HolderFacts, Option<Evidence>)> {
        let is_quiet = self.growth.state == GrowthVerdict::Stable;
        let kept = self.kept().magnitude();
        let mut is_filled = false;
        let mut writes_first = false;
        if self.name.is_none() && self.rate_of_all.is_none() {
            if is_quiet && self.in_loop.is_none() {
                return None;
            }
            self.take_growers(context, kept);
            is_filled = self.take_rate_of_filled_name(context, kept);
            if is_quiet && !is_filled {
                return None;
            }
            writes_first = self.writes_first(context);
            // The host's level moves by what others free and take, too.
            let is_noisy = self.is_shared || (self.metric == Metric::ProcessUsed && !self.steps);
            if !writes_first && is_noisy {
                self.take_rate_of_names(context);
            }
        }
        let (course, figure) = self.growers.course(kept).unzip();
        let course = course.unwrap_or(NameCourse::Unclear);
        let n_looked_at = if self.steps { 0 } else { self.n_runs };
        let in_loop = self.loop_facts(context, kept, is_filled);
        let facts = HolderFacts {
            is_named: !self.growers.holders.is_empty(),
            course,
            is_proven: self.growth.state == GrowthVerdict::NotEnoughData
                && self.grew_each_time()
                && self.growers.prove(n_looked_at, course),
            collects_early: course == NameCourse::Collects
                && n_looked_at >= growing_holders::EARLY_RUNS
                && self.is_collected(context),
            writes_first,
            waits_for_collector: self.growers.wait_for_collector(),
            is_trimmed: self.growers.is_trimmed,
            intent: self.intent(context),
            consequence: self.consequence(context),
            in_loop,
        };
        Some((facts, figure.filter(|_| !writes_first)))
    }

    /// The first name has more storages after each of the runs.
    pub(super) fn is_collected(&self, context: Context<'_>) -> bool {
        let (names, device) = (context.names, self.key.device);
        let first = self.growers.holders.first();
        first.is_some_and(|it| names.gains_storages(device, &names.key(device, it), &self.runs))
    }

    /// On the host, when the series began, names had more than was in use, by as much as it grew since; and
    /// no name has that much more. An array of zeros takes its memory page by page, when it is written.
    pub(super) fn writes_first(&self, context: Context<'_>) -> bool {
        let (recording, device) = (context.recording, self.key.device);
        let first = self.runs.first().map(|run| recording.outermost(*run));
        let look = first.and_then(|run| recording.holders_before(run, device));
        let held = look.map_or(Bytes::ZERO, |(_, look)| look.n_bytes);
        let kept = self.kept().magnitude();
        let of_names = self.growers.holders.iter().filter_map(|it| it.grown);
        let of_names: ByteDelta = of_names.sum();
        !recording.device(device).kind.is_accelerator()
            && held.saturating_sub(self.start) >= kept
            && of_names.as_f64() < 0.5 * kept.as_f64()
    }

    /// What the names that hold it have more from run to run, others' runs between them included.
    pub(super) fn take_rate_of_names(&mut self, context: Context<'_>) {
        let level = |run: &RunIdx| -> Option<Bytes> {
            let holders = self.growers.holders.iter();
            let levels = holders.map(|holder| {
                let name = context.names.key(self.key.device, holder);
                context.names.level(self.key.device, &name, *run)
            });
            levels.sum()
        };
        let levels: Option<Vec<Bytes>> = self.runs.iter().map(level).collect();
        let Some(levels) = levels else {
            return;
        };
        let of_names = growth::classify_growth(&levels, self.least, context.rules);
        let share = of_names.bytes_per_run.as_f64() / self.growth.bytes_per_run.as_f64();
        if of_names.bytes_per_run > ByteDelta::ZERO
            && (self.is_shared || NAMES_PER_LEVEL.contains(&share))
        {
            self.growth.bytes_per_run = of_names.bytes_per_run;
            self.growth.interval = of_names.interval;
        }
    }

    /// Whether somebody may want what holds it: what a name of the user's collects may be what they want.
    pub(super) fn intent(&self, context: Context<'_>) -> Intent {
        let device = context.recording.device(self.key.device);
        let is_accelerator = device.kind.is_accelerator();
        let is_accident =
            self.growers.is_accident(is_accelerator) && !self.is_of_threads_under_way();
        if let Some(intent) = self.intent_in_loop(context, is_accident) {
            return intent;
        }
        // What the host holds without a name may be what `malloc` has not given back.
        let is_known = self.growers.is_looked_at() || !is_accelerator;
        match is_known {
            _ if is_accident => Intent::Accident,
            _ if self.growers.are_left_by_collector() => Intent::May(Reason::CollectorOff),
            _ if self.is_native(context) => Intent::May(Reason::Native),
            true => Intent::May(Reason::MayBeMeant),
            false => Intent::Unknown,
        }
    }

    /// While the run goes on, what its threads and tasks collect may be meant as well as what its own functions do.
    fn is_of_threads_under_way(&self) -> bool {
        let first = self.growers.holders.first();
        let is_plain = |it: &Holder| {
            let traits = &it.traits;
            traits.graph == Bytes::ZERO && traits.keeper.is_none()
        };
        self.looks == Looks::InsideRuns
            && first.is_some_and(|it| it.kind == RootKind::ThreadFrame && is_plain(it))
    }

    /// The host grew, and looks after its runs found nobody who has more, not even part of it.
    pub(super) fn is_native(&self, context: Context<'_>) -> bool {
        let is_accelerator = context
            .recording
            .device(self.key.device)
            .kind
            .is_accelerator();
        let looked = |run: &&RunIdx| context.recording.holders(**run, self.key.device).is_some();
        let is_unnamed = self.growers.holders.is_empty() && !self.growers.has_part && !self.steps;
        !is_accelerator && is_unnamed && self.runs.iter().filter(looked).count() > 1
    }

    /// It fills the device very soon, or has taken much of it.
    pub(super) fn consequence(&self, context: Context<'_>) -> Option<Reason> {
        let very_soon = if self.steps { VERY_SOON.1 } else { VERY_SOON.0 };
        let (_, runs_to_oom) = self.forecast(context);
        let soon = runs_to_oom.filter(|n| *n <= very_soon);
        let capacity = context.capacity(self.key.device);
        let taken = self.lives(context);
        let is_much = capacity.is_some_and(|it| taken.as_f64() >= TAKEN * it.as_f64());
        let much = is_much.then(|| Reason::TakesMuch {
            taken: taken.magnitude(),
        });
        soon.map(|n_runs| Reason::FullSoon { n_runs }).or(much)
    }

    /// What is left for it, and how many more runs or steps of its rate that takes.
    pub(super) fn forecast(&self, context: Context<'_>) -> (Option<Bytes>, Option<u64>) {
        let device = self.key.device;
        let rate = self.rate_of_all.unwrap_or(self.growth.bytes_per_run);
        let row = self.runs.last();
        let row = row.and_then(|run| context.rows.row(*run, device));
        let headroom = row
            .zip(context.summary(device))
            .and_then(|(row, device)| headroom(row, device));
        let grows = rate > ByteDelta::ZERO;
        let runs = headroom.filter(|_| grows);
        let runs = runs.map(|left| left.get() / rate.magnitude().get());
        (headroom, runs)
    }

    /// What each name has of it, if several collect.
    pub(super) fn each_name(self, context: Context<'_>) -> Vec<Self> {
        let grows = self.state != GrowthVerdict::Stable;
        let n_steps = self.steps.then_some(self.n_runs);
        let all = self.growers.each(context.recording, n_steps, self.looks);
        let grown = |growers: &GrowingHolders| {
            let grown = growers.holders.iter().filter_map(|it| it.grown);
            grown.map(ByteDelta::as_f64).sum::<f64>()
        };
        let sum = all.iter().map(grown).sum::<f64>();
        if !grows || all.is_empty() || sum < SHARED_OUT * self.kept().as_f64() {
            return vec![self];
        }
        let of_name = |growers: GrowingHolders| {
            let share = grown(&growers) / sum;
            self.of_name(context, growers, share)
        };
        all.into_iter().map(of_name).collect()
    }

    /// The share of it that one name has.
    pub(super) fn of_name(
        &self,
        context: Context<'_>,
        growers: GrowingHolders,
        share: f64,
    ) -> Self {
        let of_start = |level: &Bytes| {
            let more = ByteDelta::from_f64(level.since(self.start).as_f64() * share);
            self.start + more.max(ByteDelta::ZERO).magnitude()
        };
        let mut it = Self {
            growth: scaled(self.growth.clone(), share),
            levels: self.levels.iter().map(of_start).collect(),
            stays: ByteDelta::from_f64(self.stays.as_f64() * share),
            rate_of_all: Some(self.growth.bytes_per_run),
            growers,
            ..self.clone()
        };
        if !it.steps {
            let evidence = &mut it.growth.evidence;
            evidence.retain(|figure| figure.statistic != Statistic::Held);
            it.is_shared = true;
            it.take_rate_of_names(context);
            it.decide(context);
        }
        it
    }
}

/// What is left for growth: free in the device and in the allocator's cache,
/// less what a run needs above its end.
fn headroom(row: &RunRow, device: &DeviceSummary) -> Option<Bytes> {
    let cached = device.cached().unwrap_or_default();
    let level = row.after.or(row.so_far).or(row.before)?;
    let above_end = row
        .peak
        .map_or(Bytes::ZERO, Peak::low)
        .saturating_sub(level);
    Some((device.free()? + cached).saturating_sub(above_end))
}
