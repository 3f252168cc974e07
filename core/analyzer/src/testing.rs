//! Sessions and findings for tests, in one line each.
//!
//! ```text
//! session(&[("x = f()", &[run(0), run(420).peak(900)]), ("y = g()", &[run(0)])])
//! ```

use gpumem_model::holders::DeviceHolders;
use gpumem_model::recording::{DeviceIdx, Recording, Run, RunIdx, Status};
use gpumem_model::source_text;
use gpumem_model::testing::{CAPACITY, CONTEXT, MIB, OTHERS, mib, recorded};
pub use gpumem_model::testing::{Play, held, look, run};
use gpumem_model::units::ByteDelta;

use crate::{
    Analysis, CellRef, DeviceSummary, Finding, FindingDetails, FindingKind, GrowthDetails,
    GrowthShape, GrowthVerdict, Metric, Peak, Reason, Rules, RunRow, SeriesGrowth, Severity,
    analyze,
};

/// The [recording](recorded) of these runs, and its levels without a finding.
pub fn session(cells: &[(&str, &[Play])]) -> (Recording, Analysis) {
    let recording = recorded(cells);
    let mut analysis = Analysis {
        devices: vec![DeviceSummary {
            device: DeviceIdx(0),
            metric: Metric::Allocated,
            allocated: None,
            requested: None,
            reserved: None,
            inactive_split: None,
            largest_free: None,
            process_used: None,
            children_used: None,
            device_used: None,
            limits: Vec::new(),
            capacity: Some(CAPACITY),
            peak: None,
        }],
        ..Analysis::default()
    };
    let mut level = 0;
    let plays = cells.iter().flat_map(|(_, plays)| *plays);
    for (run, play) in recording.runs().iter().zip(plays) {
        let before = level;
        level += play.kept_mib;
        analysis.rows.push(row(run.idx, play, before, level));
    }
    (recording, analysis)
}

/// The findings of a kind after looks at the end of some of the runs.
pub fn found(
    cells: &[(&str, &[Play])],
    looks: impl IntoIterator<Item = (u32, DeviceHolders)>,
    kind: FindingKind,
) -> Vec<Finding> {
    let mut recording = recorded(cells);
    for (run, mut holders) in looks {
        "sim:0".clone_into(&mut holders.device);
        look(&mut recording, RunIdx(run), None, holders);
    }
    let findings = analyze(&recording, &Rules::default()).findings;
    findings.into_iter().filter(|it| it.kind == kind).collect()
}

/// What a finding says, in figures:
/// `leak: a() · 420 MiB a run in 12 of 12, 5040 in all · full in 24 · losses`.
pub fn facts(finding: &Finding) -> String {
    let cell = finding.cell.as_ref().map_or("device", |cell| &cell.label);
    let withdrawn = finding.withdrawn.map(|reason| reason.name().to_owned());
    let mut facts = vec![format!("{}: {cell}", finding.kind.name())];
    facts.extend(withdrawn);
    let mib = |delta: ByteDelta| delta.get() / MIB;
    let unit = if finding.counts_steps() {
        "step"
    } else {
        "run"
    };
    match &finding.details {
        FindingDetails::Growth(details) => {
            let (rate, total) = (mib(details.series.bytes_per_run), mib(details.series.total));
            let (n_grown, n_known) = (details.n_grown, details.n_known);
            facts.push(format!(
                "{rate} MiB a {unit} in {n_grown} of {n_known}, {total} in all"
            ));
            let settled = details.n_moving.map(|n| format!("settled after {n}"));
            let full = details.runs_to_oom.map(|n| format!("full in {n}"));
            let missing = Some(details.n_missing).filter(|n| *n > 0);
            facts.extend(settled.into_iter().chain(full));
            facts.extend(missing.map(|n| format!("{n} missing")));
        }
        details => {
            let growth = details.growth();
            facts.extend(growth.map(|it| {
                let (rate, total) = (mib(it.bytes_per_run), mib(it.total));
                format!("{rate} MiB a {unit}, {total} in all")
            }));
        }
    }
    let fix = finding.fix.as_ref().map(|fix| fix.after.clone());
    let fix = fix.filter(|_| finding.growth().is_none());
    facts.extend(finding.holders.iter().map(|holder| holder.name.clone()));
    facts.extend(fix);
    facts.join(" · ")
}

/// The finding counts steps.
pub fn of_steps(mut finding: Finding) -> Finding {
    if let FindingDetails::Growth(details) = &mut finding.details {
        details.steps = true;
        finding.path.push("step".to_owned());
    }
    finding
}

/// A series with the same growth in each run.
fn growth(kept_mib: i64) -> GrowthDetails {
    let each = ByteDelta::new(kept_mib * MIB);
    GrowthDetails {
        series: SeriesGrowth {
            shape: GrowthShape::Growth,
            bytes_per_run: each,
            interval: (each, each),
            total: each,
            sparkline: Vec::new(),
        },
        statement: None,
        by: None,
        steps: false,
        in_loop: None,
        of_names: false,
        n_grown: 1,
        n_known: 1,
        n_moving: None,
        n_missing: 0,
        headroom: None,
        runs_to_oom: None,
        time_to_oom: None,
        traced: None,
        advice: Vec::new(),
    }
}

/// A finding that each run of the cell keeps this much.
pub fn leak(recording: &Recording, cell: u32, kept_mib: i64) -> Finding {
    let cell = &recording.cells()[cell as usize];
    let own = |run: &&Run| run.cell == cell.idx;
    let runs: Vec<RunIdx> = recording
        .runs()
        .iter()
        .filter(own)
        .map(|run| run.idx)
        .collect();
    let text = cell.revisions[0].text.as_deref().unwrap_or_default();
    let label = source_text::headline(text).unwrap_or_default();
    Finding {
        id: format!("leak:{label}"),
        severity: Severity::Critical,
        state: Some(GrowthVerdict::Leak),
        reason: Some(Reason::Accident),
        n_runs: runs.len(),
        runs,
        cell: Some(CellRef {
            idx: cell.idx,
            id: cell.id.clone(),
            label,
            execution_count: None,
        }),
        ..Finding::about(
            FindingKind::Leak,
            "",
            DeviceIdx(0),
            Metric::Allocated,
            FindingDetails::Growth(Box::new(growth(kept_mib))),
        )
    }
}

fn row(run: RunIdx, play: &Play, before: i64, after: i64) -> RunRow {
    let begun = |n_mib: i64| play.known.then(|| mib(n_mib));
    let ended = |n_mib: i64| begun(n_mib).filter(|_| play.status != Status::Running);
    RunRow {
        run,
        device: DeviceIdx(0),
        metric: Metric::Allocated,
        before: begun(before),
        after: ended(after),
        so_far: begun(after).filter(|_| play.status == Status::Running),
        kept: ended(after).map(|after| after.since(mib(before))),
        overlap: None,
        peak: begun(before + play.peak_mib).map(Peak::Exact),
        allocated: (begun(before), ended(after)),
        reserved: (None, None),
        process_used: (begun(before + CONTEXT), ended(after + CONTEXT)),
        device_used: (
            begun(before + CONTEXT + OTHERS),
            ended(after + CONTEXT + OTHERS),
        ),
        capacity: Some(CAPACITY),
        n_retries: None,
        n_blocks: (None, None),
    }
}
