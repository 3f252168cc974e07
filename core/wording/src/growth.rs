//! A cell's runs, or the steps in one, that grow or settled.

use super::{Presentation, Prose, Teller, advice, code, figure, holders, prose, withdrawn};
use gpumem_analyzer::{
    Finding, FindingDetails, FindingKind, GrowthDetails, GrowthVerdict, LoopUnit, Reason, Withdrawn,
};
use gpumem_model::holders::{Holder, RootKind};
use gpumem_model::recording::Recording;
use gpumem_model::severity::Severity;
use gpumem_model::source_text;
use gpumem_model::units::{Bytes, Nanos, Units, count};

/// What runs kept is even if the rate explains their total but for this share.
const EVEN: f64 = 0.1;

pub(super) fn present(teller: &Teller<'_>, details: &GrowthDetails) -> Presentation {
    let growth = GrowthText { teller, details };
    Presentation {
        line: growth.line(),
        facts: growth.facts(),
        advice: details.advice.iter().map(advice::against_growth).collect(),
        ..growth.row()
    }
}

/// Growth of which was warned, and which is over: `losses stopped growing`.
pub fn stopped(recording: &Recording, finding: &Finding) -> Prose {
    let stopped = |growth: &GrowthText<'_>| prose![growth.subject(), " stopped growing"];
    of_growth(recording, finding, stopped).unwrap_or_default()
}

/// Whether a name that has most of what a few runs kept stands in the title.
pub fn has_named_holder(recording: &Recording, finding: &Finding) -> bool {
    let is_named = |growth: &GrowthText<'_>| growth.numbered_subject().is_some();
    of_growth(recording, finding, is_named) == Some(true)
}

fn of_growth<T>(
    recording: &Recording,
    finding: &Finding,
    of: impl Fn(&GrowthText<'_>) -> T,
) -> Option<T> {
    let FindingDetails::Growth(details) = &finding.details else {
        return None;
    };
    let teller = &Teller {
        recording,
        finding,
        units: Units::Binary,
    };
    Some(of(&GrowthText { teller, details }))
}

/// Cells that grew and stopped: `3 cells grew and stopped, at 1.2 GiB in all`.
pub(super) fn of_several_settled(teller: &Teller<'_>, findings: &[&Finding]) -> Presentation {
    let totals = findings.iter().filter_map(|finding| finding.growth());
    let total: Bytes = totals.map(|growth| growth.total.magnitude()).sum();
    let n_cells = count(findings.len(), "cell");
    let total = teller.units.size(total);
    let title = format!("{n_cells} grew and stopped, at {total} in all");
    let titles = findings
        .iter()
        .map(|finding| super::present(teller.recording, finding, teller.units).title);
    let mut own = Presentation::new(title, "");
    own.facts = titles.collect();
    own
}

struct GrowthText<'a> {
    teller: &'a Teller<'a>,
    details: &'a GrowthDetails,
}

impl GrowthText<'_> {
    /// Title, outlook, and both in one line.
    fn row(&self) -> Presentation {
        let (unit, finding) = (self.one(), self.teller.finding);
        let (each, on) = (self.each(), self.teller.on_device());
        let (place, name) = (self.place(), self.name());
        if let Some(reason) = finding.withdrawn {
            if reason == Withdrawn::Expected {
                let title = prose!["expected: ", name, format!(" keeps {each} {unit}{on}")];
                return Presentation::new(title, withdrawn(reason));
            }
            let (who, verb, until) = match finding.kind {
                _ if reason == Withdrawn::Returned => (name, "grew", String::new()),
                FindingKind::Leak => (name, "leaked", self.until()),
                _ => (place, "grew", self.until()),
            };
            let title = prose![who, format!(" {verb} {each} {unit}{on}{until}")];
            return Presentation::new(title, withdrawn(reason));
        }
        let within = if self.details.of_names { "in it " } else { "" };
        let so_far = prose![figure(self.total()), format!(" {within}so far")];
        let with = |title: Prose, between: &str, wide: Prose, short: &Prose| Presentation {
            row: prose![title.clone(), between, short.even()],
            ..Presentation::new(title, wide)
        };
        let (long, short) = (self.forecast("the device is "), self.forecast(""));
        let both = |forecast: Option<Prose>, between: &str| match forecast {
            Some(forecast) => prose![so_far.clone(), between, forecast],
            None => so_far.clone(),
        };
        match self.state() {
            GrowthVerdict::Leak => {
                let title = prose![name, format!(" leaks {each} {unit}{on}")];
                with(title, "; ", both(long, "; "), &both(short, ", "))
            }
            GrowthVerdict::Suspected => {
                let why = match finding.known_leak {
                    Some(_) => String::new(),
                    None => format!("; {}", self.doubt()),
                };
                let asks = self.asks();
                let verb = if asks { "collects" } else { "grows" };
                let title = prose![self.subject(), format!(" {verb} {each} {unit}{on}")];
                let outlook = prose![both(long, ", "), &*why];
                with(title, ", ", outlook, &prose![so_far.clone(), why])
            }
            GrowthVerdict::NotEnoughData => {
                let unit = self.unit();
                let n_runs = count(finding.n_runs, unit);
                let asks = self.asks();
                let waits = finding.reason == Some(Reason::WaitsForCollector);
                let more = match self.details.n_missing {
                    _ if asks || waits => self.doubt(),
                    0 => String::new(),
                    1 => format!("1 more {unit} tells whether it leaks"),
                    n => format!("{n} more {unit}s tell whether it leaks"),
                };
                let (who, verb) = match self.numbered_subject() {
                    Some(who) if asks => (who, "collects "),
                    Some(who) => (who, "+"),
                    None => (place, "kept "),
                };
                let kept = if self.is_even() {
                    format!("{each} in each of")
                } else {
                    format!("{} in", self.total())
                };
                let title = prose![who, format!(" {verb}{kept} {n_runs}{on}")];
                Presentation::new(title, more)
            }
            GrowthVerdict::Stable if self.bound().is_some() => {
                let (how, between) = match self.teller.finding.reason {
                    Some(Reason::Fills { n, most, .. }) => {
                        (format!(" fills up: {n} of at most {most}{on}"), ", ")
                    }
                    Some(Reason::FirstWrites) => (format!(" grows{on}"), ": "),
                    _ => (format!(" grows with its input{on}"), ": "),
                };
                let bound = self.bound().and_then(|it| because(it, self.teller.units));
                let mut bound = bound.unwrap_or_default();
                if self.is_too_large() {
                    bound += ", more than is free";
                }
                let title = prose![self.subject(), how];
                Presentation::with_row(title, between, bound)
            }
            GrowthVerdict::Stable => Presentation::new(prose![place, self.settled(), on], ""),
        }
    }

    /// Its runs, or steps, kept about the same each.
    fn is_even(&self) -> bool {
        let series = &self.details.series;
        let n_runs = self.teller.finding.n_runs as f64;
        let (each, total) = (series.bytes_per_run.as_f64(), series.total.as_f64());
        (each * n_runs - total).abs() <= EVEN * total
    }

    /// What follows the place: ` grew for 4 runs and stopped at 448 MiB`.
    fn settled(&self) -> String {
        let (unit, total) = (self.unit(), self.total());
        match self.details.n_moving {
            Some(n) if n > 1 => {
                format!(" grew for {} and stopped at {total}", count(n, unit))
            }
            Some(1) => {
                let n_more = self.teller.finding.n_runs.saturating_sub(1);
                format!(" kept {total} in its first {unit} and nothing in {n_more} more")
            }
            _ => format!(" grew and stopped at {total}"),
        }
    }

    /// For the line after a cell: `losses +420 MiB every run (5 of 5)`, `full in about 13 runs`.
    fn line(&self) -> Vec<Prose> {
        let row = self.row();
        if self.teller.finding.withdrawn.is_some() || !self.state().grows() {
            return row.line;
        }
        let GrowthDetails {
            n_grown, n_known, ..
        } = self.details;
        let (each, unit, on) = (self.each(), self.unit(), self.teller.on_device());
        let often = if self.details.grew_each_time() {
            format!("every {unit}{}", self.of_loop())
        } else {
            self.one()
        };
        let rate = format!(" +{each} {often} ({n_grown} of {n_known}){on}");
        let mut parts = vec![prose![self.subject(), rate]];
        parts.extend(self.while_it_ran());
        parts.extend(self.forecast(""));
        parts.extend((self.state() == GrowthVerdict::Suspected).then(|| self.doubt().into()));
        parts
    }

    /// What grows: its name, where that is known, else the cell.
    fn subject(&self) -> Prose {
        match self.teller.finding.holders.first() {
            Some(_) => self.name(),
            None => self.place(),
        }
    }

    /// The first holder's name, as code; the cell where no name of the user's holds it.
    fn name(&self) -> Prose {
        match self.teller.finding.holders.first() {
            Some(Holder { name, kind, .. }) if *kind == RootKind::Variable => code(name).into(),
            Some(Holder { name, kind, .. }) if has_name(*kind) => {
                code(&kind.series_name(name)).into()
            }
            _ => self.place(),
        }
    }

    /// What has most of what was kept, and where it grows: `` `losses` (In [4]) ``.
    fn numbered_subject(&self) -> Option<Prose> {
        let finding = self.teller.finding;
        let first = finding.holders.first()?;
        let run = self.teller.recording.run(*finding.runs.last()?);
        let number = run.execution_count;
        let place = number.map_or_else(String::new, |n| format!(" (In [{n}])"));
        let total = self.details.series.total.as_f64();
        let retained = first.retained.as_f64();
        // What the last run made, another name may have, too.
        let without_last = total - total / finding.n_runs.max(1) as f64;
        let mut others = finding.holders.iter().skip(1);
        let is_only = others.all(|it| it.traits.is_shared);
        let is_only = is_only && retained >= NEARLY_ALL * without_last;
        let has_most = retained >= MOST * total || is_only;
        (has_most && has_name(first.kind)).then(|| prose![self.name(), place])
    }

    fn each(&self) -> String {
        let each = self.details.series.bytes_per_run.magnitude();
        self.teller.units.size(each)
    }

    fn total(&self) -> String {
        let total = self.details.series.total.magnitude();
        self.teller.units.size(total)
    }

    /// ` until In [12]`.
    fn until(&self) -> String {
        let last = self.teller.finding.runs.last();
        let number = last.and_then(|run| self.teller.recording.run(*run).execution_count);
        super::place(" until ", number)
    }

    /// The reader may want it. Nobody wants what a library is known for.
    fn asks(&self) -> bool {
        let finding = self.teller.finding;
        finding.known_leak.is_none() && finding.reason.is_some_and(Reason::is_meant)
    }

    /// Why it is not called a leak.
    fn doubt(&self) -> String {
        let reason = self.teller.finding.reason;
        let because = reason.and_then(|it| because(it, self.teller.units));
        because.unwrap_or_else(|| "not yet beyond doubt".to_owned())
    }

    /// Why it grows no further, where that is known.
    fn bound(&self) -> Option<Reason> {
        let is_bounded = self.teller.finding.kind == FindingKind::Bounded;
        self.teller.finding.reason.filter(|_| is_bounded)
    }

    /// When it is full, it does not fit into the device.
    fn is_too_large(&self) -> bool {
        matches!(self.bound(), Some(Reason::Fills { .. }))
            && self.teller.finding.severity == Severity::Warning
    }

    /// The verdict: what is about growth has one.
    fn state(&self) -> GrowthVerdict {
        self.teller
            .finding
            .state
            .unwrap_or(GrowthVerdict::Suspected)
    }

    /// The cell, and the blocks in it: `` `train() › epoch › forward` ``.
    ///
    /// What runs beside the cells grows by itself, whichever of them is there: `` `worker` (thread) ``.
    fn place(&self) -> Prose {
        if let Some((function, kind)) = self.beside() {
            return prose![code(function), " (", kind];
        }
        let path = &self.teller.finding.path;
        let n_blocks = path.len() - usize::from(self.details.steps);
        let blocks = path[..n_blocks].iter().map(String::as_str);
        let cell = self.teller.finding.cell.as_ref().map(|cell| &*cell.label);
        let statement = self.details.statement.as_deref().or(cell);
        let cell = source_text::abridged(statement.unwrap_or("a cell"));
        let names: Vec<&str> = std::iter::once(&*cell).chain(blocks).collect();
        code(&names.join(" › ")).into()
    }

    /// The function that grows it beside the cells, and what runs that: `worker`, `thread)`.
    fn beside(&self) -> Option<(&str, &str)> {
        self.details.by.as_deref()?.split_once(" (")
    }

    /// `` while In [7] ran, by `worker` (thread) ``.
    fn while_it_ran(&self) -> Option<Prose> {
        self.beside()?;
        let last = self.teller.finding.runs.last();
        let number = last.and_then(|run| self.teller.recording.run(*run).execution_count);
        let ran = number.map_or_else(|| "a cell".to_owned(), |n| format!("In [{n}]"));
        Some(prose![format!("while {ran} ran, by "), self.place()])
    }

    fn facts(&self) -> Vec<Prose> {
        let finding = self.teller.finding;
        let n_runs = count(finding.n_runs, self.unit());
        let total = self.teller.units.change(self.details.series.total);
        let held = finding.holders.first().map(holders::held_by);
        let facts = if finding.withdrawn == Some(Withdrawn::Returned) {
            [Some(format!("{total} in the run")), held]
        } else if finding.withdrawn.is_some() {
            [Some(format!("{total} over {n_runs}")), None]
        } else if self.bound().is_some() {
            [held, None]
        } else if self.state() == GrowthVerdict::Stable {
            let shape = self.details.series.shape.name();
            [Some(format!("{shape} over {n_runs}")), None]
        } else {
            let more = [self.headroom(), self.certainty(), held, self.traced_line()];
            let more = more.into_iter().flatten().map(Prose::from);
            return std::iter::once(self.rise()).chain(more).collect();
        };
        facts.into_iter().flatten().map(Prose::from).collect()
    }

    /// `grew in all 12 runs, 420 MiB each`.
    fn rise(&self) -> Prose {
        let (n_runs, unit) = (self.teller.finding.n_runs, self.unit());
        let rate = rate(self.details, self.teller.units);
        if let Some(by) = self.while_it_ran() {
            return format!("grew {rate} {} {}", self.one(), by.plain()).into();
        }
        let of = self.of_text();
        if unit == "item" {
            return prose![count(n_runs, unit), of, format!(", {rate} each")];
        }
        // A loop turns a few times before it is found and measured.
        let unit = match unit {
            "iteration" => "measured iteration",
            "call" => "measured call",
            unit => unit,
        };
        if self.details.grew_each_time() {
            return match n_runs {
                2 => prose![
                    format!("grew in both {unit}s"),
                    of,
                    format!(", {rate} each")
                ],
                1 => format!("grew in its only {unit}, {rate}").into(),
                n => prose![
                    format!("grew in all {n} {unit}s"),
                    of,
                    format!(", {rate} each")
                ],
            };
        }
        let share = 100 * self.details.n_grown / self.details.n_known;
        let n_runs = count(n_runs, unit);
        prose![
            format!("grew in {share} % of {n_runs}"),
            of,
            format!(", {rate} each on average")
        ]
    }

    /// `the device is full in about 24 runs`.
    fn forecast(&self, subject: &str) -> Option<Prose> {
        let (n, unit) = (self.details.foreseen()?, self.unit());
        Some(match n {
            0 => format!("the next {unit} may run out of memory").into(),
            n => {
                let n = usize::try_from(two_digits(n)).unwrap_or(usize::MAX);
                let n_runs = figure(format!("about {}", count(n, unit)));
                prose![subject, "full in ", n_runs, self.time_to_oom()]
            }
        })
    }

    /// `` (40 s)``: of iterations, of which nobody knows how long they take.
    fn time_to_oom(&self) -> String {
        let time = self.details.time_to_oom;
        let time = time.filter(|_| !matches!(self.unit(), "run" | "step" | "second"));
        time.map_or_else(String::new, |time| format!(" ({})", coarse(time)))
    }

    /// `9.98 GiB can still be used`, if a forecast rests on it.
    fn headroom(&self) -> Option<String> {
        self.details
            .foreseen()
            .filter(|_| self.state() != GrowthVerdict::NotEnoughData)?;
        let left = self.teller.units.size(self.details.headroom?);
        Some(format!("{left} can still be used"))
    }

    /// What decided it is a leak.
    fn certainty(&self) -> Option<String> {
        let reason = self.teller.finding.reason;
        let grew = reason.filter(|it| matches!(it, Reason::AllocationsGrew { .. }));
        because(grew?, self.teller.units)
    }

    /// `line 3 kept 420 MiB`.
    fn traced_line(&self) -> Option<String> {
        let (line, kept) = self.details.traced?.line?;
        Some(format!("line {line} kept {}", self.teller.units.size(kept)))
    }

    fn unit(&self) -> &'static str {
        unit(self.details)
    }

    /// `a run`, `an iteration of line 3`.
    fn one(&self) -> String {
        let unit = self.unit();
        let article = if unit.starts_with('i') { "an" } else { "a" };
        format!("{article} {unit}{}", self.of_loop())
    }

    /// `` of `for x in xs:` ``; empty if the text of the loop's line is not known.
    fn of_text(&self) -> Prose {
        let recording = self.teller.recording;
        let text = self.details.in_loop.as_ref().and_then(|at| {
            if at.unit == LoopUnit::Second {
                return None;
            }
            if !at.text.is_empty() {
                return Some(source_text::abridged(&at.text));
            }
            let mut runs = recording.runs().iter().rev();
            let run = match at.execution_count {
                None if !at.file.is_empty() => None,
                None => self
                    .teller
                    .finding
                    .runs
                    .last()
                    .map(|run| recording.run(*run)),
                number => runs.find(|it| it.execution_count == number && it.parent.is_none()),
            };
            let line = source_text::line(recording.text(run?)?, at.line)?;
            Some(source_text::abridged(line.trim()))
        });
        text.map_or_else(Prose::default, |line| prose![" of ", code(&line)])
    }

    /// ` of line 3`; empty if it counts no loop's iterations.
    fn of_loop(&self) -> String {
        let of = self.details.in_loop.as_ref();
        let of = of.filter(|it| !matches!(it.unit, LoopUnit::Second | LoopUnit::Item));
        of.map_or_else(String::new, |it| format!(" of {}", it.name()))
    }
}

/// A name that has less than this share of what a few runs kept may be a name of the latest one's.
const MOST: f64 = 0.6;

/// The only name that has this share of what all runs but the last kept is named for it.
const NEARLY_ALL: f64 = 0.75;

/// It is called by its name, not by what it is.
fn has_name(kind: RootKind) -> bool {
    let is_other = matches!(
        kind,
        RootKind::Traceback | RootKind::Unnamed | RootKind::System
    );
    !is_other && !kind.is_garbage() && !kind.is_graph_cycle()
}

/// A forecast of runs, with two digits that count.
pub fn two_digits(n: u64) -> u64 {
    let mut unit = 1;
    while n / unit >= 100 {
        unit *= 10;
    }
    (n + unit / 2) / unit * unit
}

/// A time without what an estimate does not tell: `40 s`, `12 min`, `3 h`.
fn coarse(time: Nanos) -> String {
    let seconds = time.get() / 1_000_000_000;
    match seconds {
        0 => "less than 1 s".to_owned(),
        1..60 => format!("{seconds} s"),
        60..3600 => format!("{} min", seconds / 60),
        _ => format!("{} h", seconds / 3600),
    }
}

/// What is counted: `run`, `step`, `iteration`, `call`.
pub fn unit(details: &GrowthDetails) -> &'static str {
    match details.in_loop.as_ref().map(|it| it.unit) {
        Some(LoopUnit::Iteration) => "iteration",
        Some(LoopUnit::Call) => "call",
        Some(LoopUnit::Item) => "item",
        Some(LoopUnit::Second) => "second",
        None if details.steps => "step",
        None => "run",
    }
}

/// Why growth is what it is called, where that is worth a word.
fn because(reason: Reason, units: Units) -> Option<String> {
    let words = match reason {
        Reason::AllocationsGrew { n_grown, n_runs } => {
            return Some(format!(
                "live allocations grew in {n_grown} of {n_runs} runs"
            ));
        }
        Reason::AllocationsStayed { n_runs } => {
            return Some(format!(
                "live allocations grew in none of {n_runs} runs: something is replaced by a larger one"
            ));
        }
        Reason::Fills { when_full, .. } => {
            return Some(format!("{} when full", units.size(when_full)));
        }
        Reason::OneTensor => "one tensor, replaced by a larger one each time",
        Reason::Trimmed => "older items are taken out at some size",
        Reason::MayBeMeant | Reason::Meant => "on purpose?",
        Reason::FirstWrites => "arrays that were allocated before are written for the first time",
        Reason::WaitsForCollector => "waiting for Python's garbage collector",
        Reason::CollectorOff => "the garbage collector is off",
        Reason::HolderUnknown => "what holds it is not known",
        Reason::Native => "no Python object holds it",
        Reason::NotBeyondDoubt => "not yet beyond doubt",
        Reason::TooFewRuns
        | Reason::Stopped
        | Reason::NotCollected
        | Reason::Accident
        | Reason::FullSoon { .. }
        | Reason::TakesMuch { .. } => return None,
    };
    Some(words.to_owned())
}

/// `420 MiB`, with half its interval if there is any doubt: `420 MiB ± 12 MiB`.
fn rate(details: &GrowthDetails, units: Units) -> String {
    let rate = details.series.bytes_per_run;
    let (low, high) = details.series.interval;
    let reach = (high + -rate).magnitude().max((rate + -low).magnitude());
    let size = rate.magnitude();
    if reach.as_f64() < 0.005 * size.as_f64() {
        units.size(size)
    } else {
        format!("{} ± {}", units.size(size), units.size(reach))
    }
}
