//! Bars on one scale: parts side by side, what they are, and how much.

use gpumem_model::units::{Bytes, Units};
use web_sys::{Element, HtmlElement};

use crate::dom::{Maker, add, describe, set_attribute, share};

/// What a part of a bar is; its colour in the page's style.
#[derive(Debug, Clone, Copy)]
pub enum BarInk {
    /// Held by tensors.
    Held,
    /// Wanted, or there twice.
    Over,
    /// Free between blocks in use.
    Hole,
    /// Free in a segment in which nothing is in use.
    Unused,
    /// The largest free block.
    Largest,
}

impl BarInk {
    /// Its class in the style sheet.
    pub const fn class(self) -> &'static str {
        match self {
            Self::Held => "tensors",
            Self::Over => "over",
            Self::Hole => "hole",
            Self::Unused => "unused",
            Self::Largest => "hole largest",
        }
    }
}

/// Part of a bar.
pub struct BarPart<'a> {
    /// What it is.
    pub words: &'a str,
    /// How much.
    pub size: Bytes,
    /// Its colour.
    pub ink: BarInk,
}

/// One bar as long as its parts are on a scale up to `whole`, with what they are below it.
pub fn bar(
    make: &Maker,
    label: &str,
    parts: &[BarPart<'_>],
    (whole, units): (Bytes, Units),
) -> Element {
    let (track, said) = (make.empty("div.track", &[]), bar_text(parts, units));
    for part in parts {
        add(&track, &filled(make, part, whole));
    }
    let legend = legend(make, parts, units);
    set_attribute(&track, "role", "img");
    describe(&track, "aria-label", &format!("{label}: {said}"));
    let label = make.text("span.muted", &[], label);
    make.group("div.measured", &[], &[&label, &track, &legend])
}

/// What the colours stand for, and how much there is of each.
pub fn legend(make: &Maker, parts: &[BarPart<'_>], units: Units) -> Element {
    let legend = make.empty("div.legend", &[]);
    for part in parts {
        let swatch = make.empty("i", &[("class", part.ink.class())]);
        let words = make.text("span", &[("dir", "auto")], part.words);
        let size = make.text("b", &[], &units.size(part.size));
        let entry = make.group("span", &[], &[&swatch, &words, &size]);
        add(&legend, &entry);
    }
    legend
}

fn filled(make: &Maker, part: &BarPart<'_>, whole: Bytes) -> HtmlElement {
    let fill: HtmlElement = make.typed("i", &[("class", part.ink.class())]);
    share(&fill, part.size.as_f64() / whole.as_f64().max(1.0));
    fill
}

fn bar_text(parts: &[BarPart<'_>], units: Units) -> String {
    let words = parts
        .iter()
        .map(|part| format!("{} {}", part.words, units.size(part.size)));
    words.collect::<Vec<_>>().join(", ")
}

/// A box of a card with a label and what stands in it.
pub fn boxed(make: &Maker, label: &str, content: &[Element]) -> Element {
    let label = make.text("div.label", &[], label);
    let body = make.group("div.box", &[], &[&label]);
    for element in content {
        add(&body, element);
    }
    body
}
