//! Where memory lies: segments and their blocks, to scale.
//!
//! Each block is an element that the keyboard reaches; the page's script goes from one to the next
//! and reads it.

use gpumem_charts::{Bar, BlockStyle, DrawnBlock, SegmentMap};
use gpumem_model::segments::Segments;
use gpumem_model::units::{Bytes, Units};
use web_sys::{Element, HtmlElement};

use crate::bars::{BarInk, BarPart, legend};
use crate::dom::{Maker, add, share};

const HINT: &str = "Point at a block to read it, or go through them with the arrow keys.";

/// The map of segments.
pub fn map(make: &Maker, found: &Segments, units: Units) -> Vec<Element> {
    let map = SegmentMap::new(found, units);
    let listed = make.empty(
        "div.shelves",
        &[("role", "listbox"), ("aria-label", &map.words)],
    );
    let all = map.shelves.iter().flatten().flat_map(|bar| &bar.blocks);
    let mut first = all.clone().position(|block| block.is_largest).unwrap_or(0);
    for shelf in &map.shelves {
        let element = make.empty("div.shelf", &[]);
        for bar in shelf {
            add(&element, &segment(make, bar, first));
            first = first.wrapping_sub(bar.blocks.len());
        }
        add(&listed, &element);
    }
    vec![
        listed,
        make.text("p.reading", &[("data-hint", HINT)], HINT),
        legend(make, &parts(found), units),
    ]
}

/// A segment with its blocks; the one at `first` is where the keyboard comes in.
fn segment(make: &Maker, bar: &Bar, first: usize) -> HtmlElement {
    let segment: HtmlElement = make.typed(
        "div.segment",
        &[("role", "group"), ("aria-label", &bar.words)],
    );
    share(&segment, bar.share);
    for (idx, drawn) in bar.blocks.iter().enumerate() {
        add(&segment, &block(make, drawn, idx == first));
    }
    segment
}

fn block(make: &Maker, drawn: &DrawnBlock, is_first: bool) -> HtmlElement {
    let look = match drawn.look {
        BlockStyle::Held => "tensors",
        BlockStyle::Awaiting => "awaiting",
        BlockStyle::Mixed => "mixed",
        BlockStyle::Hole => "hole",
        BlockStyle::Unused => "unused",
    };
    let tag = if drawn.is_largest {
        format!("i.{look}.largest")
    } else {
        format!("i.{look}")
    };
    let block: HtmlElement = make.typed(
        &tag,
        &[
            ("role", "option"),
            ("aria-selected", "false"),
            ("aria-label", &drawn.words),
            ("tabindex", if is_first { "0" } else { "-1" }),
        ],
    );
    share(&block, drawn.share);
    block
}

fn parts(found: &Segments) -> Vec<BarPart<'static>> {
    let part = |words, size, ink| BarPart { words, size, ink };
    let mut parts = vec![
        part("in use", found.in_use(), BarInk::Held),
        part("free between them", found.split(), BarInk::Hole),
        part(
            "in segments that are all free",
            found.unused(),
            BarInk::Unused,
        ),
        part(
            "the largest free piece",
            found.largest_free,
            BarInk::Largest,
        ),
    ];
    parts.retain(|part| part.size > Bytes::ZERO);
    parts
}
