//! Leaks of torcheval.

use super::{CatalogueEntry, KnownCure, LeakPattern, Versions};

pub(super) const LIST_STATES: CatalogueEntry = CatalogueEntry {
    id: "torcheval-list-states",
    library: "torcheval",
    versions: Versions::ALL,
    pattern: LeakPattern::Within {
        classes: &["torcheval.metrics.metric.Metric"],
        paths: &[".*[*]"],
    },
    title: "torcheval keeps every batch until the metric is reset",
    cause: "a metric that needs all values appends those of each `update()`",
    cure: KnownCure::Call("{object}.reset()"),
    link: "https://github.com/meta-pytorch/torcheval/pull/38",
};
