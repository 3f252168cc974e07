//! What readers of several pages act on.

use gpumem_page_kit::dom::{Maker, set_bool};
use web_sys::{Element, HtmlCanvasElement};

/// The canvas of a chart that the keyboard reaches.
pub(crate) fn chart(make: &Maker, name: &str) -> HtmlCanvasElement {
    make.typed(
        "canvas",
        &[("role", "img"), ("tabindex", "0"), ("data-chart", name)],
    )
}

/// A field that finds what `words` say.
pub(crate) fn search(make: &Maker, words: &str) -> Element {
    let attributes = [
        ("type", "search"),
        ("data-input", "search"),
        ("placeholder", words),
        ("aria-label", words),
    ];
    make.empty("input.search", &attributes)
}

/// Buttons of which one is pressed: the argument of each, and what it says.
pub(crate) fn choices(
    make: &Maker,
    action: &str,
    chosen: &str,
    all: &[(impl AsRef<str>, impl AsRef<str>)],
) -> Vec<Element> {
    let buttons = all.iter().map(|(argument, label)| {
        let argument = argument.as_ref();
        let button = make.button(action, argument, label.as_ref());
        set_bool(&button, "aria-pressed", argument == chosen);
        button
    });
    buttons.collect()
}

/// The buttons that choose a device; none if there is no choice.
pub(crate) fn devices(
    make: &Maker,
    labels: impl ExactSizeIterator<Item = String>,
    shown: usize,
) -> Vec<Element> {
    if labels.len() < 2 {
        return Vec::new();
    }
    let labels = labels
        .enumerate()
        .map(|(idx, label)| (idx.to_string(), label));
    let labels: Vec<(String, String)> = labels.collect();
    choices(make, "device", &shown.to_string(), &labels)
}
