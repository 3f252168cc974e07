//! Leaks of optuna.

use super::{CatalogueEntry, KnownCure, LeakPattern, Versions};

pub(super) const USER_ATTRIBUTES: CatalogueEntry = CatalogueEntry {
    id: "optuna-user-attributes",
    library: "optuna",
    versions: Versions::ALL,
    pattern: LeakPattern::Within {
        classes: &["optuna.study.study.Study"],
        paths: &["**._user_attrs[*]", "**.user_attrs[*]"],
    },
    title: "Optuna keeps what its trials store as attributes",
    cause: "a study in memory keeps the user attributes of all trials",
    cure: KnownCure::Change(
        "save the model to a file, and store its path with `trial.set_user_attr()`",
    ),
    link: "https://github.com/optuna/optuna/issues/5183",
};
