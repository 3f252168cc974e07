//! A run whose peak stands far above that of the others.

use super::{Presentation, Teller, prose};
use gpumem_model::units::{Bytes, count};

pub(super) fn present(teller: &Teller<'_>, excess: Bytes, usual: Bytes) -> Presentation {
    let units = teller.units;
    let number = teller.run().and_then(|run| run.execution_count);
    let number = number.map_or_else(|| "one run".to_owned(), |n| format!("In [{n}]"));
    let title = prose![
        teller.cell(),
        format!(" needed {} for a moment in {number}", units.size(excess)),
        teller.on_device()
    ];
    Presentation::with_row(title, ", ", format!("{} otherwise", units.size(usual)))
        .fact(format!(
            "above its start and its end, of {}",
            count(teller.finding.n_runs, "run")
        ))
        .advice("check what was larger in that run: a batch, a sequence, a validation pass")
}
