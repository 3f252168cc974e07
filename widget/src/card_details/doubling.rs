//! A re-run that holds its old and its new result at once: before, in it, and after.

use gpumem_analyzer::DoublingDetails;
use gpumem_model::units::Units;
use web_sys::Element;

use crate::dom::Maker;
use gpumem_page_kit::bars::{BarInk, BarPart, bar, boxed};

/// Three bars on one scale.
pub(super) fn body(make: &Maker, details: DoublingDetails, units: Units) -> Element {
    let DoublingDetails { old, new, rose, .. } = details;
    let part = |words, size, ink| BarPart { words, size, ink };
    let whole = (old + rose, units);
    let before = bar(
        make,
        "before",
        &[part("old copy", old, BarInk::Held)],
        whole,
    );
    let both = [
        part("old copy", old, BarInk::Held),
        part("new copy", rose, BarInk::Over),
    ];
    let during = bar(make, "at its peak", &both, whole);
    let after = bar(make, "after", &[part("new copy", new, BarInk::Held)], whole);
    boxed(make, "Both copies at once", &[before, during, after])
}
