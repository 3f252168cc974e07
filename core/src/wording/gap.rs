//! What a process holds outside the allocator, and that grows.

use super::{Teller, Words, count};
use crate::analyze::SeriesGrowth;

pub(super) fn words(teller: &Teller<'_>, series: &SeriesGrowth) -> Words {
    Words {
        title: format!(
            "{}: grows by {} a run outside the allocator",
            teller.device(),
            teller.units.size(series.bytes_per_run.magnitude())
        ),
        detail: format!(
            "over {} · held by this process, not by its caching allocator",
            count(teller.finding.n_runs, "run")
        ),
        suggestions: vec![
            "check what allocates outside the framework: another library, a custom kernel, CUDA graphs, communicators, workspaces"
                .to_owned(),
        ],
    }
}
