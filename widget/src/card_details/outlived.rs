//! What should be dead: the way from the name that keeps it to what lives on.

use gpumem_analyzer::{Finding, OutlivedDetails};
use gpumem_model::units::Units;
use gpumem_page_kit::bars::boxed;
use gpumem_wording::path_steps;
use web_sys::Element;

use crate::dom::{Maker, add};

/// The name that is gone, and each step of the path that keeps what it held; `None` if no name does.
pub(super) fn path(
    make: &Maker,
    finding: &Finding,
    details: &OutlivedDetails,
    units: Units,
) -> Option<Element> {
    if !details.kind.is_named() {
        return None;
    }
    let step = |tag: &str, code: &str, words: &str| {
        let code = make.text(tag, &[("dir", "ltr")], code);
        let words = make.text("span.muted", &[("dir", "auto")], words);
        make.group("li", &[], &[&code, &words])
    };
    let steps = make.empty("ol.path", &[]);
    let gone = if details.is_rebound {
        "has a new object"
    } else {
        "gone"
    };
    let since = details.since_execution_count;
    let since = since.map_or_else(String::new, |n| format!(" since In [{n}]"));
    add(
        &steps,
        &step("del", &details.name, &format!("{gone}{since}")),
    );
    let (codes, kind) = (path_steps(&details.path), details.kind.words());
    let last = codes.len() - 1;
    for (idx, code) in codes.into_iter().enumerate() {
        let words = match idx {
            _ if idx == last => &details.what,
            0 => kind.unwrap_or("your name"),
            _ => "",
        };
        add(&steps, &step("code", code, words));
    }
    let size = units.size(details.alive);
    let held_since = details.held_since;
    let words = held_since.map_or_else(|| "live on".to_owned(), |n| format!("held since In [{n}]"));
    add(&steps, &step("b", &size, &words));
    let place = format!("{}:{}", finding.device.0, details.holder);
    let ways = [
        make.link("copy", &details.path, "copy path"),
        make.link("hold", &place, "show in map"),
    ];
    let ways = make.group("div.ways", &[], &[&ways[0], &ways[1]]);
    Some(boxed(make, "Path", &[steps, ways]))
}
