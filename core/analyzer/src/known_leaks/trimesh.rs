//! Leaks of trimesh.

use super::{CatalogueEntry, KnownCure, LeakPattern, Versions};

pub(super) const CACHE: CatalogueEntry = CatalogueEntry {
    id: "trimesh-cache",
    library: "trimesh",
    versions: Versions::ALL,
    pattern: LeakPattern::Each {
        classes: &["trimesh.base.Trimesh"],
        paths: &["._cache.cache[*]"],
    },
    title: "trimesh keeps all that was computed of a mesh",
    cause: "normals, triangles and adjacency stay in the cache of the mesh",
    cure: KnownCure::Change(
        "keep what you computed and not the mesh, or call `mesh._cache.clear()`",
    ),
    link: "https://github.com/mikedh/trimesh/issues/815",
};
