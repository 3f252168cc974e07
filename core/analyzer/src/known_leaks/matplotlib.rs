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

pub(super) const ARTISTS: CatalogueEntry = CatalogueEntry {
    id: "matplotlib-axes-keep-artists",
    library: "matplotlib",
    versions: Versions::ALL,
    pattern: LeakPattern::Within {
        classes: &["matplotlib.axes._base._AxesBase"],
        paths: &["._children[*]"],
    },
    title: "axes keep all that was drawn into them",
    cause: "`plot()`, `imshow()` and others add a line or an image, with its data, to what is there",
    cure: KnownCure::Call("{object}.clear()"),
    link: "https://github.com/matplotlib/matplotlib/issues/29685",
};

pub(super) const ANIMATIONS: CatalogueEntry = CatalogueEntry {
    id: "matplotlib-animation-frames",
    library: "matplotlib",
    versions: Versions::ALL,
    pattern: LeakPattern::Each {
        classes: &["matplotlib.animation.FuncAnimation"],
        paths: &["._save_seq[*]"],
    },
    title: "an animation keeps the data of its frames",
    cause: "`FuncAnimation` caches what its `frames` give, to save them again",
    cure: KnownCure::Change("write `FuncAnimation(…, cache_frame_data=False)`"),
    link: "https://github.com/matplotlib/matplotlib/issues/8528",
};
