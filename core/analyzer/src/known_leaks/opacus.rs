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

pub(super) const GRAD_SAMPLES: CatalogueEntry = CatalogueEntry {
    id: "opacus-grad-samples",
    library: "opacus",
    versions: Versions::since("1.0"),
    pattern: LeakPattern::Within {
        classes: &["opacus.grad_sample.grad_sample_module.GradSampleModule"],
        paths: &["**.grad_sample[*]"],
    },
    title: "opacus keeps the per-sample gradients of every batch",
    cause: "each backward pass appends a gradient for each sample, until the gradients are set to zero",
    cure: KnownCure::Call("{object}.zero_grad()"),
    link: "https://github.com/meta-pytorch/opacus/issues/413",
};
