//! The analysis as JSON: one function, the same natively and in the browser.
//!
//! ```json
//! {"session": "…", "rules": {"min_runs": 9, …}, "devices": [{"label": "sim:0", …}], "runs": [{"run": 0, "device": "sim:0", …}],
//!  "findings": [{"kind": "leak", "state": "leak", …}], "traces": [], "warnings": []}
//! ```
//! Fields named `*_bytes` are bytes, `*_nanos` nanoseconds since the recording's start; unknown is
//! `null`. A number that is not finite is a string, because JSON has none: `"inf"`, `"-inf"`, `"nan"`.
//!
//! ```
//! use gpumem_core::analyze::{Rules, analyze};
//! use gpumem_core::json::report_json;
//! # mod example { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/recordings/leaking.rs")); }
//! # use example::leaking;
//!
//! let recording = leaking();
//! let rules = Rules::default();
//! let text = report_json(&recording, &analyze(&recording, &rules), &rules);
//! let report: serde_json::Value = serde_json::from_str(&text)?;
//! assert_eq!(report["findings"][0]["kind"], "leak");
//! assert_eq!(report["runs"][0]["kept_bytes"], 2 << 20);
//! # Ok::<(), serde_json::Error>(())
//! ```

mod details;
mod device_profile;
mod holders;
mod level_log;
mod memory_timeline;
mod nsight;
mod processes;
mod ranks;
mod segments;
mod sessions;
mod torch_snapshot;
mod torch_trace;
mod trace;

pub use device_profile::device_profile_json;
pub use level_log::level_log_json;
pub use memory_timeline::memory_timeline_json;
pub use nsight::nsight_json;
pub use ranks::ranks_json;
pub use sessions::sessions_json;
pub use torch_snapshot::{torch_change_json, torch_snapshot_json};
pub use torch_trace::{torch_trace_json, torch_traces_json};

use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

use details::JsonDetails;
use holders::{JsonFix, JsonHolder, JsonHolders};
use processes::{JsonProcess, JsonProcessFinding};
use segments::JsonMapped;
use trace::JsonTrace;

use crate::analyze::{
    Analysis, CellRef, Compared, DeviceSummary, Evidence, Finding, Gap, Growth, GrowthSide, Peak,
    RunRow, State, Withdrawn, cell_label,
};
use crate::processes::Processes;
use crate::recording::{DeviceIdx, DeviceKind, Framework, OutOfMemory, Recording};
use crate::rules::{Rules, Threshold};
use crate::units::{ByteDelta, Bytes, Units};
use crate::wording::{self, Words};

/// The report as JSON.
pub fn report_json(recording: &Recording, analysis: &Analysis, rules: &Rules) -> String {
    report_json_with(recording, analysis, &Processes::default(), rules)
}

/// The report as JSON, with the session's child processes.
pub fn report_json_with(
    recording: &Recording,
    analysis: &Analysis,
    children: &Processes,
    rules: &Rules,
) -> String {
    let report = JsonReport {
        session: &recording.header().session,
        wall_anchor_nanos: recording.header().wall_anchor.get().to_string(),
        rules: JsonRules(rules),
        devices: analysis
            .devices
            .iter()
            .map(|summary| JsonDevice::of(recording, summary))
            .collect(),
        runs: analysis
            .rows
            .iter()
            .map(|row| JsonRun::of(recording, row))
            .collect(),
        findings: analysis
            .findings
            .iter()
            .map(|finding| JsonFinding::of(recording, finding))
            .collect(),
        traces: recording
            .traces()
            .map(|trace| JsonTrace::of(recording, trace))
            .collect(),
        holders: JsonHolders::of(recording),
        maps: JsonMapped::all(recording),
        warnings: analysis
            .warnings
            .iter()
            .map(|warning| wording::warning(recording, warning))
            .collect(),
        processes: children.rows.iter().map(JsonProcess::of).collect(),
        process_findings: JsonProcessFinding::all(recording, children),
    };
    serde_json::to_string(&report).expect("a report holds strings, numbers and lists only")
}

/// A comparison with a baseline as a JSON list, worst first.
pub fn comparison_json(compared: &[Compared]) -> String {
    let entries: Vec<JsonCompared<'_>> = compared.iter().map(JsonCompared::from).collect();
    serde_json::to_string(&entries).expect("a comparison holds strings and numbers only")
}

/// The verdict on one series as JSON: the fields of a finding that belong to it.
pub fn growth_json(growth: &Growth) -> String {
    let growth = JsonGrowth::of(growth);
    serde_json::to_string(&growth).expect("a verdict holds strings and numbers only")
}

#[derive(Serialize)]
struct JsonGrowth {
    state: &'static str,
    shape: &'static str,
    bytes_per_run: i64,
    interval: [i64; 2],
    total_bytes: i64,
    n_missing: usize,
    p: Number,
    evidence: Vec<JsonEvidence>,
}

impl JsonGrowth {
    fn of(growth: &Growth) -> Self {
        Self {
            state: growth.state.name(),
            shape: growth.shape.name(),
            bytes_per_run: growth.bytes_per_run.get(),
            interval: [growth.interval.0.get(), growth.interval.1.get()],
            total_bytes: growth.total.get(),
            n_missing: growth.n_missing,
            p: Number(growth.p),
            evidence: growth
                .evidence
                .iter()
                .map(|figure| JsonEvidence::of(figure, wording::figure(figure.name).to_owned()))
                .collect(),
        }
    }
}

#[derive(Serialize)]
struct JsonCompared<'a> {
    change: &'static str,
    cell: JsonCell,
    path: &'a [String],
    device: &'a str,
    steps: bool,
    before: Option<JsonSide>,
    after: JsonSide,
    difference_bytes: i64,
    uncertainty_bytes: u64,
}

#[derive(Serialize)]
struct JsonSide {
    state: &'static str,
    n_runs: usize,
    bytes_per_run: i64,
    interval: [i64; 2],
    peak_bytes: Option<u64>,
}

impl<'a> From<&'a Compared> for JsonCompared<'a> {
    fn from(entry: &'a Compared) -> Self {
        Self {
            change: entry.change.name(),
            cell: JsonCell::from(&entry.cell),
            path: &entry.path,
            device: &entry.device,
            steps: entry.steps,
            before: entry.before.as_ref().map(JsonSide::from),
            after: JsonSide::from(&entry.after),
            difference_bytes: entry.difference.get(),
            uncertainty_bytes: entry.uncertainty.get(),
        }
    }
}

impl From<&GrowthSide> for JsonSide {
    fn from(side: &GrowthSide) -> Self {
        Self {
            state: side.state.name(),
            n_runs: side.n_runs,
            bytes_per_run: side.bytes_per_run.get(),
            interval: [side.interval.0.get(), side.interval.1.get()],
            peak_bytes: side.peak.map(Bytes::get),
        }
    }
}

#[derive(Serialize)]
struct JsonReport<'a> {
    session: &'a str,
    /// As text: it does not fit a JavaScript number.
    wall_anchor_nanos: String,
    rules: JsonRules<'a>,
    devices: Vec<JsonDevice<'a>>,
    runs: Vec<JsonRun<'a>>,
    findings: Vec<JsonFinding<'a>>,
    traces: Vec<JsonTrace<'a>>,
    holders: Vec<JsonHolders<'a>>,
    maps: Vec<JsonMapped<'a>>,
    warnings: Vec<String>,
    processes: Vec<JsonProcess<'a>>,
    process_findings: Vec<JsonProcessFinding<'a>>,
}

#[derive(Serialize)]
struct JsonDevice<'a> {
    label: &'a str,
    key: &'a str,
    name: &'a str,
    kind: &'static str,
    metric: &'static str,
    allocated_bytes: Option<u64>,
    reserved_bytes: Option<u64>,
    inactive_split_bytes: Option<u64>,
    largest_free_bytes: Option<u64>,
    process_used_bytes: Option<u64>,
    device_used_bytes: Option<u64>,
    capacity_bytes: Option<u64>,
    limited_by: Option<&'static str>,
    free_bytes: Option<u64>,
    peak_bytes: Option<u64>,
    cache_ratio: Option<Number>,
    gaps: Vec<JsonGap>,
}

/// The wider of two levels minus the narrower, and what fills it.
#[derive(Serialize)]
struct JsonGap {
    from: &'static str,
    to: &'static str,
    words: &'static str,
    bytes: i64,
}

impl JsonGap {
    fn of(gap: &Gap) -> Self {
        Self {
            from: gap.from,
            to: gap.to,
            words: wording::gap(gap),
            bytes: gap.size.get(),
        }
    }
}

#[derive(Serialize)]
struct JsonCell {
    id: String,
    label: String,
    execution_count: Option<u32>,
}

#[derive(Serialize)]
struct JsonRun<'a> {
    run: u32,
    device: &'a str,
    cell: JsonCell,
    parent: Option<u32>,
    label: Option<&'a str>,
    execution_count: Option<u32>,
    status: &'static str,
    started_nanos: u64,
    ended_nanos: Option<u64>,
    duration_nanos: Option<u64>,
    metric: &'static str,
    before_bytes: Option<u64>,
    after_bytes: Option<u64>,
    kept_bytes: Option<i64>,
    overlaps: Vec<u32>,
    overlap_bytes: Option<i64>,
    peak_bytes: Option<u64>,
    peak_high_bytes: Option<u64>,
    peak_exact: bool,
    allocated_before_bytes: Option<u64>,
    allocated_after_bytes: Option<u64>,
    reserved_before_bytes: Option<u64>,
    reserved_after_bytes: Option<u64>,
    process_used_before_bytes: Option<u64>,
    process_used_after_bytes: Option<u64>,
    device_used_before_bytes: Option<u64>,
    device_used_after_bytes: Option<u64>,
    capacity_bytes: Option<u64>,
    gaps: Vec<JsonGap>,
    n_retries: Option<u64>,
    n_blocks_before: Option<u64>,
    n_blocks_after: Option<u64>,
    oom: Option<JsonOutOfMemory<'a>>,
}

/// The run's out-of-memory error, on this device or on one that it did not name.
#[derive(Serialize)]
struct JsonOutOfMemory<'a> {
    at_nanos: u64,
    framework: Option<&'static str>,
    survived: bool,
    wanted_bytes: Option<u64>,
    free_bytes: Option<u64>,
    total_bytes: Option<u64>,
    limit_bytes: Option<u64>,
    allocated_bytes: Option<u64>,
    reserved_bytes: Option<u64>,
    unallocated_bytes: Option<u64>,
    private_pools_bytes: Option<u64>,
    largest_free_bytes: Option<u64>,
    this_process_bytes: Option<u64>,
    others: Vec<JsonOther>,
    holders: Vec<JsonOomHolder<'a>>,
    message: Option<&'a str>,
}

#[derive(Serialize)]
struct JsonOther {
    pid: u64,
    used_bytes: Option<u64>,
}

#[derive(Serialize)]
struct JsonFinding<'a> {
    id: &'a str,
    kind: &'static str,
    severity: &'static str,
    state: Option<&'static str>,
    withdrawn: Option<&'static str>,
    cell: Option<JsonCell>,
    path: &'a [String],
    device: Option<&'a str>,
    metric: &'static str,
    runs: Vec<u32>,
    n_runs: usize,
    bytes_per_run: Option<i64>,
    title: String,
    detail: String,
    details: JsonDetails<'a>,
    holders: Vec<JsonHolder<'a>>,
    fix: Option<JsonFix<'a>>,
    suggestions: Vec<String>,
    evidence: Vec<JsonEvidence>,
}

#[derive(Serialize)]
struct JsonEvidence {
    name: &'static str,
    words: String,
    value: Number,
    threshold: Option<Number>,
    holds: bool,
}

/// Each threshold by its name; bytes and runs are whole numbers.
struct JsonRules<'a>(&'a Rules);

impl Serialize for JsonRules<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(Threshold::ALL.len()))?;
        for threshold in Threshold::ALL {
            let value = self.0.get(threshold);
            if threshold.is_whole() {
                map.serialize_entry(threshold.name(), &(value as u64))?;
            } else {
                map.serialize_entry(threshold.name(), &value)?;
            }
        }
        map.end()
    }
}

/// A float that may not be finite.
struct Number(f64);

impl Serialize for Number {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            n if n.is_finite() => serializer.serialize_f64(n),
            n if n.is_nan() => serializer.serialize_str("nan"),
            n if n > 0.0 => serializer.serialize_str("inf"),
            _ => serializer.serialize_str("-inf"),
        }
    }
}

impl<'a> JsonDevice<'a> {
    fn of(recording: &'a Recording, summary: &DeviceSummary) -> Self {
        let device = recording.device(summary.device);
        Self {
            label: &device.label,
            key: device.key.as_str(),
            name: &device.name,
            kind: match device.kind {
                DeviceKind::Gpu => "gpu",
                DeviceKind::Simulated => "simulated",
                DeviceKind::Managed => "managed",
                DeviceKind::Pinned => "pinned",
                DeviceKind::Host => "host",
            },
            metric: summary.metric.name(),
            allocated_bytes: summary.allocated.map(Bytes::get),
            reserved_bytes: summary.reserved.map(Bytes::get),
            inactive_split_bytes: summary.inactive_split.map(Bytes::get),
            largest_free_bytes: summary.largest_free.map(Bytes::get),
            process_used_bytes: summary.process_used.map(Bytes::get),
            device_used_bytes: summary.device_used.map(Bytes::get),
            capacity_bytes: summary.capacity.map(Bytes::get),
            limited_by: summary.limits.first().map(|limit| limit.by.name()),
            free_bytes: summary.free().map(Bytes::get),
            peak_bytes: summary.peak.map(Bytes::get),
            cache_ratio: summary.cache_ratio().map(Number),
            gaps: summary.gaps().iter().map(JsonGap::of).collect(),
        }
    }
}

impl<'a> JsonRun<'a> {
    fn of(recording: &'a Recording, row: &RunRow) -> Self {
        let run = recording.run(row.run);
        let (low, high) = match row.peak {
            Some(Peak::Between { low, high }) => (Some(low), Some(high)),
            Some(Peak::Exact(peak)) => (Some(peak), Some(peak)),
            Some(Peak::AtLeast(low)) => (Some(low), None),
            None => (None, None),
        };
        let bytes = |level: Option<Bytes>| level.map(Bytes::get);
        Self {
            run: row.run.0,
            device: label(recording, row.device),
            cell: JsonCell {
                id: recording.cell(run.cell).id.clone(),
                label: cell_label(recording, run),
                execution_count: run.execution_count,
            },
            parent: run.parent.map(|parent| parent.0),
            label: run.label.as_deref(),
            execution_count: run.execution_count,
            status: run.status.name(),
            started_nanos: run.started.get(),
            ended_nanos: run.ended.map(crate::units::Nanos::get),
            duration_nanos: run.ended.map(|ended| ended.since(run.started).get()),
            metric: row.metric.name(),
            before_bytes: bytes(row.before),
            after_bytes: bytes(row.after),
            kept_bytes: row.kept.map(ByteDelta::get),
            overlaps: recording.overlapping(run).map(|it| it.idx.0).collect(),
            overlap_bytes: row.overlap.and_then(|it| it.moved).map(ByteDelta::get),
            peak_bytes: bytes(low),
            peak_high_bytes: bytes(high),
            peak_exact: row.peak.is_some_and(Peak::is_exact),
            allocated_before_bytes: bytes(row.allocated.0),
            allocated_after_bytes: bytes(row.allocated.1),
            reserved_before_bytes: bytes(row.reserved.0),
            reserved_after_bytes: bytes(row.reserved.1),
            process_used_before_bytes: bytes(row.process_used.0),
            process_used_after_bytes: bytes(row.process_used.1),
            device_used_before_bytes: bytes(row.device_used.0),
            device_used_after_bytes: bytes(row.device_used.1),
            capacity_bytes: bytes(row.capacity),
            gaps: row.gaps().iter().map(JsonGap::of).collect(),
            n_retries: row.n_retries,
            n_blocks_before: row.n_blocks.0,
            n_blocks_after: row.n_blocks.1,
            oom: run
                .oom
                .as_deref()
                .filter(|oom| oom.device.is_none_or(|device| device == row.device))
                .map(JsonOutOfMemory::from),
        }
    }
}

#[derive(Serialize)]
struct JsonOomHolder<'a> {
    name: &'a str,
    kind: &'static str,
    used_bytes: u64,
}

impl<'a> From<&'a OutOfMemory> for JsonOutOfMemory<'a> {
    fn from(oom: &'a OutOfMemory) -> Self {
        let bytes = |bytes: Option<Bytes>| bytes.map(Bytes::get);
        let figures = &oom.figures;
        let others = figures.others.iter().map(|other| JsonOther {
            pid: other.pid,
            used_bytes: bytes(other.used),
        });
        let holders = oom.holders.iter().map(|holder| JsonOomHolder {
            name: &holder.name,
            kind: holder.kind.name(),
            used_bytes: holder.used.get(),
        });
        Self {
            at_nanos: oom.at.get(),
            framework: oom.framework.map(Framework::name),
            survived: oom.survived,
            wanted_bytes: bytes(figures.wanted),
            free_bytes: bytes(figures.free),
            total_bytes: bytes(figures.total),
            limit_bytes: bytes(figures.limit),
            allocated_bytes: bytes(figures.allocated),
            reserved_bytes: bytes(figures.reserved),
            unallocated_bytes: bytes(figures.unallocated),
            private_pools_bytes: bytes(figures.private_pools),
            largest_free_bytes: bytes(figures.largest_free),
            this_process_bytes: bytes(figures.this_process),
            others: others.collect(),
            holders: holders.collect(),
            message: oom.message.as_deref(),
        }
    }
}

impl<'a> JsonFinding<'a> {
    fn of(recording: &'a Recording, finding: &'a Finding) -> Self {
        let units = Units::Binary;
        let Words {
            title,
            outlook,
            detail,
            suggestions,
            ..
        } = wording::words(recording, finding, units);
        let detail = match (outlook.as_str(), detail.as_str()) {
            ("", detail) | (detail, "") => wording::unmarked(detail),
            (outlook, detail) => format!("{} · {detail}", wording::unmarked(outlook)),
        };
        let evidence = finding.evidence.iter().map(|figure| {
            let words = wording::evidence(recording, finding, figure, units);
            JsonEvidence::of(figure, words)
        });
        Self {
            id: &finding.id,
            kind: finding.kind.name(),
            severity: finding.severity.name(),
            state: finding.state.map(State::name),
            withdrawn: finding.withdrawn.map(Withdrawn::name),
            cell: finding.cell.as_ref().map(JsonCell::from),
            path: &finding.path,
            device: finding.known_device().map(|it| label(recording, it)),
            metric: finding.metric.name(),
            runs: finding.runs.iter().map(|run| run.0).collect(),
            n_runs: finding.n_runs,
            bytes_per_run: finding.growth().map(|growth| growth.bytes_per_run.get()),
            title: wording::plain(&title),
            detail,
            details: JsonDetails::of(recording, &finding.details),
            holders: finding.holders.iter().map(JsonHolder::from).collect(),
            fix: finding.fix.as_ref().map(JsonFix::from),
            suggestions,
            evidence: evidence.collect(),
        }
    }
}

impl From<&CellRef> for JsonCell {
    fn from(cell: &CellRef) -> Self {
        Self {
            id: cell.id.clone(),
            label: cell.label.clone(),
            execution_count: cell.execution_count,
        }
    }
}

impl JsonEvidence {
    fn of(figure: &Evidence, words: String) -> Self {
        Self {
            name: figure.name,
            words,
            value: Number(figure.value),
            threshold: figure.threshold.map(Number),
            holds: figure.holds,
        }
    }
}

fn label(recording: &Recording, device: DeviceIdx) -> &str {
    &recording.device(device).label
}

#[cfg(test)]
mod tests {
    use insta::assert_snapshot;
    use serde_json::Value;

    use super::*;
    use crate::analyze::analyze;
    use crate::testing::{run, session};

    fn reported() -> Value {
        let (recording, _) = session(&[("losses.append(1)", &vec![run(420); 9])]);
        let rules = Rules {
            min_runs: 5,
            ..Rules::default()
        };
        let analysis = analyze(&recording, &rules);
        let json = report_json(&recording, &analysis, &rules);
        serde_json::from_str(&json).expect("valid JSON")
    }

    #[track_caller]
    fn pretty(value: &Value) -> String {
        serde_json::to_string_pretty(value).expect("a value is JSON")
    }

    #[test]
    fn a_finding_has_its_evidence() {
        assert_snapshot!(pretty(&reported()["findings"][0]));
    }

    #[test]
    fn a_row_has_its_units_in_its_names() {
        assert_snapshot!(pretty(&reported()["runs"][0]));
    }

    #[test]
    fn the_rules_that_judged_it_are_there() {
        assert_snapshot!(pretty(&reported()["rules"]));
    }

    #[test]
    fn numbers_that_are_not_finite_are_words() {
        let shown = [f64::INFINITY, f64::NEG_INFINITY, f64::NAN, 0.5].map(Number);
        let json = serde_json::to_string(&shown).expect("numbers");
        assert_eq!(json, r#"["inf","-inf","nan",0.5]"#);
    }
}
