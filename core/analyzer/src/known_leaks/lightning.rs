//! Leaks of lightning.

use super::{CatalogueEntry, KnownCure, LeakPattern, Versions};

/// It is installed under two names.
const TRAINERS: &[&str] = &[
    "lightning.pytorch.trainer.trainer.Trainer",
    "pytorch_lightning.trainer.trainer.Trainer",
];

pub(super) const TRAINER_KEEPS_MODEL: CatalogueEntry = CatalogueEntry {
    id: "lightning-trainer-keeps-model",
    library: "lightning",
    versions: Versions::ALL,
    pattern: LeakPattern::Within {
        classes: TRAINERS,
        paths: &[".strategy.*", "**._datahook_selector.model"],
    },
    title: "Lightning's Trainer keeps the model that it ran last",
    cause: "after `fit()` the Trainer still refers to the model and its optimizers",
    cure: KnownCure::Call("del {name}"),
    link: "https://github.com/Lightning-AI/pytorch-lightning/issues/4385",
};

pub(super) const TRAINER_KEEPS_PREDICTIONS: CatalogueEntry = CatalogueEntry {
    id: "lightning-trainer-keeps-predictions",
    library: "lightning",
    versions: Versions::ALL,
    pattern: LeakPattern::Within {
        classes: TRAINERS,
        paths: &[".predict_loop._predictions[*]"],
    },
    title: "Lightning's Trainer keeps the last predictions",
    cause: "`predict()` collects all predictions in the Trainer, which keeps them until its next `predict()`",
    cure: KnownCure::Change(
        "call `predict(…, return_predictions=False)` and write each batch in a `BasePredictionWriter`",
    ),
    link: "https://github.com/Lightning-AI/pytorch-lightning/issues/6508",
};

pub(super) const TRAINER_KEEPS_DATA: CatalogueEntry = CatalogueEntry {
    id: "lightning-trainer-keeps-data",
    library: "lightning",
    versions: Versions::since("2.0"),
    pattern: LeakPattern::Within {
        classes: TRAINERS,
        paths: &["**._data_source.*", "**._combined_loader.*"],
    },
    title: "Lightning's Trainer keeps its data loaders",
    cause: "after `fit()` the loops of the Trainer still refer to the data loaders, and those to their data",
    cure: KnownCure::Call("del {name}"),
    link: "https://github.com/Lightning-AI/pytorch-lightning/issues/18289",
};
