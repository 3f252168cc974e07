//! Leaks of xarray.

use super::{CatalogueEntry, KnownCure, LeakPattern, Versions};

pub(super) const CACHED_VARIABLES: CatalogueEntry = CatalogueEntry {
    id: "xarray-cached-variables",
    library: "xarray",
    versions: Versions::ALL,
    pattern: LeakPattern::Each {
        classes: &["xarray.core.indexing.MemoryCachedArray"],
        paths: &[".*"],
    },
    title: "xarray keeps each variable that was read",
    cause: "`open_dataset()` keeps the values of a variable once they were read",
    cure: KnownCure::Change("open the file with `cache=False`"),
    link: "https://github.com/pydata/xarray/issues/2186",
};
