//! Leaks of jax.

use super::{CatalogueEntry, KnownCure, LeakPattern, Versions};

pub(super) const COMPILED: CatalogueEntry = CatalogueEntry {
    id: "jax-compiled-shapes",
    library: "jax",
    versions: Versions::ALL,
    pattern: LeakPattern::Compiled { by: "jax.jit" },
    title: "JAX keeps each function that it compiled",
    cause: "a new shape, type or static argument compiles the function once more, and the program stays",
    cure: KnownCure::Call("import jax; jax.clear_caches()"),
    link: "https://github.com/jax-ml/jax/issues/10828",
};
