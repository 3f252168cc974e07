//! Leaks of peft.

use super::{CatalogueEntry, KnownCure, LeakPattern, Versions};

pub(super) const ADAPTERS: CatalogueEntry = CatalogueEntry {
    id: "peft-adapters",
    library: "peft",
    versions: Versions::ALL,
    pattern: LeakPattern::Within {
        classes: &["peft.peft_model.PeftModel"],
        paths: &["**.lora_A.*", "**.lora_B.*"],
    },
    title: "peft keeps every adapter until it is deleted",
    cause: "`add_adapter()` and `load_adapter()` put new weights beside those of the adapters before",
    cure: KnownCure::Change("call `delete_adapter(name)` for each adapter that you no longer need"),
    link: "https://github.com/huggingface/peft/issues/738",
};
