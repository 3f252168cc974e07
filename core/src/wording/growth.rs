//! A cell's runs, or the steps in one, that grow or settled.

use super::{Teller, Words, advice, count, holders, joined, withdrawn};
use crate::analyze::{DecidedBy, FindingKind, GrowthDetails, State};
use crate::units::Units;

/// Forecasts stop here: runs, and steps.
const FAR: [u64; 2] = [1_000, 100_000];

pub(super) fn words(teller: &Teller<'_>, details: &GrowthDetails) -> Words {
    let growth = Growth { teller, details };
    Words {
        title: growth.title(),
        detail: growth.detail(),
        suggestions: details.advice.iter().map(advice::against_growth).collect(),
    }
}

struct Growth<'a> {
    teller: &'a Teller<'a>,
    details: &'a GrowthDetails,
}

impl Growth<'_> {
    fn title(&self) -> String {
        let (label, unit, units) = (self.place(), self.unit(), self.teller.units);
        let finding = self.teller.finding;
        let each = units.size(self.details.series.bytes_per_run.magnitude());
        match self.state() {
            _ if finding.withdrawn.is_some() => {
                format!("{label} kept {each} more after every {unit}, but no longer")
            }
            State::Leak => format!("{label} keeps {each} more after every {unit}"),
            State::Suspected if self.details.decided_by == Some(DecidedBy::MayBeMeant) => {
                format!("{label} keeps {each} more after every {unit}")
            }
            State::Suspected => format!("{label} grows by about {each} a {unit}"),
            State::NotEnoughData => {
                let n_runs = count(finding.n_runs, unit);
                format!("{label} kept {each} more in each of {n_runs}")
            }
            State::Stable if self.bound().is_some() => {
                let holder = finding.holders.first().map(|holder| &*holder.name);
                let holder = holder.unwrap_or(&label);
                match self.details.decided_by {
                    Some(DecidedBy::Fills { n, most, .. }) => {
                        format!("{holder} fills up: {n} of at most {most}")
                    }
                    _ => format!("{holder} grows with its input"),
                }
            }
            State::Stable => {
                let kept = units.size(self.details.series.total.magnitude());
                match self.details.n_moving {
                    Some(n) if n > 1 => {
                        format!("{label} kept {kept} in its first {n} {unit}s, nothing since")
                    }
                    _ => format!("{label} kept {kept} in its first {unit}, nothing since"),
                }
            }
        }
    }

    /// Why it grows no further, where that is known.
    fn bound(&self) -> Option<DecidedBy> {
        let is_bounded = self.teller.finding.kind == FindingKind::Bounded;
        self.details.decided_by.filter(|_| is_bounded)
    }

    /// The verdict: what is about growth has one.
    fn state(&self) -> State {
        self.teller.finding.state.unwrap_or(State::Suspected)
    }

    /// The cell, and the blocks in it: `train() › epoch › forward`.
    fn place(&self) -> String {
        let path = &self.teller.finding.path;
        let n_blocks = path.len() - usize::from(self.details.steps);
        let blocks = path[..n_blocks].iter().map(String::as_str);
        let statement = self.details.statement.as_deref();
        let cell = statement.unwrap_or(self.teller.cell());
        let names: Vec<&str> = std::iter::once(cell).chain(blocks).collect();
        names.join(" › ")
    }

    fn detail(&self) -> String {
        let finding = self.teller.finding;
        let n_runs = count(finding.n_runs, self.unit());
        if let Some(reason) = finding.withdrawn {
            let total = self.teller.units.change(self.details.series.total);
            return format!("{} · {total} over {n_runs}", withdrawn(reason));
        }
        if let Some(bound) = self.bound() {
            let bound = decided_by(bound, self.teller.units);
            return joined([Some(bound), finding.holders.first().map(holders::held_by)]);
        }
        if self.state() == State::Stable {
            return format!("{} over {n_runs}", self.details.series.shape.name());
        }
        joined([
            Some(self.rise()),
            self.forecast(),
            self.certainty(),
            finding.holders.first().map(holders::held_by),
            self.traced_line(),
        ])
    }

    /// `grew in all 12 runs, 420 MiB each`.
    fn rise(&self) -> String {
        let (n_runs, unit) = (self.teller.finding.n_runs, self.unit());
        let rate = rate(self.details, self.teller.units);
        if self.details.grew_each_time() {
            return match n_runs {
                2 => format!("grew in both {unit}s, {rate} each"),
                1 => format!("grew in its only {unit}, {rate}"),
                n => format!("grew in all {n} {unit}s, {rate} each"),
            };
        }
        let share = 100 * self.details.n_grown / self.details.n_known;
        let n_runs = count(n_runs, unit);
        format!("grew in {share} % of {n_runs}, {rate} each on average")
    }

    /// `9.98 GiB left: out of memory in about 24 runs`.
    fn forecast(&self) -> Option<String> {
        let far = FAR[usize::from(self.details.steps)];
        let n = self.details.runs_to_oom.filter(|n| *n <= far)?;
        let left = self.teller.units.size(self.details.headroom?);
        let unit = self.unit();
        Some(match n {
            0 => format!("{left} left: the next {unit} may run out of memory"),
            n => {
                let n_runs = count(usize::try_from(n).unwrap_or(usize::MAX), unit);
                format!("{left} left: out of memory in about {n_runs}")
            }
        })
    }

    /// What decided, or what would.
    fn certainty(&self) -> Option<String> {
        let unit = self.unit();
        match (self.state(), self.details.decided_by) {
            (State::Suspected, Some(DecidedBy::MayBeMeant))
                if self.teller.finding.holders.is_empty() =>
            {
                Some("no name of yours holds it".to_owned())
            }
            (State::Leak | State::Suspected, Some(decided)) => {
                Some(decided_by(decided, self.teller.units))
            }
            (State::Suspected, None) => Some("not yet beyond doubt".to_owned()),
            (State::NotEnoughData, _) => Some(match self.details.n_missing {
                1 => format!("1 more {unit} needed to tell a leak from a warm-up"),
                n => format!("{n} more {unit}s needed to tell a leak from a warm-up"),
            }),
            _ => None,
        }
    }

    /// `line 3 kept 420 MiB`.
    fn traced_line(&self) -> Option<String> {
        let (line, kept) = self.details.traced?.line?;
        Some(format!("line {line} kept {}", self.teller.units.size(kept)))
    }

    fn unit(&self) -> &'static str {
        unit(self.details)
    }
}

fn unit(details: &GrowthDetails) -> &'static str {
    if details.steps { "step" } else { "run" }
}

fn decided_by(decided: DecidedBy, units: Units) -> String {
    match decided {
        DecidedBy::AllocationsGrew { n_grown, n_runs } => {
            format!("live allocations grew in {n_grown} of {n_runs} runs")
        }
        DecidedBy::AllocationsStayed { n_runs } => format!(
            "live allocations grew in none of {n_runs} runs: something is replaced by a larger one"
        ),
        DecidedBy::OneTensor => "one tensor, replaced by a larger one each time".to_owned(),
        DecidedBy::MayBeMeant => "you may want to keep it".to_owned(),
        DecidedBy::Fills { when_full, .. } => format!("{} when full", units.size(when_full)),
    }
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
