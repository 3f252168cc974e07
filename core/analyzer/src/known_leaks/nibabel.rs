//! Leaks of `nibabel`.

use super::{CatalogueEntry, KnownCure, LeakPattern, Versions};

pub(super) const CACHED_IMAGES: CatalogueEntry = CatalogueEntry {
    id: "nibabel-cached-images",
    library: "nibabel",
    versions: Versions::ALL,
    pattern: LeakPattern::Each {
        classes: &["nibabel.dataobj_images.DataobjImage"],
        paths: &["._fdata_cache"],
    },
    title: "nibabel keeps the data of each image that was read",
    cause: "`get_fdata()` keeps its array in the image",
    cure: KnownCure::Change(
        "call `image.uncache()` when you have what you need, or `image.get_fdata(caching='unchanged')`",
    ),
    link: "https://github.com/nipy/nibabel/issues/467",
};
