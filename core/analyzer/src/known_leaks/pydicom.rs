//! Leaks of pydicom.

use super::{CatalogueEntry, KnownCure, LeakPattern, Versions};

pub(super) const PIXEL_ARRAYS: CatalogueEntry = CatalogueEntry {
    id: "pydicom-pixel-arrays",
    library: "pydicom",
    versions: Versions::since("3.0"),
    pattern: LeakPattern::Each {
        classes: &["pydicom.dataset.Dataset"],
        paths: &["._pixel_array"],
    },
    title: "pydicom keeps the array of each data set that was read",
    cause: "`pixel_array` keeps its array in the data set",
    cure: KnownCure::Change("read `pydicom.pixels.pixel_array(dataset)`, which keeps nothing"),
    link: "https://github.com/pydicom/pydicom/issues/525",
};
