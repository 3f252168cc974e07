//! Who holds what, as a list.

use gpumem_analyzer::Finding;
use gpumem_charts::Tile;
use gpumem_model::holders::RootKind;
use gpumem_model::recording::DeviceIdx;
use gpumem_model::units::Units;
use web_sys::Element;

use crate::dom::{Maker, add};

/// Each name with its bytes, what it holds below it, the path to copy, and the way to the map.
pub(crate) fn holders(make: &Maker, finding: &Finding, units: Units) -> Element {
    let fields: Vec<Tile> = finding.holders.iter().map(Tile::from).collect();
    let list = tree(make, &fields, Some(finding.device), units);
    let label = make.text("div.label", &[], "Held by");
    make.group("div.box", &[], &[&label, &list])
}

/// The fields as a list of lists; with the way to the map of a device.
pub(crate) fn tree(
    make: &Maker,
    fields: &[Tile],
    device: Option<DeviceIdx>,
    units: Units,
) -> Element {
    let list = make.empty("ul.tree", &[]);
    for field in fields {
        let item = branch(make, field, units);
        let ways = make.empty("div.ways", &[]);
        if field.path != field.name {
            let path = make.text("code", &[("dir", "auto")], &field.path);
            add(&ways, &path);
        }
        if !field.path.is_empty() {
            add(&ways, &make.link("copy", &field.path, "copy path"));
        }
        if let Some(device) = device {
            let place = format!("{}:{}", device.0, field.name);
            add(&ways, &make.link("hold", &place, "show in map"));
        }
        add(&item, &ways);
        add(&list, &item);
    }
    list
}

/// A line that opens where it holds something in turn.
fn branch(make: &Maker, field: &Tile, units: Units) -> Element {
    let line = line(make, field, units);
    if field.fields.is_empty() {
        return make.group("li", &[], &[&line]);
    }
    let list = make.empty("ul", &[]);
    for inner in &field.fields {
        add(&list, &branch(make, inner, units));
    }
    let summary = make.group("summary", &[], &[&line]);
    let details = make.group("details", &[], &[&summary, &list]);
    make.group("li", &[], &[&details])
}

/// A name and what it is, and at the end of the line its bytes.
fn line(make: &Maker, field: &Tile, units: Units) -> Element {
    let own = make.text("code", &[("dir", "auto")], &field.name);
    let kind = field.kind.and_then(RootKind::description);
    let words = [Some(&*field.what), kind].into_iter().flatten();
    let words: Vec<&str> = words.filter(|words| !words.is_empty()).collect();
    let words = format!(" {} ", words.join(" · "));
    let words = make.text("span", &[("dir", "auto")], &words);
    let figure = make.text("span.size", &[], &field.figure(units));
    let name = make.group("span", &[], &[&own, &words]);
    make.group("span.holder", &[], &[&name, &figure])
}
