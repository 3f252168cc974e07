//! Leaks of gpytorch.

use super::{CatalogueEntry, KnownCure, LeakPattern, Versions};

pub(super) const CACHES: CatalogueEntry = CatalogueEntry {
    id: "gpytorch-prediction-caches",
    library: "gpytorch",
    versions: Versions::ALL,
    pattern: LeakPattern::Each {
        classes: &["gpytorch.models.exact_gp.ExactGP"],
        paths: &[".prediction_strategy"],
    },
    title: "GPyTorch keeps what a model computed to predict",
    cause: "the first prediction stores the covariance of all training data in the model, until it is trained again",
    cure: KnownCure::Change("call `model.train()` on a model before you keep it"),
    link: "https://github.com/cornellius-gp/gpytorch/issues/550",
};
