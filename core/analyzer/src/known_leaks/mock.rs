//! Leaks of unittest.mock.

use super::{CatalogueEntry, KnownCure, LeakPattern, Versions};

pub(super) const CALLS: CatalogueEntry = CatalogueEntry {
    id: "mock-keeps-calls",
    library: "unittest.mock",
    versions: Versions::ALL,
    pattern: LeakPattern::Within {
        classes: &["unittest.mock.NonCallableMock"],
        paths: &[
            "._mock_mock_calls[*]",
            "._mock_call_args_list[*]",
            "._mock_method_calls[*]",
        ],
    },
    title: "a mock keeps the arguments of every call",
    cause: "`mock_calls` and `call_args_list` refer to all arguments until the mock is reset",
    cure: KnownCure::Call("{object}.reset_mock()"),
    link: "https://github.com/python/cpython/issues/106823",
};
