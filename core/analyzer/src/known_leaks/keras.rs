//! Leaks of keras.

use super::{CatalogueEntry, KnownCure, LeakPattern, Versions};

pub(super) const HISTORY: CatalogueEntry = CatalogueEntry {
    id: "keras-history-keeps-model",
    library: "keras",
    versions: Versions::since("3.0"),
    pattern: LeakPattern::Each {
        classes: &["keras.src.callbacks.history.History"],
        paths: &["._model"],
    },
    title: "Keras' History keeps its model",
    cause: "`fit()` returns a callback, which refers to the model that it was called for",
    cure: KnownCure::Change("keep the numbers, `model.fit(…).history`"),
    link: "https://github.com/keras-team/keras/issues/646",
};
