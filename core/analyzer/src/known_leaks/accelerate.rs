//! Leaks of accelerate.

use super::{CatalogueEntry, KnownCure, LeakPattern, Versions};

pub(super) const PREPARED_MODELS: CatalogueEntry = CatalogueEntry {
    id: "accelerate-prepared-models",
    library: "accelerate",
    versions: Versions::ALL,
    pattern: LeakPattern::Within {
        classes: &["accelerate.accelerator.Accelerator"],
        paths: &[
            "._models[*]",
            "._optimizers[*]",
            "._schedulers[*]",
            "._dataloaders[*]",
        ],
    },
    title: "accelerate keeps prepared models",
    cause: "`prepare()` registers each model and optimizer with the accelerator until `free_memory()` is called",
    cure: KnownCure::Call("{object}.free_memory()"),
    link: "https://github.com/huggingface/accelerate/issues/84",
};
