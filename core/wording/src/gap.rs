//! What a process holds outside the allocator, and that grows.

use super::{Presentation, Teller, figure, prose};
use gpumem_analyzer::SeriesGrowth;
use gpumem_model::units::{ByteDelta, count};

pub(super) fn present(teller: &Teller<'_>, series: &SeriesGrowth) -> Presentation {
    let size = |change: ByteDelta| teller.units.size(change.magnitude());
    let title = format!(
        "Memory outside the framework grows {} a run{}",
        size(series.bytes_per_run),
        teller.on_device()
    );
    Presentation::new(title, prose![figure(size(series.total)), " so far"])
        .fact(format!(
            "over {}; this process holds it, its caching allocator does not",
            count(teller.finding.n_runs, "run")
        ))
        .advice(
            "check what allocates outside the framework: another library, a custom kernel, CUDA graphs, communicators, workspaces",
        )
}
