//! A device that grows while no cell alone explains it.

use super::{Teller, Words};
use gpumem_analyzer::SeriesGrowth;
use gpumem_model::units::count;

pub(super) fn words(teller: &Teller<'_>, series: &SeriesGrowth) -> Words {
    let Teller { finding, units, .. } = teller;
    let title = format!(
        "{} grows {} a run",
        teller.device(),
        units.size(series.bytes_per_run.magnitude())
    );
    let total = units.size(series.total.magnitude());
    Words::with_row(
        title,
        ", ",
        format!("**{total}** so far; no cell alone explains it"),
    )
    .detail(format!(
        "over {}, spread over cells that ran only once or a few times",
        count(finding.n_runs, "run")
    ))
    .advice("`%gpumem why` shows which names hold memory: `del` those that you no longer need")
}
