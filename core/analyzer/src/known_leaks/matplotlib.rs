//! Leaks of matplotlib.

use super::{CatalogueEntry, KnownCure, LeakPattern, Versions};

pub(super) const OPEN_FIGURES: CatalogueEntry = CatalogueEntry {
    id: "matplotlib-open-figures",
    library: "matplotlib",
    versions: Versions::ALL,
    pattern: LeakPattern::Global {
        path: "matplotlib._pylab_helpers.Gcf.figs",
    },
    title: "pyplot keeps every figure until it is closed",
    cause: "`plt.figure()` and `plt.subplots()` register each figure with pyplot",
    cure: KnownCure::Found,
    link: "https://github.com/matplotlib/matplotlib/issues/8519",
};
