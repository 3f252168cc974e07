//! Comparison with a baseline: what grew more or less than before.

use serde::Serialize;

use super::cell::CellRef;
use super::findings::{Finding, Withdrawn};
use super::growth::GrowthVerdict;
use super::incremental_analyzer::IncrementalAnalyzer;
use super::paths::Paths;
use super::row::RunRow;
use super::series::{self, SeriesKey};
use super::stats_cache::StatsCache;
use super::{Analysis, Rules};
use gpumem_model::named;
use gpumem_model::recording::{DeviceIdx, DeviceKey, Recording, Run, Status};
use gpumem_model::source_text;
use gpumem_model::units::{ByteDelta, Bytes};

named! {
    /// How a cell's growth changed. The order is that of the report.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
    pub enum GrowthChange {
        /// It grows more.
        Worse = "worse",
        /// It grows, and is not in the baseline.
        New = "new",
        /// It grew, and no longer does.
        Fixed = "fixed",
        /// It grows less.
        Better = "better",
        /// It grows as much as before.
        Same = "same",
    }
}

/// A cell's (or a loop's) growth in one recording. A side of [`SessionComparison`].
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct GrowthSide {
    /// The verdict.
    pub state: GrowthVerdict,
    /// How many runs, or steps.
    pub n_runs: usize,
    /// What each of them kept.
    pub bytes_per_run: ByteDelta,
    /// Its 95 % confidence interval.
    pub interval: (ByteDelta, ByteDelta),
    /// The highest rise of the level inside a run, from its start.
    #[serde(rename = "peak_bytes")]
    pub peak: Option<Bytes>,
}

/// One cell (or loop) on one device, before and after.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SessionComparison {
    /// The cell as it is now.
    pub cell: CellRef,
    /// The label of the steps or the names of the blocks inside the cell.
    pub path: Vec<String>,
    /// The device's label.
    pub device: String,
    /// The series counts steps, not runs.
    pub steps: bool,
    /// In the baseline; `None` if it is not there.
    pub before: Option<GrowthSide>,
    /// Now.
    pub after: GrowthSide,
    /// How it changed.
    pub change: GrowthChange,
    /// Growth per run now, minus growth per run then.
    #[serde(rename = "difference_bytes")]
    pub difference: ByteDelta,
    /// Half of the 95 % confidence interval of the difference.
    #[serde(rename = "uncertainty_bytes")]
    pub uncertainty: Bytes,
}

/// Compares each growing cell of `recording` with `baseline`, worst first.
///
/// A cell is matched by equal source, else by the frontend's id, else by its first meaningful line, else by
/// the start of that line, because a fixed cell has another source now.
pub fn compare(
    recording: &Recording,
    baseline: &Recording,
    rules: &Rules,
) -> Vec<SessionComparison> {
    IncrementalAnalyzer::default().compare(recording, baseline, rules)
}

impl IncrementalAnalyzer {
    /// As [`compare`](compare()).
    pub fn compare(
        &mut self,
        recording: &Recording,
        baseline: &Recording,
        rules: &Rules,
    ) -> Vec<SessionComparison> {
        self.stats.turn();
        let before = self.sides(baseline, rules);
        let after = self.sides(recording, rules);
        compared(&before, after)
    }

    fn sides(&mut self, recording: &Recording, rules: &Rules) -> Vec<ComparisonEntry> {
        let analysis = self.derived(recording, rules);
        sides(recording, &analysis, rules, &mut self.stats)
    }
}

fn compared(before: &[ComparisonEntry], after: Vec<ComparisonEntry>) -> Vec<SessionComparison> {
    let mut compared: Vec<SessionComparison> = after
        .into_iter()
        .filter_map(|after| {
            let same = before
                .iter()
                .filter(|before| before.is_same_place(&after))
                .max_by_key(|before| before.likeness(&after))
                .filter(|before| before.likeness(&after) > 0);
            held_against(same.map(|entry| entry.side.clone()), after)
        })
        .collect();
    compared.sort_by_key(|entry| (entry.change, entry.difference.magnitude()));
    compared
}

/// The cells that grew in `baseline` and have not run in `recording`: what a comparison waits for.
pub fn waiting(recording: &Recording, baseline: &Recording, rules: &Rules) -> Vec<CellRef> {
    let analyzer = &mut IncrementalAnalyzer::default();
    let after = analyzer.sides(recording, rules);
    let mut waiting: Vec<CellRef> = Vec::new();
    for before in analyzer.sides(baseline, rules) {
        let has_run = after.iter().any(|after| before.likeness(after) > 0);
        let is_known = waiting.iter().any(|cell| cell.id == before.cell.id);
        let grew = before.side.n_runs > 2 && is_growing(&before.side, before.least);
        if grew && !has_run && !is_known {
            waiting.push(before.cell);
        }
    }
    waiting
}

/// A side with what it is found again by.
struct ComparisonEntry {
    cell: CellRef,
    source: u64,
    headline: Option<String>,
    path: Vec<String>,
    device_key: DeviceKey,
    device: String,
    steps: bool,
    /// The growth over all of it that counts.
    least: Bytes,
    side: GrowthSide,
}

impl ComparisonEntry {
    fn is_same_place(&self, other: &Self) -> bool {
        let place = |entry: &Self| (entry.path.clone(), entry.device_key.clone(), entry.steps);
        place(self) == place(other)
    }

    fn likeness(&self, other: &Self) -> u8 {
        let [headline, same] = [self, other].map(|entry| entry.headline.as_deref());
        match self {
            _ if self.source == other.source => 4,
            _ if self.cell.id == other.cell.id => 3,
            _ if headline.is_none() || same.is_none() => 0,
            _ if headline == same => 2,
            _ if headline.map(start) == same.map(start) => 1,
            _ => 0,
        }
    }
}

/// `losses.append` of `losses.append(step(batch))`: what a fix leaves of the line that it changes.
fn start(headline: &str) -> &str {
    let end = headline.find('(').unwrap_or(headline.len());
    &headline[..end]
}

fn held_against(before: Option<GrowthSide>, after: ComparisonEntry) -> Option<SessionComparison> {
    let now = &after.side;
    let reach = |side: &GrowthSide| {
        let (low, high) = side.interval;
        let half = (high + -low).magnitude().as_f64() / 2.0;
        half.max(0.005 * side.bytes_per_run.magnitude().as_f64())
    };
    let rate = |side: &GrowthSide| side.bytes_per_run;
    let then = before.as_ref();
    let difference = rate(now) + -then.map_or(ByteDelta::ZERO, rate);
    let uncertainty = then.map_or(0.0, reach).hypot(reach(now));
    let least = after.least;
    let is_first_alone = |then: &GrowthSide| then.n_runs == 1 && now.n_runs > 1;
    let grew = then.is_some_and(|then| is_growing(then, least) && !is_first_alone(then));
    let grows = is_growing(now, least);
    let change = match then {
        _ if !grew && !grows => return None,
        None => GrowthChange::New,
        Some(_) if grew && !grows => GrowthChange::Fixed,
        Some(_) if !grew => GrowthChange::Worse,
        Some(_) if difference.as_f64() < -uncertainty => GrowthChange::Better,
        Some(_) if difference.as_f64() > uncertainty => GrowthChange::Worse,
        Some(_) => GrowthChange::Same,
    };
    if now.n_runs == 1 && !tells_something(change, then) {
        return None;
    }
    Some(SessionComparison {
        cell: after.cell,
        path: after.path,
        device: after.device,
        steps: after.steps,
        before,
        after: after.side,
        change,
        difference,
        uncertainty: Bytes::new(uncertainty as u64),
    })
}

/// Of a single run now: it alarms only beside a single run, since the first fills what later ones replace,
/// and what two single runs kept alike does not grow.
fn tells_something(change: GrowthChange, then: Option<&GrowthSide>) -> bool {
    let is_alarm = matches!(change, GrowthChange::Worse | GrowthChange::New);
    match then {
        Some(then) if then.n_runs == 1 => change != GrowthChange::Same,
        _ => !is_alarm,
    }
}

fn is_growing(side: &GrowthSide, least: Bytes) -> bool {
    let total = side.bytes_per_run.as_f64() * side.n_runs as f64;
    let keeps = side.interval.0 > ByteDelta::ZERO && total >= least.as_f64();
    match side.state {
        GrowthVerdict::Leak | GrowthVerdict::Suspected => true,
        GrowthVerdict::NotEnoughData => keeps,
        GrowthVerdict::Stable => false,
    }
}

/// The growth of each cell and loop, with the verdicts of this analysis of the recording.
fn sides(
    recording: &Recording,
    analysis: &Analysis,
    rules: &Rules,
    stats: &mut StatsCache,
) -> Vec<ComparisonEntry> {
    let paths = Paths::new(recording);
    let of_runs = series::of_runs(recording, &paths, &analysis.rows);
    // A cell that is edited for each run has a series of one each time: the finding knows them all.
    let state = |run: &Run, key: &SeriesKey, (steps, n_runs): (bool, usize)| {
        let is_about = |finding: &&Finding| {
            let cell = finding.cell.as_ref().map(|cell| cell.idx);
            finding.growth().is_some()
                && finding.withdrawn.is_none_or(|it| it == Withdrawn::Expected)
                && (cell, finding.device) == (Some(run.cell), key.device)
                && (&finding.path, finding.counts_steps()) == (&key.path, steps)
        };
        let reported = analysis.findings.iter().find(is_about);
        // A single run is not reported, whatever it keeps.
        let unreported = if n_runs == 1 {
            GrowthVerdict::NotEnoughData
        } else {
            GrowthVerdict::Stable
        };
        let state = reported
            .and_then(|finding| finding.state)
            .unwrap_or(unreported);
        let is_last = |finding: &&Finding| finding.runs.last() == Some(&run.idx);
        let n_reported = reported.filter(is_last).map_or(0, |finding| finding.n_runs);
        (state, n_runs.max(n_reported))
    };
    let mut sides = Vec::new();
    sides.extend(of_runs.iter().filter_map(|series| {
        let rows = series.rows.iter().copied();
        let rows: Vec<&RunRow> = rows
            .filter(|row| is_whole(recording.run(row.run)))
            .collect();
        let last = recording.run(rows.last()?.run);
        let least = recording.device(series.key.device).kind.min_growth(rules);
        let (bytes_per_run, interval) = kept_by_each(&rows)?;
        let (state, n_runs) = state(last, &series.key, (false, rows.len()));
        let side = GrowthSide {
            state,
            n_runs,
            bytes_per_run,
            interval,
            peak: rows.iter().filter_map(|row| rise(row)).max(),
        };
        Some(entry(
            recording,
            last,
            &series.key.path,
            series.key.device,
            (false, least),
            side,
        ))
    }));
    // Whether a loop is counted depends on how long it takes.
    let whole = recording.runs().iter().filter(|run| is_whole(run));
    let of_steps = series::of_steps(recording, &paths, whole);
    let of_marks = of_steps.iter().filter(|series| series.in_loop.is_none());
    sides.extend(of_marks.map(|series| {
        let run = recording.run(series.run);
        let least = recording.device(series.key.device).kind.min_growth(rules);
        let growth = stats.judged(&series.levels, least, rules);
        let per_step =
            |delta: ByteDelta| ByteDelta::from_f64(delta.as_f64() / series.steps_per_point);
        let side = GrowthSide {
            state: state(run, &series.key, (true, series.n_steps)).0,
            n_runs: series.n_steps,
            bytes_per_run: per_step(growth.bytes_per_run),
            interval: (per_step(growth.interval.0), per_step(growth.interval.1)),
            peak: None,
        };
        entry(
            recording,
            run,
            &series.key.path,
            series.key.device,
            (true, least),
            side,
        )
    }));
    sides
}

/// What a run kept that ran out of memory says where it stopped, not how it grows.
fn is_whole(run: &Run) -> bool {
    run.status != Status::OutOfMemory
}

fn entry(
    recording: &Recording,
    run: &Run,
    path: &[String],
    device: DeviceIdx,
    (steps, least): (bool, Bytes),
    side: GrowthSide,
) -> ComparisonEntry {
    let text = recording.text(run);
    let device = recording.device(device);
    ComparisonEntry {
        cell: CellRef::for_run(recording, run),
        source: run.revision.0,
        headline: text.and_then(source_text::headline),
        path: path.to_vec(),
        device_key: device.key.clone(),
        device: device.label.clone(),
        steps,
        least,
        side,
    }
}

fn rise(row: &RunRow) -> Option<Bytes> {
    Some(row.peak?.low().saturating_sub(row.before?))
}

/// What each run kept: mean with its normal interval of 95 %, without the first
/// run (which warms up) where there are at least three.
fn kept_by_each(rows: &[&RunRow]) -> Option<(ByteDelta, (ByteDelta, ByteDelta))> {
    let kept: Vec<f64> = rows
        .iter()
        .filter_map(|row| row.kept)
        .map(ByteDelta::as_f64)
        .collect();
    let kept = if kept.len() >= 3 {
        &kept[1..]
    } else {
        &kept[..]
    };
    let n = kept.len() as f64;
    let mean = kept.iter().sum::<f64>() / n;
    let sum_of_squares: f64 = kept.iter().map(|kept| (kept - mean).powi(2)).sum();
    let error = if kept.len() > 1 {
        1.96 * (sum_of_squares / (n - 1.0) / n).sqrt()
    } else {
        0.0
    };
    (!kept.is_empty()).then(|| {
        let delta = ByteDelta::from_f64;
        (delta(mean), (delta(mean - error), delta(mean + error)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analyze;
    use crate::testing::{Play, run, session};
    use gpumem_model::recording::{CellIdx, Frame};

    fn check(before: &[(&str, &[Play])], after: &[(&str, &[Play])], expected: &[(&str, &str)]) {
        let (baseline, _) = session(before);
        let (recording, _) = session(after);
        let found = compare(&recording, &baseline, &Rules::default());
        let found: Vec<_> = found
            .iter()
            .map(|entry| (entry.cell.label.as_str(), entry.change.name()))
            .collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn runs_that_ran_out_of_memory_are_left_out() {
        let leak = vec![run(40); 12];
        let ran_out = |kept: i64| Play {
            status: Status::OutOfMemory,
            ..run(kept)
        };
        // What it kept up to there is no growth of a run.
        let with_oom = [&leak[..], &[ran_out(900)]].concat();
        check(&[("f()", &leak)], &[("f()", &with_oom)], &[("f()", "same")]);
        check(&[("f()", &with_oom)], &[("f()", &leak)], &[("f()", "same")]);
        check(&[("f()", &leak)], &[("f()", &[ran_out(0)])], &[]);
    }

    #[test]
    fn steps_of_a_run_that_ran_out_of_memory_are_left_out() {
        let steps = |each: i64, n: u32| run(each * i64::from(n)).steps(n as usize);
        let ran_out = steps(400, 12).status(Status::OutOfMemory);
        let steps_of = |plays: &[Play]| -> Vec<_> {
            let baseline = session(&[("f()", &[steps(40, 12)])]).0;
            let recording = session(&[("f()", plays)]).0;
            let found = compare(&recording, &baseline, &Rules::default());
            let of_steps = found.iter().filter(|entry| entry.steps);
            of_steps.map(|entry| entry.change).collect()
        };
        assert_eq!(steps_of(&[steps(40, 12)]), [GrowthChange::Same]);
        // It began with more in use, and stopped where there was no more.
        assert_eq!(steps_of(&[steps(40, 12), ran_out]), [GrowthChange::Same]);
    }

    #[test]
    fn each_cell_has_its_word() {
        let leak = |n_mib: i64| vec![run(n_mib); 12];
        let flat = vec![run(0); 12];
        for (before, after, word) in [
            (&leak(40), &flat, "fixed"),
            (&leak(40), &leak(10), "better"),
            (&leak(40), &leak(40), "same"),
            (&leak(40), &leak(90), "worse"),
            (&flat, &leak(90), "worse"),
        ] {
            check(&[("f()", before)], &[("f()", after)], &[("f()", word)]);
        }
        let with_new: [(&str, &[Play]); 2] = [("f()", &flat), ("g()", &leak(90))];
        check(&[("f()", &flat)], &with_new, &[("g()", "new")]);
        check(&[("f()", &flat)], &[("f()", &flat)], &[]);
    }

    #[test]
    fn a_single_run_alarms_only_beside_a_single_run() {
        let leak = vec![run(40); 12];
        let replaced = [vec![run(1500)], vec![run(0); 4]].concat();
        let once = [run(1500)];
        let check = |before: &[Play], after: &[Play], words: &[&str]| {
            let expected: Vec<_> = words.iter().map(|word| ("f()", *word)).collect();
            check(&[("f()", before)], &[("f()", after)], &expected);
        };
        check(&replaced, &once, &[]);
        check(&leak, &once, &[]);
        check(&leak, &[run(0)], &["fixed"]);
        check(&[run(500)], &once, &["worse"]);
        check(&once, &once, &[]);
        self::check(&[], &[("f()", &once)], &[]);
    }

    #[test]
    fn an_edited_cell_is_found_again() {
        let leak = vec![run(40); 12];
        let flat = vec![run(0); 12];
        check(
            &[("losses.append(f())\nx = 1", &leak)],
            &[("losses.append(f())\nx = 2", &flat)],
            &[("losses.append(f())", "fixed")],
        );
    }

    #[test]
    fn a_leak_of_a_cell_that_is_edited_for_each_run_is_not_left_out() {
        let plays = [run(40).held_by("losses", "list")];
        let sources: Vec<String> = (1..=9).map(|n| format!("losses.append(f({n}))")).collect();
        let edited = sources.iter().map(|it| (&**it, &plays[..]));
        let (recording, _) = session(&edited.collect::<Vec<_>>());
        let mut of_one_cell = Recording::default();
        for mut frame in recording.frames() {
            match &mut frame {
                Frame::Cell(cell) => (cell.idx, cell.id) = (CellIdx(0), "cell".to_owned()),
                Frame::Run(run) => run.cell = CellIdx(0),
                _ => {}
            }
            of_one_cell.apply(frame).unwrap();
        }
        let rules = Rules::default();
        let reported = analyze(&of_one_cell, &rules).findings;
        assert!(reported[0].growth().is_some());
        let found = compare(&of_one_cell, &Recording::default(), &rules);
        let found: Vec<_> = found
            .iter()
            .map(|it| (&*it.cell.label, it.change))
            .collect();
        assert_eq!(found, [("losses.append(f(9))", GrowthChange::New)]);
    }

    /// The same recording from a frontend that gave its cells other ids.
    fn with_other_ids(recording: &Recording) -> Recording {
        let mut other = Recording::default();
        for mut frame in recording.frames() {
            if let Frame::Cell(cell) = &mut frame {
                cell.id = format!("other {}", cell.id);
            }
            other.apply(frame).unwrap();
        }
        other
    }

    #[test]
    fn a_cell_without_its_id_is_found_by_its_fixed_line() {
        let change = |fixed: &str| {
            let (baseline, _) = session(&[("losses.append(f())", &vec![run(40); 12])]);
            let (recording, _) = session(&[(fixed, &vec![run(0); 12])]);
            let found = compare(&with_other_ids(&recording), &baseline, &Rules::default());
            found.first().map(|entry| entry.change)
        };
        assert_eq!(
            change("losses.append(f().item())"),
            Some(GrowthChange::Fixed)
        );
        assert_eq!(change("other.append(f())"), None);
    }

    #[test]
    fn a_session_is_its_own_baseline() {
        let plays = [vec![run(40); 12], vec![run(0); 12]].concat();
        let (recording, _) = session(&[("f()", &plays)]);
        let (before, after) = recording.split_at(12);
        let found = compare(&after, &before, &Rules::default());
        assert_eq!(found[0].change, GrowthChange::Fixed);
        assert_eq!(found[0].difference, ByteDelta::new(-40 << 20));
    }
}
