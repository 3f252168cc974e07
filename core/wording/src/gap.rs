//! What a process holds outside the allocator, and that grows.

use super::{Teller, Words};
use gpumem_analyzer::SeriesGrowth;
use gpumem_model::units::ByteDelta;
use gpumem_model::units::count;

pub(super) fn words(teller: &Teller<'_>, series: &SeriesGrowth) -> Words {
    let size = |change: ByteDelta| teller.units.size(change.magnitude());
    let title = format!(
        "Memory outside the framework grows {} a run{}",
        size(series.bytes_per_run),
        teller.on_device()
    );
    Words::new(title, format!("**{}** so far", size(series.total)))
        .detail(format!(
            "over {}; this process holds it, its caching allocator does not",
            count(teller.finding.n_runs, "run")
        ))
        .advice(
            "check what allocates outside the framework: another library, a custom kernel, CUDA graphs, communicators, workspaces",
        )
}
