//! A device that grows while no cell alone explains it.

use super::{Presentation, Teller, code, figure, prose};
use gpumem_analyzer::SeriesGrowth;
use gpumem_model::units::count;

pub(super) fn present(teller: &Teller<'_>, series: &SeriesGrowth) -> Presentation {
    let Teller { finding, units, .. } = teller;
    let title = format!(
        "{} grows {} a run",
        teller.device(),
        units.size(series.bytes_per_run.magnitude())
    );
    let total = units.size(series.total.magnitude());
    Presentation::with_row(
        title,
        ", ",
        prose![figure(total), " so far; no cell alone explains it"],
    )
    .fact(format!(
        "over {}, spread over cells that ran a few times each",
        count(finding.n_runs, "run")
    ))
    .advice(prose![
        code("%gpumem why"),
        " shows which names hold memory: ",
        code("del"),
        " those that you no longer need"
    ])
}
