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
//! use gpumem_analyzer::{Rules, analyze};
//! use gpumem_report::json::report_json;
//! # mod example { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/recordings/leaking.rs")); }
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

mod holders;
mod idle;
mod loops;
mod processes;
mod ranks;
mod segments;
mod trace;

pub use processes::processes_json;
pub use ranks::ranks_json;

use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};

use gpumem_model::object;
use holders::{JsonFix, JsonHolders};
use idle::JsonIdle;
use loops::JsonLoop;
use processes::JsonProcesses;
use segments::JsonMapped;
use trace::JsonTrace;

use crate::figures::{RunOnDevice, run_figures, run_places};
use gpumem_analyzer::known_leaks::KnownLeak;
use gpumem_analyzer::{Analysis, DeviceSummary, Evidence, Finding, Gap, Growth, SessionComparison};
use gpumem_jobs::history::StoredSession;
use gpumem_jobs::processes::ChildProcesses;
use gpumem_model::holders::Holder;
use gpumem_model::json_form::JsonNumber;
use gpumem_model::recording::{Device, DeviceIdx, Recording};
use gpumem_model::rules::{Rules, Threshold};
use gpumem_model::units::Units;
use gpumem_wording as wording;
use gpumem_wording::{Presentation, Prose};

/// The report as JSON.
pub fn report_json(recording: &Recording, analysis: &Analysis, rules: &Rules) -> String {
    report_json_with(recording, analysis, &ChildProcesses::default(), rules)
}

/// The report as JSON, with the session's child processes.
pub fn report_json_with(
    recording: &Recording,
    analysis: &Analysis,
    children: &ChildProcesses,
    rules: &Rules,
) -> String {
    let report = JsonReport {
        session: &recording.header().session,
        wall_anchor_nanos: recording.header().wall_anchor.get().to_string(),
        rules: JsonRules(rules),
        devices: analysis
            .devices
            .iter()
            .map(|summary| JsonDevice(recording.device(summary.device), summary))
            .collect(),
        runs: analysis
            .rows
            .iter()
            .map(|row| JsonRun(RunOnDevice::new(recording, row)))
            .collect(),
        findings: analysis
            .findings
            .iter()
            .map(|finding| JsonFinding::new(recording, finding))
            .collect(),
        loops: JsonLoop::all(recording),
        traces: recording
            .traces()
            .map(|trace| JsonTrace::new(recording, trace))
            .collect(),
        holders: JsonHolders::by_device(recording),
        idle: JsonIdle::all(recording, &analysis.idle),
        maps: JsonMapped::all(recording),
        warnings: analysis
            .warnings
            .iter()
            .map(|warning| wording::warning(recording, warning))
            .collect(),
        processes: JsonProcesses::new(recording, children),
    };
    serde_json::to_string(&report).expect("a report holds strings, numbers and lists only")
}

/// The sessions that are kept as a JSON list, in the order given.
pub fn sessions_json(sessions: &[StoredSession]) -> String {
    serde_json::to_string(sessions).expect("a session holds strings and numbers only")
}

/// A comparison with a baseline as a JSON list, worst first.
pub fn comparison_json(compared: &[SessionComparison]) -> String {
    serde_json::to_string(compared).expect("a comparison holds strings and numbers only")
}

/// The verdict on one series as JSON: the fields of a finding that belong to it.
pub fn growth_json(growth: &Growth) -> String {
    serde_json::to_string(growth).expect("a verdict holds strings and numbers only")
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
    loops: Vec<JsonLoop<'a>>,
    traces: Vec<JsonTrace<'a>>,
    holders: Vec<JsonHolders<'a>>,
    idle: Vec<JsonIdle<'a>>,
    maps: Vec<JsonMapped<'a>>,
    warnings: Vec<String>,
    #[serde(flatten)]
    processes: JsonProcesses<'a>,
}

/// A device, and where its memory is now.
struct JsonDevice<'a>(&'a Device, &'a DeviceSummary);

object! { JsonDevice<'_>, it => {
    label: it.0.label,
    key: it.0.key.as_str(),
    name: it.0.name,
    kind: it.0.kind,
    metric: it.1.metric,
    allocated_bytes: it.1.allocated,
    reserved_bytes: it.1.reserved,
    inactive_split_bytes: it.1.inactive_split,
    largest_free_bytes: it.1.largest_free,
    process_used_bytes: it.1.process_used,
    device_used_bytes: it.1.device_used,
    capacity_bytes: it.1.capacity,
    limited_by: it.1.limits.first().map(|limit| limit.by.name()),
    free_bytes: it.1.free(),
    peak_bytes: it.1.peak,
    cache_ratio: it.1.cache_ratio().map(JsonNumber),
    gaps: it.1.gaps().into_iter().map(JsonGap).collect::<Vec<_>>(),
}}

/// The wider of two levels minus the narrower, and what fills it.
struct JsonGap(Gap);

object! { JsonGap, it => {
    from: it.0.from,
    to: it.0.to,
    words: wording::gap(&it.0),
    bytes: it.0.size,
}}

/// A run on a device: its figures, with what is nested.
struct JsonRun<'a>(RunOnDevice<'a>);

impl Serialize for JsonRun<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self(it) = self;
        let mut map = serializer.serialize_map(None)?;
        for figure in run_places() {
            figure.put(it, &mut map)?;
        }
        map.serialize_entry("cell", &it.cell())?;
        for figure in run_figures() {
            figure.put(it, &mut map)?;
        }
        let overlaps = it.recording.overlapping(it.run);
        let overlaps: Vec<u32> = overlaps.map(|it| it.idx.0).collect();
        map.serialize_entry("overlaps", &overlaps)?;
        let gaps: Vec<_> = it.row.gaps().into_iter().map(JsonGap).collect();
        map.serialize_entry("gaps", &gaps)?;
        // On this device, or on one that the error did not name.
        let oom = it.run.oom.as_deref();
        let oom = oom.filter(|oom| oom.device.is_none_or(|device| device == it.row.device));
        map.serialize_entry("oom", &oom)?;
        map.end()
    }
}

struct JsonFinding<'a> {
    recording: &'a Recording,
    finding: &'a Finding,
    shown: Presentation,
}

object! { JsonFinding<'_>, it => {
    id: it.finding.id,
    fingerprint: it.shown.fingerprint,
    kind: it.finding.kind,
    severity: it.finding.severity,
    state: it.finding.state,
    reason: it.finding.reason,
    withdrawn: it.finding.withdrawn,
    cell: it.finding.cell,
    path: it.finding.path,
    device: it.finding.known_device().map(|device| label(it.recording, device)),
    metric: it.finding.metric,
    runs: it.finding.runs,
    n_runs: it.finding.n_runs,
    bytes_per_run: it.finding.growth().map(|growth| growth.bytes_per_run),
    title: it.shown.title.plain(),
    detail: Prose::joined([&it.shown.outlook, &it.shown.detail()], " · ").ticked(),
    details: it.finding.details,
    holders: it.finding.holders.iter().map(by_variable).collect::<Vec<_>>(),
    fix: it.shown.remedy.as_ref().and_then(JsonFix::new),
    known_leak: it.finding.known_leak.as_ref().map(JsonKnownLeak),
    suggestions: it.shown.suggestions().iter().map(Prose::ticked).collect::<Vec<_>>(),
    evidence: it.evidence(),
}}

struct JsonKnownLeak<'a>(&'a KnownLeak);

object! { JsonKnownLeak<'_>, it => {
    id: it.0.entry.id,
    library: it.0.entry.library,
    version: it.0.version,
    title: it.0.entry.title,
    cause: it.0.entry.cause,
    link: it.0.entry.link,
}}

/// As code asks for it: by the variable. The path leads to the attribute that grew.
fn by_variable(holder: &Holder) -> Holder {
    Holder {
        name: holder.variable().to_owned(),
        ..holder.clone()
    }
}

struct JsonEvidence<'a> {
    figure: &'a Evidence,
    words: &'a str,
}

object! { JsonEvidence<'_>, it => {
    name: it.figure.statistic,
    words: it.words,
    value: JsonNumber(it.figure.value),
    threshold: it.figure.threshold.map(JsonNumber),
    holds: it.figure.holds,
}}

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

impl<'a> JsonFinding<'a> {
    fn new(recording: &'a Recording, finding: &'a Finding) -> Self {
        Self {
            recording,
            finding,
            shown: wording::present(recording, finding, Units::Binary),
        }
    }

    fn evidence(&self) -> Vec<JsonEvidence<'_>> {
        let figures = self.finding.evidence.iter().zip(&self.shown.evidence);
        let evidence = figures.map(|(figure, words)| JsonEvidence { figure, words });
        evidence.collect()
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
    use gpumem_analyzer::analyze;
    use gpumem_analyzer::testing::{run, session};

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
}
