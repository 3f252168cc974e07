//! Leaks of ignite.

use super::{CatalogueEntry, KnownCure, LeakPattern, Versions};

pub(super) const EPOCH_METRIC: CatalogueEntry = CatalogueEntry {
    id: "ignite-epoch-metric",
    library: "pytorch-ignite",
    versions: Versions::ALL,
    pattern: LeakPattern::Within {
        classes: &["ignite.metrics.epoch_metric.EpochMetric"],
        paths: &["._predictions[*]", "._targets[*]"],
    },
    title: "an EpochMetric keeps every batch until it is reset",
    cause: "without an engine nobody resets it after an epoch",
    cure: KnownCure::Call("{object}.reset()"),
    link: "https://github.com/pytorch/ignite/issues/309",
};
