//! Leaks of hyperopt.

use super::{CatalogueEntry, KnownCure, LeakPattern, Versions};

pub(super) const TRIALS: CatalogueEntry = CatalogueEntry {
    id: "hyperopt-trials-keep-results",
    library: "hyperopt",
    versions: Versions::ALL,
    pattern: LeakPattern::Within {
        classes: &["hyperopt.base.Trials"],
        paths: &["._dynamic_trials[*]['result'][*]"],
    },
    title: "hyperopt keeps all that the objective returns",
    cause: "the trials have the result of each evaluation, with a model in it too",
    cure: KnownCure::Change("save the model to a file, and return its path"),
    link: "https://github.com/hyperopt/hyperopt/issues/267",
};
