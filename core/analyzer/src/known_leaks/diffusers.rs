//! Leaks of diffusers.

use super::{CatalogueEntry, KnownCure, LeakPattern, Versions};

pub(super) const ADAPTERS: CatalogueEntry = CatalogueEntry {
    id: "diffusers-adapters",
    library: "diffusers",
    versions: Versions::since("0.22"),
    pattern: LeakPattern::Within {
        classes: &[
            "diffusers.models.modeling_utils.ModelMixin",
            "diffusers.pipelines.pipeline_utils.DiffusionPipeline",
        ],
        paths: &["**.lora_A.*", "**.lora_B.*"],
    },
    title: "diffusers keeps every adapter until it is deleted",
    cause: "`add_adapter()` and `load_lora_weights()` put new weights beside those of the adapters before",
    cure: KnownCure::Change(
        "call `delete_adapters(name)` for each adapter that you no longer need",
    ),
    link: "https://github.com/huggingface/diffusers/issues/9325",
};
