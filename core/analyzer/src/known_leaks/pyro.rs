//! Leaks of Pyro.

use super::{CatalogueEntry, KnownCure, LeakPattern, Versions};

pub(super) const PARAM_STORE: CatalogueEntry = CatalogueEntry {
    id: "pyro-param-store",
    library: "pyro-ppl",
    versions: Versions::ALL,
    pattern: LeakPattern::Within {
        classes: &["pyro.params.param_store.ParamStoreDict"],
        paths: &["._params[*]"],
    },
    title: "Pyro keeps every parameter by its name",
    cause: "the global parameter store keeps a parameter until it is cleared, whatever model it is of",
    cure: KnownCure::Call("pyro.clear_param_store()"),
    link: "https://github.com/pyro-ppl/pyro/issues/3094",
};
