//! Leaks of torchmetrics.

use super::{CatalogueEntry, KnownCure, LeakPattern, Versions};

pub(super) const LIST_STATES: CatalogueEntry = CatalogueEntry {
    id: "torchmetrics-list-states",
    library: "torchmetrics",
    versions: Versions::ALL,
    pattern: LeakPattern::Within {
        classes: &["torchmetrics.metric.Metric"],
        paths: &[".*[*]"],
    },
    title: "torchmetrics keeps every batch until the metric is reset",
    cause: "a metric with list states appends the predictions and targets of each `update()`",
    cure: KnownCure::Call("{object}.reset()"),
    link: "https://github.com/Lightning-AI/torchmetrics/issues/3294",
};
