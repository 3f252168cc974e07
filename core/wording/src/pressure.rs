//! A device that is nearly full.

use super::{Teller, Words};
use gpumem_analyzer::Finding;
use gpumem_model::units::Bytes;
use gpumem_model::units::count;

const ADVICE: &str = "use smaller batches, or free memory before the largest step";

pub(super) fn words(teller: &Teller<'_>, n_flushes: u64) -> Words {
    let title = format!("{} is nearly full", teller.device());
    if n_flushes == 0 {
        return Words::with_row(title, ": ", usable(teller)).advice(ADVICE);
    }
    let requests = match n_flushes {
        1 => "1 request".to_owned(),
        n => format!("{n} requests"),
    };
    let outlook = format!("{requests} succeeded only after the cache was emptied");
    Words::with_row(title, ": ", outlook)
        .detail(format!(
            "in {}, last in {}; each time costs time, and the next request may fail",
            count(teller.finding.n_runs, "run"),
            teller.cell()
        ))
        .advice(ADVICE)
}

/// `8 devices are nearly full: 3.5 GiB of each can still be used, or less`.
pub(super) fn of_several(teller: &Teller<'_>, findings: &[&Finding]) -> Words {
    let labels = findings
        .iter()
        .map(|finding| &*teller.recording.device(finding.device).label);
    let title = format!("{} are nearly full", count(findings.len(), "device"));
    let outlook = format!("on {}, {}", teller.device(), usable(teller));
    Words::with_row(title, ": ", outlook)
        .detail(labels.collect::<Vec<_>>().join(", "))
        .advice(ADVICE)
}

/// `**3.5 GiB** can still be used`.
fn usable(teller: &Teller<'_>) -> String {
    let mut evidence = teller.finding.evidence.iter();
    let usable = evidence.find(|it| it.name == "usable_bytes");
    let usable = Bytes::new(usable.map_or(0.0, |it| it.value) as u64);
    format!("**{}** can still be used", teller.units.size(usable))
}
