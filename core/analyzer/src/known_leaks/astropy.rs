//! Leaks of astropy.

use super::{CatalogueEntry, KnownCure, LeakPattern, Versions};

pub(super) const READ_IMAGES: CatalogueEntry = CatalogueEntry {
    id: "astropy-read-images",
    library: "astropy",
    versions: Versions::ALL,
    pattern: LeakPattern::Each {
        classes: &["astropy.io.fits.hdu.image._ImageBaseHDU"],
        paths: &[".data"],
    },
    title: "astropy keeps the data of each image that was read",
    cause: "`hdu.data` stays in the HDU, also when the file is closed",
    cure: KnownCure::Change("run `del hdu.data` when you have what you need"),
    link: "https://github.com/astropy/astropy/issues/9096",
};
