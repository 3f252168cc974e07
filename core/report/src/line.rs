//! The line after a cell.

use std::collections::{BTreeMap, BTreeSet};

use super::{in_parts, status_word, to_text, use_of_limit, verdict};
use gpumem_analyzer::{
    Analysis, DeviceSummary, Finding, FindingDetails, FindingKind, GrowthVerdict, Peak, Reason,
    RunRow, Severity, Withdrawn,
};
use gpumem_heap::is_let_go;
use gpumem_model::recording::{CellIdx, DeviceIdx, DeviceKind, Recording, RunIdx, Status};
use gpumem_model::units::{ByteDelta, Bytes, Nanos, Units};
use gpumem_wording::{Prose, has_named_holder, others, present, together};

/// Share of the capacity that a run must keep for `%gpumem on` to print a line.
const WORTH_A_LINE: f64 = 0.01;

/// What is new with a run. [`news`] finds it, [`line`](line()) prints it.
pub struct News<'a> {
    moved: bool,
    findings: Vec<&'a Finding>,
    ended: Vec<Prose>,
}

/// The findings that lines have shown.
#[derive(Debug, Default)]
pub struct ShownFindings {
    states: BTreeSet<String>,
    /// The warnings of growth that have not ended, by what they are about.
    warnings: BTreeMap<String, Warning>,
}

/// Growth of which a line has warned.
#[derive(Debug)]
struct Warning {
    cell: CellIdx,
    device: DeviceIdx,
    rate: ByteDelta,
    /// `losses stopped growing`.
    stopped: Prose,
    /// After how many runs nothing was known of the cell any more.
    n_unknown: usize,
}

/// Growth of which so many runs tell nothing is not taken back: nobody knows.
const MOST_UNKNOWN: usize = 6;

impl News<'_> {
    /// Whether `%gpumem on` prints a line: at least 1 % of a capacity was kept or freed, or a finding is
    /// new. The host's capacity counts only if the run has no other device.
    pub fn is_worth_a_line(&self) -> bool {
        self.moved || !self.findings.is_empty() || !self.ended.is_empty()
    }

    /// The new findings alone, for a line that was shown before they were known; empty if there are none.
    pub fn findings(&self, recording: &Recording, width: usize) -> String {
        let findings = self.findings.iter();
        let found = findings.map(|it| verdict::below_cell(recording, it, width));
        to_text(&found.chain(self.ended()).collect::<Vec<_>>())
    }

    fn ended(&self) -> impl Iterator<Item = String> {
        self.ended.iter().map(|it| format!("✓ {}", it.plain()))
    }
}

/// What is new with a run. Those of its findings are added to the shown ones.
pub fn news<'a>(
    recording: &Recording,
    analysis: &'a Analysis,
    run: RunIdx,
    shown: &mut ShownFindings,
) -> News<'a> {
    let rows = analysis.rows.iter().filter(|row| row.run == run);
    let is_host = |row: &RunRow| recording.device(row.device).kind == DeviceKind::Host;
    let host_counts = rows.clone().all(is_host);
    let moved = rows.filter(|row| host_counts || !is_host(row)).any(|row| {
        let kept = row.kept.unwrap_or_default().magnitude();
        let capacity = row.capacity.unwrap_or(Bytes::gib(8));
        kept.as_f64() >= WORTH_A_LINE * capacity.as_f64()
    });
    let ended = shown.ended(recording, analysis, run);
    let findings = concerning(recording, analysis, run)
        .filter(|finding| shown.take_in(recording, finding))
        .collect();
    News {
        moved,
        findings,
        ended,
    }
}

impl ShownFindings {
    /// A line has warned of growth in that cell, and it has not ended.
    pub fn warned_of(&self, cell: CellIdx) -> bool {
        self.warnings.values().any(|it| it.cell == cell)
    }

    /// Whether it is new.
    fn take_in(&mut self, recording: &Recording, finding: &Finding) -> bool {
        let rate = finding.growth().map(|it| it.bytes_per_run);
        let rate = rate.filter(|_| finding.severity > Severity::Info);
        if let Some((cell, rate)) = finding.cell.as_ref().zip(rate) {
            let warning = Warning {
                cell: cell.idx,
                device: finding.device,
                rate,
                stopped: gpumem_wording::stopped(recording, finding),
                n_unknown: 0,
            };
            self.warnings.insert(subject(finding), warning);
        }
        self.states.insert(state_of(finding))
    }

    /// The warnings that end with a run: what was growing has stopped, or is freed.
    fn ended(&mut self, recording: &Recording, analysis: &Analysis, run: RunIdx) -> Vec<Prose> {
        let kept = |device| {
            let row = analysis.row(run, device);
            row.and_then(|row| row.kept).unwrap_or_default()
        };
        let cell = recording.run(run).cell;
        let grows = |it: &Finding| it.kind != FindingKind::Settled && it.withdrawn.is_none();
        // Most runs end none: they are not worth the analysis of all.
        let may_end = |(about, it): (&String, &Warning)| {
            let is_it = |finding: &Finding| grows(finding) && subject(finding) == *about;
            let has_run = it.cell == cell && !analysis.findings.iter().any(is_it);
            has_run || kept(it.device) < ByteDelta::ZERO
        };
        if !self.warnings.iter().any(may_end) {
            return Vec::new();
        }
        let whole = gpumem_analyzer::analyze(recording, &recording.header().rules);
        let mut ended = Vec::new();
        for (about, mut it) in std::mem::take(&mut self.warnings) {
            let is_of_cell = |finding: &&Finding| {
                let cell = finding.cell.as_ref().map(|cell| cell.idx);
                finding.growth().is_some() && cell == Some(it.cell) && finding.device == it.device
            };
            let of_cell: Vec<&Finding> = whole.findings.iter().filter(is_of_cell).collect();
            let mut same = of_cell.iter().filter(|finding| subject(finding) == about);
            // An edit alone ends nothing, and until it has settled nobody knows.
            let is_unknown = of_cell.is_empty();
            it.n_unknown += usize::from(is_unknown && it.cell == cell);
            let is_over = if is_unknown {
                kept(it.device) < ByteDelta::ZERO || it.n_unknown > MOST_UNKNOWN
            } else {
                kept(it.device).as_f64() < 0.5 * it.rate.as_f64()
            };
            if same.any(|finding| grows(finding)) || !is_over {
                self.warnings.insert(about, it);
                continue;
            }
            self.states.retain(|state| !state.ends_with(&about));
            // Where nothing is known of it any more, it begins anew.
            ended.extend(Some(it.stopped).filter(|_| !is_unknown));
        }
        ended
    }
}

/// Whether [`news`] of a run has a finding: what else is known of it soon should be waited for.
pub fn has_new_finding(
    recording: &Recording,
    analysis: &Analysis,
    run: RunIdx,
    shown: &ShownFindings,
) -> bool {
    let mut findings = concerning(recording, analysis, run);
    findings.any(|finding| !shown.states.contains(&state_of(finding)))
}

fn concerning<'r, 'a>(
    recording: &'r Recording,
    analysis: &'a Analysis,
    run: RunIdx,
) -> impl Iterator<Item = &'a Finding> + use<'r, 'a> {
    let findings = analysis.findings.iter();
    findings.filter(move |finding| {
        concerns(recording, finding, run) && !awaits_name(recording, finding)
    })
}

/// Two runs kept something, and nobody knows yet who has it: the look after the next one will tell.
fn awaits_name(recording: &Recording, finding: &Finding) -> bool {
    let is_looked_at = recording.looks(finding.device).next().is_some();
    let is_first = finding.state == Some(GrowthVerdict::NotEnoughData) && finding.n_runs <= 2;
    is_first && is_looked_at && !has_named_holder(recording, finding)
}

/// What a finding is about: in growth a name and its cell, however it was found.
fn subject(finding: &Finding) -> String {
    let name = finding.holders.first().map(|it| &*it.name);
    let cell = finding.cell.as_ref().map(|cell| cell.idx);
    match cell.filter(|_| finding.growth().is_some()) {
        Some(cell) => format!("{cell:?} {:?} {}", finding.device, name.unwrap_or_default()),
        None => finding.id.clone(),
    }
}

/// The finding and its state: news if either changes.
fn state_of(finding: &Finding) -> String {
    let withdrawn = finding.withdrawn.map_or("", Withdrawn::name);
    let state = finding.state.map_or("", GrowthVerdict::name);
    format!("{state} {withdrawn} {}", subject(finding))
}

/// The line after a cell, broken between its parts to fit `width`: what the run kept and how full the
/// device is; two more lines for a new finding.
///
/// Findings that belong to no cell would appear after every run, so they are shown only while new.
pub fn line(
    recording: &Recording,
    analysis: &Analysis,
    run: RunIdx,
    news: &News<'_>,
    width: usize,
) -> String {
    let rows: Vec<&RunRow> = analysis.rows.iter().filter(|row| row.run == run).collect();
    let shown = shown_rows(recording, &rows);
    let several = shown.len() > 1;
    let mut lines: Vec<String> = shown
        .iter()
        .map(|row| in_parts(&row_parts(recording, analysis, row, several), width, "  "))
        .collect();
    if lines.is_empty() {
        lines.push("no level is known for this run: see %gpumem status".to_owned());
    }
    let is_new = |finding: &Finding| news.findings.iter().any(|it| it.id == finding.id);
    lines.extend(
        concerning(recording, analysis, run)
            .filter(|finding| finding.cell.is_some() || is_new(finding))
            .map(|finding| verdict::below_cell(recording, finding, width)),
    );
    lines.extend(news.ended());
    to_text(&lines)
}

/// What a device that fills within this time is worth: a line under the running cell.
const SOON: Nanos = Nanos::millis(300_000);

/// A loop that may mean to collect ends with its input: it gets a forecast after 1/64 of the iterations that fill
/// the device.
const PART_OF_THE_WAY: u64 = 64;

/// The line under a cell that goes on, if a loop in it leaks, or collects what may be wanted, and the device will
/// be full within five minutes; and how much it matters:
/// `▲ losses +64 MiB every iteration of line 1 (12 of 12) · full in about 52 iterations (40 s)`.
pub fn forecast_line(
    recording: &Recording,
    analysis: &Analysis,
    run: RunIdx,
    width: usize,
) -> Option<(Severity, String)> {
    let fills_soon = |finding: &&Finding| {
        let FindingDetails::Growth(growth) = &finding.details else {
            return false;
        };
        let is_leak = finding.kind == FindingKind::Leak && finding.severity == Severity::Critical;
        let is_let_go = finding.holders.first().is_some_and(|holder| {
            let text = recording.text(recording.run(run));
            text.is_some_and(|text| is_let_go(holder, text))
        });
        let may_be_meant = finding.reason.is_some_and(Reason::is_meant)
            && growth.grew_each_time()
            && growth
                .runs_to_oom
                .is_some_and(|n| n <= PART_OF_THE_WAY * growth.n_known as u64)
            && !is_let_go;
        let in_loop = growth.in_loop.as_ref();
        // A cache of a library's grows for a while in most sessions.
        in_loop.is_some_and(|at| is_leak || may_be_meant && at.file.is_empty())
            && finding.runs.last() == Some(&run)
            && growth.time_to_oom.is_some_and(|time| time <= SOON)
    };
    let finding = analysis.findings.iter().find(fills_soon)?;
    let shown = present(recording, finding, Units::Binary);
    let line = verdict::growth_below_cell(&shown, width);
    Some((finding.severity, line))
}

/// The finding asks for attention, and rests on the run or on a block in it.
fn concerns(recording: &Recording, finding: &Finding, run: RunIdx) -> bool {
    let is_within = |it: &RunIdx| *it >= run && recording.outermost(*it) == run;
    let asks = match finding.kind {
        FindingKind::Settled => false,
        FindingKind::Bounded => finding.severity > Severity::Info,
        // A small result that is displayed is no concern; memory that ran out says it itself.
        FindingKind::Retention => {
            let ran_out = recording.run(run).status == Status::OutOfMemory;
            finding.severity > Severity::Info && !ran_out
        }
        _ => true,
    };
    asks && finding.runs.iter().rev().any(is_within)
}

/// The devices of which a line speaks: accelerators that moved, else the first
/// accelerator, else the host.
fn shown_rows<'a>(recording: &Recording, rows: &[&'a RunRow]) -> Vec<&'a RunRow> {
    let is_host = |row: &&&RunRow| recording.device(row.device).kind == DeviceKind::Host;
    let accelerators: Vec<&RunRow> = rows.iter().filter(|row| !is_host(row)).copied().collect();
    let moved: Vec<&RunRow> = accelerators
        .iter()
        .filter(|row| row.kept.is_some_and(|kept| kept != ByteDelta::ZERO))
        .copied()
        .collect();
    match (moved.as_slice(), accelerators.first()) {
        ([], Some(first)) => vec![first],
        ([], None) => rows.iter().take(1).copied().collect(),
        _ => moved,
    }
}

fn row_parts(
    recording: &Recording,
    analysis: &Analysis,
    row: &RunRow,
    several: bool,
) -> Vec<String> {
    let run = recording.run(row.run);
    let device = recording.device(row.device);
    let mut parts = Vec::new();
    if several || !device.kind.is_accelerator() {
        parts.push(device.label.clone());
    }
    // First what the run did, then what that makes of the device.
    parts.extend(kept_words(recording, row));
    parts.extend(row.peak.map(peak_words));
    let summary = analysis.summary(row.device);
    let held = || row.reserved.1.map(|held| format!("{held} held"));
    let used = summary.and_then(|summary| use_of_limit(summary, " in use"));
    parts.extend(used.or_else(held));
    parts.extend(
        summary
            .and_then(DeviceSummary::free)
            .map(|free| format!("{free} free")),
    );
    parts.extend(run.ended.map(|ended| ended.since(run.started).to_string()));
    parts.extend(status_word(run.status).map(str::to_owned));
    parts
}

/// `+100 MiB kept`, and what other runs had a part in.
fn kept_words(recording: &Recording, row: &RunRow) -> Vec<String> {
    let words = |kept: Option<ByteDelta>| match kept {
        None => "kept: not known".to_owned(),
        Some(ByteDelta::ZERO) => "kept nothing".to_owned(),
        Some(kept) if kept < ByteDelta::ZERO => format!("gave back {}", kept.magnitude()),
        Some(kept) => format!("{kept} kept"),
    };
    let Some(overlap) = row.overlap else {
        return vec![words(row.kept)];
    };
    let others = others(recording, recording.run(row.run));
    let (alone, moved) = match row.kept_alone() {
        Some(alone) => (Some(alone), overlap.moved),
        None => (None, row.kept),
    };
    let alone = alone.filter(|alone| *alone != ByteDelta::ZERO);
    let together = together(moved, &others, Units::Binary);
    let alone = alone.map(|alone| words(Some(alone)));
    alone.into_iter().chain([together]).collect()
}

fn peak_words(peak: Peak) -> String {
    match peak {
        Peak::Exact(peak) => format!("peak {peak}"),
        Peak::Between { low, high } => match (low.to_string(), high.to_string()) {
            (low, high) if low == high => format!("peak {low}"),
            (low, high) => format!("peak {low} to {high}"),
        },
        Peak::AtLeast(low) => format!("peak at least {low}"),
    }
}
