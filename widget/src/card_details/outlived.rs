//! What should be dead: the way from the name that keeps it to what lives on.

use gpumem_analyzer::{Finding, OutlivedDetails};
use gpumem_model::holders::path_steps;
use gpumem_model::recording::{Recording, Run, RunIdx};
use gpumem_model::units::Units;
use gpumem_page_kit::bars::boxed;
use web_sys::{Element, HtmlElement};

use super::numbered;
use crate::dom::{Maker, add, share};

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
    let (codes, kind) = (path_steps(&details.path), details.kind.description());
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
    let held_since = details.held_since_execution_count;
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

/// Over the runs: while the variable held it, and since when the other one has it alone.
pub(super) fn lanes(
    make: &Maker,
    recording: &Recording,
    details: &OutlivedDetails,
    units: Units,
) -> Option<Element> {
    let runs = recording.runs().iter();
    let runs: Vec<&Run> = runs.filter(|run| run.parent.is_none()).collect();
    let place = |run: RunIdx| runs.partition_point(|it| it.idx < run);
    let gone = place(details.since);
    let lane = |label: &str, parts: [(&str, usize); 2], words: &str| {
        let track = make.empty("div.track", &[("role", "img"), ("aria-label", words)]);
        for (class, n_runs) in parts.into_iter().filter(|(_, n_runs)| *n_runs > 0) {
            let fill: HtmlElement = make.typed("i", &[("class", class)]);
            share(&fill, n_runs as f64 / runs.len() as f64);
            add(&track, &fill);
        }
        let label = make.text("code", &[("dir", "ltr")], label);
        let words = make.text("div.legend", &[("dir", "auto")], words);
        make.group("div.measured", &[], &[&label, &track, &words])
    };
    let held_since = details.held_since?;
    let made = place(held_since).min(gone);
    let since = |words: &str, run: RunIdx| numbered(words, recording.run(run));
    let until = since(", gone since ", details.since);
    let words = format!("{}{until}", since("since ", held_since));
    let own = [("none", made), ("tensors", gone - made)];
    let own = lane(&details.name, own, &words);
    let alone = [("none", gone), ("over", runs.len() - gone)];
    let words = since("alone since ", details.since);
    let other = lane(&details.path, alone, &words);
    let title = format!("Who held these {}", units.size(details.had));
    Some(boxed(make, &title, &[own, other]))
}

/// What other variables gave back.
pub(super) fn given_back(make: &Maker, details: &OutlivedDetails, units: Units) -> Option<Element> {
    let list = make.empty("ul.tree", &[]);
    for it in &details.given_back {
        let name = make.text("code", &[("dir", "ltr")], &it.name);
        let number = it.execution_count;
        let number = number.map_or_else(String::new, |n| format!(" in In [{n}]"));
        let words = format!(" gave back {}{number}", units.size(it.n_bytes));
        let words = make.text("span", &[("dir", "auto")], &words);
        add(&list, &make.group("li", &[], &[&name, &words]));
    }
    (!details.given_back.is_empty()).then(|| boxed(make, "What else was let go of", &[list]))
}
