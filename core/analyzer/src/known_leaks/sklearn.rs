//! Leaks of scikit-learn.

use super::{CatalogueEntry, KnownCure, LeakPattern, Versions};

pub(super) const NEIGHBORS: CatalogueEntry = CatalogueEntry {
    id: "sklearn-neighbors-keep-data",
    library: "scikit-learn",
    versions: Versions::ALL,
    pattern: LeakPattern::Each {
        classes: &["sklearn.neighbors._base.NeighborsBase"],
        paths: &["._fit_X"],
    },
    title: "models of nearest neighbors keep their training data",
    cause: "a fitted model refers to the data that it searches",
    cure: KnownCure::Change("keep the scores of the models and not the models"),
    link: "https://scikit-learn.org/stable/modules/neighbors.html",
};
