//! Leaks of ipywidgets.

use super::{CatalogueEntry, KnownCure, LeakPattern, Versions};

pub(super) const REGISTRY: CatalogueEntry = CatalogueEntry {
    id: "ipywidgets-registry",
    library: "ipywidgets",
    versions: Versions::ALL,
    pattern: LeakPattern::Global {
        path: "ipywidgets.widgets.widget._instances",
    },
    title: "ipywidgets keeps every widget until it is closed",
    cause: "a global registry has each widget, with what its callbacks refer to",
    cure: KnownCure::Change(
        "call `.close()` on a widget before you replace it; `ipywidgets.Widget.close_all()` closes all",
    ),
    link: "https://github.com/jupyter-widgets/ipywidgets/issues/1345",
};
