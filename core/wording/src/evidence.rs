//! Explanations of the figures behind a verdict.

use super::Teller;
use gpumem_analyzer::{Evidence, FindingDetails, FindingKind, Statistic};

/// What one figure of a finding means, in plain words.
pub(super) fn evidence(teller: &Teller<'_>, figure: &Evidence) -> String {
    match figure.statistic {
        Statistic::Held => held(teller),
        Statistic::Retained => retained(teller),
        Statistic::Kept if teller.finding.kind == FindingKind::Retention => {
            "kept there, and none of your names reaches it".to_owned()
        }
        Statistic::LargestFree if teller.finding.kind == FindingKind::OutOfMemory => {
            "the largest piece of the cache".to_owned()
        }
        statistic => statistic.meaning().to_owned(),
    }
}

fn held(teller: &Teller<'_>) -> String {
    let first = teller.finding.holders.first();
    let name = first.map_or("the name", |holder| &holder.name);
    format!("how much more {name} holds after these runs")
}

fn retained(teller: &Teller<'_>) -> String {
    let FindingDetails::Growth(details) = &teller.finding.details else {
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
