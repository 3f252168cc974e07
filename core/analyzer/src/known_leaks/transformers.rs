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
    versions: Versions::since("4.33"),
    pattern: LeakPattern::Within {
        classes: &["transformers.modeling_utils.PreTrainedModel"],
        paths: &["**.lora_A.*", "**.lora_B.*"],
    },
    title: "transformers keeps every adapter until it is deleted",
    cause: "`add_adapter()` and `load_adapter()` put new weights beside those of the adapters before",
    cure: KnownCure::Change("call `delete_adapter(name)` for each adapter that you no longer need"),
    link: "https://github.com/huggingface/transformers/pull/34650",
};

pub(super) const HIDDEN_STATES: CatalogueEntry = CatalogueEntry {
    id: "transformers-outputs-keep-hidden-states",
    library: "transformers",
    versions: Versions::ALL,
    pattern: LeakPattern::Each {
        classes: &["transformers.utils.generic.ModelOutput"],
        paths: &["['hidden_states'][*]", "['attentions'][*]"],
    },
    title: "outputs of transformers keep the states of all layers",
    cause: "with `output_hidden_states` or `output_attentions` each output has a tensor of every layer",
    cure: KnownCure::Change("keep the layer that you need, as `output.hidden_states[-1]`"),
    link: "https://github.com/huggingface/transformers/pull/43213",
};

pub(super) const SCORES: CatalogueEntry = CatalogueEntry {
    id: "transformers-generate-keeps-scores",
    library: "transformers",
    versions: Versions::ALL,
    pattern: LeakPattern::Each {
        classes: &["transformers.utils.generic.ModelOutput"],
        paths: &["['scores'][*]", "['logits'][*]"],
    },
    title: "generated outputs keep scores of the whole vocabulary",
    cause: "with `output_scores` or `output_logits` each new token has a score for every token that there is",
    cure: KnownCure::Change("keep `output.sequences`, and of the scores what you need"),
    link: "https://huggingface.co/docs/transformers/internal/generation_utils",
};
