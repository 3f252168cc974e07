//! Leaks of transformers.

use super::{CatalogueEntry, KnownCure, LeakPattern, Versions};

pub(super) const TRAINER_KEEPS_MODEL: CatalogueEntry = CatalogueEntry {
    id: "transformers-trainer-keeps-model",
    library: "transformers",
    versions: Versions::ALL,
    pattern: LeakPattern::Within {
        classes: &["transformers.trainer.Trainer"],
        paths: &[
            ".model",
            ".model_wrapped",
            ".optimizer",
            ".callback_handler.*",
            ".accelerator.*",
        ],
    },
    title: "transformers' Trainer keeps its model",
    cause: "the Trainer refers to the model, its optimizer and its accelerator as long as the Trainer lives",
    cure: KnownCure::Call("del {name}"),
    link: "https://github.com/huggingface/transformers/issues/26571",
};

pub(super) const OUTPUTS_KEEP_CACHE: CatalogueEntry = CatalogueEntry {
    id: "transformers-outputs-keep-cache",
    library: "transformers",
    versions: Versions::since("4.36"),
    pattern: LeakPattern::Each {
        classes: &["transformers.cache_utils.Cache"],
        paths: &[".layers[*]"],
    },
    title: "outputs of transformers keep the KV cache",
    cause: "a model with `use_cache` returns the keys and values of all layers in each output",
    cure: KnownCure::Change(
        "keep what you need of an output, as `output.logits`, or call the model with `use_cache=False`",
    ),
    link: "https://github.com/huggingface/transformers/issues/15426",
};

pub(super) const ADAPTERS: CatalogueEntry = CatalogueEntry {
    id: "transformers-adapters",
    library: "transformers",
    versions: Versions::since("4.34"),
    pattern: LeakPattern::Within {
        classes: &["transformers.modeling_utils.PreTrainedModel"],
        paths: &["**.lora_A.*", "**.lora_B.*"],
    },
    title: "transformers keeps every adapter until it is deleted",
    cause: "`add_adapter()` and `load_adapter()` put new weights beside those of the adapters before",
    cure: KnownCure::Change("call `delete_adapter(name)` for each adapter that you no longer need"),
    link: "https://github.com/huggingface/transformers/pull/34650",
};
