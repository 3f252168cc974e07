//! Leaks of opacus.

use super::{CatalogueEntry, KnownCure, LeakPattern, Versions};

pub(super) const ACTIVATIONS: CatalogueEntry = CatalogueEntry {
    id: "opacus-activations",
    library: "opacus",
    versions: Versions::ALL,
    pattern: LeakPattern::Within {
        classes: &["opacus.grad_sample.grad_sample_module.GradSampleModule"],
        paths: &["**.activations[*]"],
    },
    title: "opacus keeps the activations of every forward pass",
    cause: "in training mode a hook stores the input of each layer until a backward pass takes it",
    cure: KnownCure::Call("{object}.eval()"),
    link: "https://github.com/meta-pytorch/opacus/issues/176",
};
