//! Leaks of anywidget.

use super::{CatalogueEntry, KnownCure, LeakPattern, Versions};

pub(super) const FILE_CONTENTS: CatalogueEntry = CatalogueEntry {
    id: "anywidget-file-contents",
    library: "anywidget",
    versions: Versions::ALL,
    pattern: LeakPattern::Within {
        classes: &[
            "anywidget._file_contents.FileContents",
            "anywidget._file_contents.VirtualFileContents",
        ],
        paths: &[".changed.*"],
    },
    title: "anywidget keeps every widget whose script is a file",
    cause: "each widget connects a function of its own to the file's `changed` signal, also when it is closed",
    cure: KnownCure::Change("give `_esm` the text, `path.read_text()`, and not the path"),
    link: "https://github.com/manzt/anywidget/issues/929",
};
