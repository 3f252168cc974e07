//! What a finding could have been, and is not.

use super::{Prose, Teller, code, prose};
use gpumem_analyzer::{
    FindingDetails, FindingKind, Metric, OomBreakdown, OomCause, OomPart, Statistic,
};
use gpumem_model::units::Bytes;

/// What was ruled out, each with the reason: `("a warm-up", "the last quarter …")`.
pub(super) fn ruled_out(teller: &Teller<'_>) -> Vec<(&'static str, Prose)> {
    match &teller.finding.details {
        FindingDetails::Growth(_) if teller.finding.kind == FindingKind::Leak => growth(teller),
        FindingDetails::OutOfMemory(breakdown) => oom(teller, breakdown),
        _ => Vec::new(),
    }
}

fn growth(teller: &Teller<'_>) -> Vec<(&'static str, Prose)> {
    let finding = teller.finding;
    let figure = |statistic: Statistic| {
        let mut evidence = finding.evidence.iter();
        evidence
            .find(|it| it.statistic == statistic && it.holds)
            .map(|it| it.value)
    };
    let mut found = Vec::new();
    if let Some(share) = figure(Statistic::LastQuarterShare) {
        found.push((
            "a warm-up or a plateau",
            format!("the last quarter has {:.0} % of the growth", 100.0 * share).into(),
        ));
    }
    if finding.metric == Metric::Allocated {
        let alive = figure(Statistic::LiveAllocations).map_or_else(String::new, |n| {
            format!(", and more allocations stayed alive in {n:.0} runs")
        });
        found.push((
            "the cache growing",
            format!("what tensors hold grew{alive}").into(),
        ));
    }
    if let Some(kept) = figure(Statistic::Kept) {
        let kept = teller.units.size(Bytes::new(kept as u64));
        found.push(("given back later", format!("{kept} never came back").into()));
    }
    let total = finding.growth().map_or(0.0, |growth| growth.total.as_f64());
    let most = finding.holders.first();
    let grown = most.and_then(|holder| Some((holder, holder.grown?)));
    if let Some((holder, _)) = grown.filter(|(_, grown)| grown.as_f64() >= 0.95 * total) {
        found.push((
            "another cell, or IPython",
            prose![code(&holder.name), " holds all of it"],
        ));
    }
    found
}

fn oom(teller: &Teller<'_>, breakdown: &OomBreakdown) -> Vec<(&'static str, Prose)> {
    let size = |bytes: Bytes| teller.units.size(bytes);
    let has = |is_it: fn(&OomCause) -> bool| breakdown.causes.iter().any(is_it);
    let mut found = Vec::new();
    let cache = breakdown.part(OomPart::Cache);
    let is_in_pieces = has(|cause| matches!(cause, OomCause::Fragmented { .. }));
    if let (Some(cache), Some(free), Some(wanted), false) =
        (cache, breakdown.free, breakdown.wanted, is_in_pieces)
    {
        let short = wanted.saturating_sub(cache).saturating_sub(free);
        if short > Bytes::ZERO {
            let words = format!(
                "{} in pieces; together with what is free still {} short",
                size(cache),
                size(short)
            );
            found.push(("fragmentation", words.into()));
        }
    }
    let are_others = has(|cause| matches!(cause, OomCause::OtherProcesses { .. }));
    // What the driver says of this process is known only where it answered.
    if breakdown.part(OomPart::Context).is_some() && !are_others {
        let words = match breakdown.part(OomPart::Others) {
            Some(used) => format!("they hold {}, too little to matter", size(used)),
            None => format!("none on {}", teller.device()),
        };
        found.push(("other processes", words.into()));
    }
    found
}
