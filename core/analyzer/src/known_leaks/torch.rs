//! Leaks of torch.

use super::{CatalogueEntry, KnownCure, LeakPattern, Versions};

pub(super) const LBFGS: CatalogueEntry = CatalogueEntry {
    id: "torch-lbfgs-history",
    library: "torch",
    versions: Versions::ALL,
    pattern: LeakPattern::Within {
        classes: &["torch.optim.lbfgs.LBFGS"],
        paths: &[".state[*]"],
    },
    title: "LBFGS keeps its last 100 steps",
    cause: "each of them takes twice the memory of the parameters",
    cure: KnownCure::Change("remember fewer, `torch.optim.LBFGS(…, history_size=10)`"),
    link: "https://docs.pytorch.org/docs/stable/generated/torch.optim.LBFGS.html",
};

pub(super) const CUFFT_PLANS: CatalogueEntry = CatalogueEntry {
    id: "torch-cufft-plans",
    library: "torch",
    versions: Versions::ALL,
    pattern: LeakPattern::Outside {
        calls: "torch.fft.",
    },
    title: "torch keeps a plan for each shape of an FFT",
    cause: "cuFFT makes a plan for each new shape, and a cache keeps up to 4096 of them",
    cure: KnownCure::Call("import torch; torch.backends.cuda.cufft_plan_cache.clear()"),
    link: "https://docs.pytorch.org/docs/stable/notes/cuda.html#cufft-plan-cache",
};
