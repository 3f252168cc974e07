//! Findings as instants, at the end of the last run that each rests on.

use std::borrow::Cow;

use serde_json::json;

use super::event::{InstantScope, Phase, TraceArgs, ViewerEvent};
use super::{NOTEBOOK, process_of};
use gpumem_analyzer::{Analysis, Finding, GrowthVerdict, Withdrawn};
use gpumem_model::recording::Recording;
use gpumem_model::units::{Nanos, Units};
use gpumem_wording as wording;
use gpumem_wording::{Presentation, Prose};

/// One for each finding, with what the report says about it.
pub(super) fn events<'a>(recording: &'a Recording, analysis: &'a Analysis) -> Vec<ViewerEvent<'a>> {
    let findings = analysis.findings.iter();
    findings
        .map(|finding| instant(recording, finding))
        .collect()
}

fn instant<'a>(recording: &Recording, finding: &Finding) -> ViewerEvent<'a> {
    let shown = wording::present(recording, finding, Units::Binary);
    let device = finding.known_device();
    let process = device.map_or(NOTEBOOK, process_of);
    ViewerEvent {
        ph: Phase::Instant,
        name: Cow::from(shown.title.plain()),
        cat: Some("finding"),
        pid: process,
        tid: process,
        ts: at(recording, finding).into(),
        dur: None,
        s: Some(device.map_or(InstantScope::Global, |_| InstantScope::Process)),
        args: args(finding, &shown),
    }
}

fn args(finding: &Finding, shown: &Presentation) -> TraceArgs {
    let holders = finding.holders.iter().map(|holder| &holder.name);
    TraceArgs::Other(json!({
        "kind": finding.kind.name(),
        "severity": finding.severity.name(),
        "state": finding.state.map(GrowthVerdict::name),
        "withdrawn": finding.withdrawn.map(Withdrawn::name),
        "detail": shown.detail().plain(),
        "held_by": holders.collect::<Vec<_>>(),
        "suggestions": shown.suggestions().iter().map(Prose::ticked).collect::<Vec<_>>(),
    }))
}

/// When memory ran out, or the end of the last run that it rests on.
fn at(recording: &Recording, finding: &Finding) -> Nanos {
    let Some(last) = finding.runs.iter().max() else {
        return recording.last_instant();
    };
    let run = recording.run(*last);
    let ran_out = run.oom.as_ref().filter(|_| finding.ran_out());
    ran_out
        .map(|oom| oom.at)
        .or(run.ended)
        .unwrap_or_else(|| recording.last_instant())
}
