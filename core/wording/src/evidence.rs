//! Explanations of the figures behind a verdict.

use super::Teller;
use gpumem_analyzer::{Details, Evidence, Finding, FindingKind};
use gpumem_model::recording::Recording;
use gpumem_model::units::Units;

/// What one figure of a finding means, in plain words.
pub fn evidence(
    recording: &Recording,
    finding: &Finding,
    figure: &Evidence,
    units: Units,
) -> String {
    let teller = Teller {
        recording,
        finding,
        units,
    };
    match figure.name {
        "held_bytes" => held(&teller),
        "retained_bytes" => retained(&teller),
        "kept_bytes" if finding.kind == FindingKind::Retention => {
            "kept there, and none of your names reaches it".to_owned()
        }
        "largest_free_bytes" if finding.kind == FindingKind::OutOfMemory => {
            "the largest piece of the cache".to_owned()
        }
        _ => figure.meaning().to_owned(),
    }
}

fn held(teller: &Teller<'_>) -> String {
    let first = teller.finding.holders.first();
    let name = first.map_or("the name", |holder| &holder.name);
    format!("how much more {name} holds after these runs")
}

fn retained(teller: &Teller<'_>) -> String {
    let Details::Growth(details) = &teller.finding.details else {
        return String::new();
    };
    let Some(traced) = details.traced else {
        return String::new();
    };
    let number = teller.recording.run(traced.run).execution_count;
    let run = number.map_or_else(|| "one run".to_owned(), |n| format!("In [{n}]"));
    let line = traced.line.map_or_else(String::new, |(line, kept)| {
        format!(": line {line} kept {}", teller.units.size(kept))
    });
    format!("allocated in {run}, traced, and alive at its end{line}")
}
