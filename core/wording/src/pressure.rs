//! A device that is nearly full.

use super::{Presentation, Prose, Teller, figure, prose};
use gpumem_analyzer::Finding;
use gpumem_model::units::{Bytes, count, count_of};

const ADVICE: &str = "use smaller batches, or free memory before the largest step";

pub(super) fn present(teller: &Teller<'_>, n_flushes: u64, usable: Option<Bytes>) -> Presentation {
    let title = format!("{} is nearly full", teller.device());
    if let Some(usable) = usable {
        return Presentation::with_row(title, ": ", can_be_used(teller, usable)).advice(ADVICE);
    }
    let requests = count_of(n_flushes, "request");
    let outlook = format!("{requests} succeeded only after the cache was emptied");
    Presentation::with_row(title, ": ", outlook)
        .fact(prose![
            format!("in {}, last in ", count(teller.finding.n_runs, "run")),
            teller.cell(),
            "; each time costs time, and the next request may fail"
        ])
        .advice(ADVICE)
}

/// `8 devices are nearly full: 3.5 GiB of each can still be used, or less`.
pub(super) fn of_several(
    teller: &Teller<'_>,
    usable: Bytes,
    findings: &[&Finding],
) -> Presentation {
    let labels = findings
        .iter()
        .map(|finding| &*teller.recording.device(finding.device).label);
    let title = format!("{} are nearly full", count(findings.len(), "device"));
    let outlook = prose!["on ", teller.device(), ", ", can_be_used(teller, usable)];
    Presentation::with_row(title, ": ", outlook)
        .fact(labels.collect::<Vec<_>>().join(", "))
        .advice(ADVICE)
}

fn can_be_used(teller: &Teller<'_>, usable: Bytes) -> Prose {
    prose![figure(teller.units.size(usable)), " can still be used"]
}
