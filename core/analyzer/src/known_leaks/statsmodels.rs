//! Leaks of statsmodels.

use super::{CatalogueEntry, KnownCure, LeakPattern, Versions};

pub(super) const RESULTS_KEEP_DATA: CatalogueEntry = CatalogueEntry {
    id: "statsmodels-results-keep-data",
    library: "statsmodels",
    versions: Versions::ALL,
    pattern: LeakPattern::Each {
        classes: &["statsmodels.base.model.Results"],
        paths: &["**.*"],
    },
    title: "results of statsmodels keep their data",
    cause: "each result refers to its model, and that to the data it was fitted to",
    cure: KnownCure::Change("call `.remove_data()` on a result before you keep it"),
    link: "https://github.com/statsmodels/statsmodels/issues/176",
};
