//! Leaks of gymnasium.

use super::{CatalogueEntry, KnownCure, LeakPattern, Versions};

pub(super) const FRAMES: CatalogueEntry = CatalogueEntry {
    id: "gymnasium-render-frames",
    library: "gymnasium",
    versions: Versions::ALL,
    pattern: LeakPattern::Within {
        classes: &["gymnasium.wrappers.rendering.RenderCollection"],
        paths: &[".frame_list[*]"],
    },
    title: "gymnasium keeps each frame until it is taken",
    cause: "an environment that renders lists adds a frame in each step, until `render()` or `reset()`",
    cure: KnownCure::Call("{object}.render()"),
    link: "https://github.com/openai/gym/pull/3016",
};
