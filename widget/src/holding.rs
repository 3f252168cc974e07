//! Who holds what, as a list, and on a card the line to change.

use gpumem_core::analyze::Finding;
use gpumem_core::chart::Field;
use gpumem_core::holders::{Fix, RootKind};
use gpumem_core::recording::DeviceIdx;
use web_sys::Element;

use crate::dom::{Dom, Maker};

/// Each name with its bytes, what it holds below it, the path to copy, and the way to the map.
pub(crate) fn holders(make: &Maker, finding: &Finding) -> Dom<Element> {
    let fields: Vec<Field> = finding.holders.iter().map(Field::from).collect();
    let list = tree(make, &fields, Some(finding.device))?;
    let label = make.text("div", &[("class", "label")], "Held by")?;
    make.group("div", &[("class", "box")], &[&label, &list])
}

/// The fields as a list of lists; with the way to the map of a device.
pub(crate) fn tree(make: &Maker, fields: &[Field], device: Option<DeviceIdx>) -> Dom<Element> {
    let list = make.empty("ul", &[("class", "tree")])?;
    for field in fields {
        let item = branch(make, field)?;
        if !field.path.is_empty() {
            item.append_child(&link(make, "copy", &field.path, "copy path")?.into())?;
        }
        if let Some(device) = device {
            let place = format!("{}:{}", device.0, field.name);
            item.append_child(&link(make, "hold", &place, "show in map")?.into())?;
        }
        list.append_child(&item)?;
    }
    Ok(list)
}

/// A line that opens where it holds something in turn.
fn branch(make: &Maker, field: &Field) -> Dom<Element> {
    let line = line(make, field)?;
    if field.fields.is_empty() {
        return make.group("li", &[], &[&line]);
    }
    let list = make.empty("ul", &[])?;
    for inner in &field.fields {
        list.append_child(&branch(make, inner)?.into())?;
    }
    let summary = make.group("summary", &[], &[&line])?;
    let details = make.group("details", &[], &[&summary, &list])?;
    make.group("li", &[], &[&details])
}

fn line(make: &Maker, field: &Field) -> Dom<Element> {
    let figure = match field.change {
        Some(change) => change.to_string(),
        None => field.n_bytes.to_string(),
    };
    let kind = field.kind.and_then(RootKind::words);
    let words = [Some(&*figure), Some(&*field.what), kind];
    let words: Vec<&str> = words.into_iter().flatten().collect();
    let own = make.text("code", &[("dir", "auto")], &field.name)?;
    let words = format!(" {}", words.join(" · "));
    let words = make.text("span", &[("dir", "auto")], &words)?;
    let line = make.group("span", &[], &[&own, &words])?;
    if field.kind.is_some() && field.path != field.name {
        let path = make.text("code", &[("class", "path"), ("dir", "auto")], &field.path)?;
        line.append_child(&path.into())?;
    }
    Ok(line)
}

/// The user's line and what to write in its place, as in a patch.
pub(crate) fn fix(make: &Maker, fix: &Fix) -> Dom<Element> {
    let label = make.text("div", &[("class", "label")], "Fix")?;
    let code = make.empty("pre", &[("class", "patch"), ("dir", "ltr")])?;
    if let Some(before) = &fix.before {
        code.append_child(&make.text("del", &[], before)?.into())?;
    }
    code.append_child(&make.text("ins", &[], &fix.after)?.into())?;
    let why = make.prose("p", &[], fix.why)?;
    let copy = link(make, "copy", &fix.after, "copy")?;
    make.group("div", &[("class", "box")], &[&label, &code, &why, &copy])
}

/// A button that reads as a link.
pub(crate) fn link(make: &Maker, action: &str, argument: &str, label: &str) -> Dom<Element> {
    let attributes = [
        ("class", "link"),
        ("type", "button"),
        ("data-action", action),
        ("data-argument", argument),
    ];
    make.text("button", &attributes, label)
}
