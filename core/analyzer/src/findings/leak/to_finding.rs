//! Whether a judged series is worth a finding, and that finding.

use super::super::finding::{Finding, Withdrawn};
use super::super::growing_holders;
use super::super::{
    Advice, FindingDetails, GrowthDetails, SeriesGrowth, decision, suggest, traced,
};
use super::{Bytes, CellRef, Context, GrowthVerdict, Judged, Nanos, Reason, Severity, trend};
use gpumem_heap as heap;
use gpumem_model::holders::Holder;
use gpumem_model::recording::{Recording, Run, Status};
use gpumem_model::source_text;

/// Growth that fills the device within this many runs, or steps, deserves a warning.
const SOON: (u64, u64) = (1000, 100_000);

/// A sparkline has at most this many points.
const N_SPARKLINE: usize = 64;

impl Judged {
    /// Itself, if it is a verdict that a person wants to read: growth, that it has
    /// settled, or that it is over.
    pub(super) fn reportable(mut self, context: Context<'_>) -> Option<Self> {
        let is_returned = self.is_returned(context);
        let grew = self.is_enough(self.kept()) && self.is_enough(self.stays);
        let grew = grew && (is_returned || self.is_still_there(context.rows));
        let is_reportable = match self.state {
            _ if self.is_bounded() && self.in_loop.is_none() => grew && self.n_runs > 1,
            GrowthVerdict::Suspected
                if self.counts_items() && self.reason != Reason::MayBeMeant =>
            {
                false
            }
            GrowthVerdict::Suspected
                if self.reason == Reason::Meant && self.is_comprehension(context.recording) =>
            {
                false
            }
            // The loop has collected what a cell goes through.
            GrowthVerdict::Suspected if self.is_collection() && self.reason == Reason::Meant => {
                grew && !self.is_over(context)
            }
            GrowthVerdict::Leak | GrowthVerdict::Suspected => grew,
            // A finished loop has no more iterations, and the user did not ask whether it settles.
            GrowthVerdict::NotEnoughData | GrowthVerdict::Stable if self.in_loop.is_some() => false,
            // It may be freed again.
            GrowthVerdict::NotEnoughData if self.begins_anew && !self.growers.are_accident() => {
                false
            }
            GrowthVerdict::NotEnoughData => grew && self.n_runs > 1 && self.grew_each_time(),
            GrowthVerdict::Stable => grew && self.reason != Reason::NotCollected && self.settles(),
        };
        if is_reportable && (self.state != GrowthVerdict::Stable || self.is_bounded()) {
            let returned = Some(Withdrawn::Returned).filter(|_| is_returned);
            self.withdrawn = returned.or_else(|| self.reason_to_withdraw(context));
        }
        is_reportable.then_some(self)
    }

    fn is_comprehension(&self, recording: &Recording) -> bool {
        let run = self.runs.last().map(|run| recording.run(*run));
        let in_loop = self.in_loop.as_ref().zip(run);
        in_loop.is_some_and(|(place, run)| place.is_comprehension(recording, run))
    }

    /// It ends by itself: with its input, or when what collects it is full.
    pub(super) fn is_bounded(&self) -> bool {
        self.state == GrowthVerdict::Stable && self.reason.is_bound()
    }

    pub(super) fn finding(self, context: Context<'_>) -> Finding {
        let recording = context.recording;
        let run = recording.run(*self.runs.last().expect("a series has runs"));
        let device = self.key.device;
        let rate = self.growth.bytes_per_run;
        let grows = self.state != GrowthVerdict::Stable && self.withdrawn.is_none();
        let (headroom, runs_to_oom) = self.forecast(context);
        // What a loop may collect on purpose fills nothing when it is over, or ends before.
        let is_over = self.in_loop.is_some() && self.is_over(context);
        let n_left = if is_over {
            Some(0)
        } else {
            self.iterations_left(recording, run)
        };
        let n_left = n_left.filter(|_| self.reason.is_meant());
        let runs_to_oom = runs_to_oom.filter(|n| grows && n_left.is_none_or(|left| *n <= left));
        let text = recording.text(run);
        let traced = traced::latest(recording, &self.runs, device).filter(|_| !self.steps);
        let mut evidence = self.growth.evidence.clone();
        evidence.extend(traced.map(|trace| traced::evidence(trace, rate)));
        let first = self.growers.holders.first();
        let of_several = self.rate_of_all.and(first).map(|it| it.name.clone());
        let is_undecided = self.state == GrowthVerdict::NotEnoughData;
        // The collector may come with the next run. What a function keeps until it returns, its next call keeps again.
        let waits = is_undecided && self.reason == Reason::WaitsForCollector;
        let may_change = grows && self.reason != Reason::Trimmed && !waits
            || self.withdrawn == Some(Withdrawn::Returned);
        let fix = first
            .filter(|_| may_change)
            .and_then(|holder| suggest::fix(recording, device, run, holder));
        let is_cured = fix.as_ref().is_some_and(|fix| fix.before.is_some());
        let is_native = self.reason == Reason::Native || is_undecided && self.is_native(context);
        let advice = if grows && is_native {
            vec![Advice::LookAtLibraries]
        } else if grows && !is_cured && self.reason != Reason::Trimmed {
            suggest::against_growth(recording, device, text, self.steps, first)
        } else {
            Vec::new()
        };
        let details = GrowthDetails {
            series: SeriesGrowth {
                shape: self.growth.shape,
                bytes_per_run: rate,
                interval: self.growth.interval,
                total: self.lives(context).max(self.shown_by_name(context)),
                sparkline: sparkline(&self.levels),
            },
            statement: first.and_then(|holder| statement(recording, run, holder)),
            by: first.and_then(|holder| beside(holder, text)),
            steps: self.steps,
            in_loop: self.in_loop.clone(),
            of_names: self.name.is_some(),
            n_grown: self.n_grown,
            n_known: self.n_chances,
            n_moving: self.n_moving,
            n_missing: self.n_missing(),
            headroom,
            runs_to_oom,
            time_to_oom: self
                .period
                .zip(runs_to_oom.filter(|_| !is_over))
                .map(|(each, n)| Nanos::new(each.get().saturating_mul(n))),
            traced: traced.map(|trace| traced::run(trace, rate)),
            advice,
        };
        Finding {
            id: match &self.name.clone().or(of_several) {
                Some(name) => format!("{}/{name}", self.key.id(recording)),
                None => self.key.id(recording),
            },
            kind: decision::kind(self.state, self.reason, self.withdrawn),
            severity: self.severity(headroom, runs_to_oom),
            state: Some(match self.withdrawn {
                Some(_) => GrowthVerdict::Stable,
                None => self.state,
            }),
            reason: Some(self.reason),
            withdrawn: self.withdrawn,
            cell: Some(CellRef::for_run(recording, run)),
            path: self.key.path,
            device,
            metric: self.metric,
            runs: self.runs,
            n_runs: self.n_runs,
            holders: self.growers.holders,
            fix,
            known_leak: None,
            evidence,
            details: FindingDetails::Growth(Box::new(details)),
        }
    }

    /// A loop filled its first name, which is more than one tensor.
    fn is_collection(&self) -> bool {
        let first = self.growers.holders.first();
        self.in_loop.is_some() && first.is_some_and(|it| it.traits.n_tensors != 1)
    }

    /// Its latest run has ended.
    fn is_over(&self, context: Context<'_>) -> bool {
        let last = self.runs.last();
        last.is_some_and(|run| context.recording.run(*run).ended.is_some())
    }

    /// How many iterations are left of a loop that goes on: `for shard in range(40)`.
    fn iterations_left(&self, recording: &Recording, run: &Run) -> Option<u64> {
        let place = self.in_loop.as_ref().filter(|_| run.ended.is_none())?;
        let length = loop_length(place.header(recording, run)?)?;
        Some(length.saturating_sub(self.n_runs as u64))
    }

    /// How often the loop turned in a run that is over, if the cell's text tells.
    pub(super) fn known_length(&self, recording: &Recording, run: &Run) -> Option<u64> {
        let header = self.in_loop.as_ref()?.header(recording, run)?;
        let is_once = !header.starts_with(char::is_whitespace) && run.ended.is_some();
        let has_all =
            |text: &&str| run.status == Status::Ok && !source_text::has_word(text, "break");
        recording
            .text(run)
            .filter(|text| is_once && has_all(text))?;
        loop_length(header).filter(|n| *n >= self.n_runs as u64)
    }

    /// How many more runs tell whether it leaks: none if a name has decided it already, or its owner has to.
    pub(super) fn n_missing(&self) -> usize {
        match self.state {
            _ if self.may_be_meant => 0,
            GrowthVerdict::NotEnoughData if self.growers.may_prove(self.n_runs) => {
                growing_holders::ENOUGH_RUNS.saturating_sub(self.n_runs)
            }
            GrowthVerdict::NotEnoughData => self.growth.n_missing,
            _ => 0,
        }
    }

    pub(super) fn severity(&self, headroom: Option<Bytes>, runs_to_oom: Option<u64>) -> Severity {
        let soon = if self.steps { SOON.1 } else { SOON.0 };
        let is_soon = runs_to_oom.is_none_or(|n| n <= soon);
        let is_excused = self.reason.is_meant() || self.reason == Reason::WaitsForCollector;
        match (self.state, self.reason) {
            _ if self.withdrawn.is_some() || self.reason == Reason::Trimmed => Severity::Info,
            _ if self.in_loop.is_some() && (is_excused || !self.growers.is_looked_at()) => {
                Severity::Info
            }
            (GrowthVerdict::Leak, _) if is_soon => Severity::Critical,
            (GrowthVerdict::Suspected, _) if is_soon => Severity::Warning,
            (GrowthVerdict::Leak, _) => Severity::Warning,
            (GrowthVerdict::Stable, Reason::Fills { when_full, .. }) => {
                let more = when_full.since(self.kept().magnitude());
                let fits = headroom.is_none_or(|left| more <= left.since(Bytes::ZERO));
                if fits {
                    Severity::Info
                } else {
                    Severity::Warning
                }
            }
            _ => Severity::Info,
        }
    }
}

/// What fills a holder beside the cells, unless the cell has the holder's name and may do so itself.
fn beside(holder: &Holder, text: Option<&str>) -> Option<String> {
    let by = Some(&holder.traits.filled_by).filter(|by| !by.is_empty())?;
    let is_own = text.is_some_and(|text| source_text::has_word(text, &holder.name));
    (!is_own).then(|| by.clone())
}

/// The line that keeps what a holder has.
fn statement(recording: &Recording, run: &Run, holder: &Holder) -> Option<String> {
    let outermost = recording.run(recording.outermost(run.idx));
    let text = recording.text(run).filter(|_| outermost.label.is_none())?;
    source_text::headline(heap::keeping_statement(holder, text)?)
}

/// How often `for x in range(40):` turns; `None` if its text does not tell.
fn loop_length(header: &str) -> Option<u64> {
    let (_, iterated) = header
        .trim_start()
        .strip_prefix("for ")?
        .split_once(" in ")?;
    let (arguments, _) = iterated.split_once("range(")?.1.split_once(')')?;
    let mut numbers = arguments
        .split(',')
        .map(|it| it.trim().replace('_', "").parse().ok());
    match (numbers.next()?, numbers.next(), numbers.next()) {
        (Some(end), None, None) => Some(end),
        (Some(start), Some(Some(end)), None) => u64::checked_sub(end, start),
        _ => None,
    }
}

fn sparkline(levels: &[Bytes]) -> Vec<f64> {
    let values: Vec<f64> = levels.iter().map(|level| level.as_f64()).collect();
    if values.len() > N_SPARKLINE {
        trend::block_minima(&values, N_SPARKLINE)
    } else {
        values
    }
}

#[cfg(test)]
mod tests {
    use super::loop_length;

    #[test]
    fn the_length_of_a_loop_is_read_where_it_is_a_number() {
        let check = |header: &str, n: Option<u64>| assert_eq!(loop_length(header), n, "{header}");
        check("for shard in range(40):", Some(40));
        check("    for i in tqdm(range(1_000), desc='x'):", Some(1000));
        check("for i in range(10, 40):", Some(30));
        check("for i in range(0, 40, 2):", None);
        check("for i in range(n):", None);
        check("for i in range(len(x)):", None);
        check("while len(kept) < 40:", None);
    }
}
