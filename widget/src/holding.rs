//! Who holds what a finding is about, and the line to change, on its card.

use gpumem_core::holders::{Branch, Fix, Holder, Rest};
use gpumem_core::units::Bytes;
use web_sys::Element;

use crate::dom::{Dom, Maker};

/// Each name with its bytes, what it holds below it, and the path to copy.
pub(crate) fn holders(make: &Maker, holders: &[Holder]) -> Dom<Element> {
    let list = make.empty("ul", &[("class", "tree")])?;
    for holder in holders {
        list.append_child(&name(make, holder)?.into())?;
    }
    let label = make.text("div", &[("class", "label")], "Held by")?;
    make.group("div", &[("class", "box")], &[&label, &list])
}

fn name(make: &Maker, holder: &Holder) -> Dom<Element> {
    let mut words = format!(" {} · {}", holder.retained, holder.what);
    if let Some(kind) = holder.kind.words() {
        words = format!("{words} · {kind}");
    }
    let own = make.text("code", &[("dir", "auto")], &holder.name)?;
    let words = make.text("span", &[("dir", "auto")], &words)?;
    let line = make.group("span", &[], &[&own, &words])?;
    if holder.path != holder.name {
        let path = make.text("code", &[("class", "path"), ("dir", "auto")], &holder.path)?;
        line.append_child(&path.into())?;
    }
    let item = branched(make, &line, &holder.branches, &holder.more)?;
    item.append_child(&copy(make, &holder.path, "copy path")?.into())?;
    Ok(item)
}

/// A line that opens where it holds something in turn.
fn branched(make: &Maker, line: &Element, branches: &[Branch], more: &Rest) -> Dom<Element> {
    if branches.is_empty() {
        return make.group("li", &[], &[line]);
    }
    let list = make.empty("ul", &[])?;
    for branch in branches {
        let step = make.text("code", &[("dir", "auto")], &branch.step)?;
        let words = format!(" {} · {}", branch.n_bytes, branch.what);
        let words = make.text("span", &[("dir", "auto")], &words)?;
        let line = make.group("span", &[], &[&step, &words])?;
        let item = branched(make, &line, &branch.branches, &branch.more)?;
        list.append_child(&item.into())?;
    }
    if more.n_bytes > Bytes::ZERO {
        let words = format!("… and {} more, {}", more.n, more.n_bytes);
        list.append_child(&make.text("li", &[], &words)?.into())?;
    }
    let summary = make.group("summary", &[], &[line])?;
    let details = make.group("details", &[], &[&summary, &list])?;
    make.group("li", &[], &[&details])
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
    let copy = copy(make, &fix.after, "copy")?;
    make.group("div", &[("class", "box")], &[&label, &code, &why, &copy])
}

fn copy(make: &Maker, text: &str, label: &str) -> Dom<Element> {
    let attributes = [
        ("class", "link"),
        ("type", "button"),
        ("data-action", "copy"),
        ("data-argument", text),
    ];
    make.text("button", &attributes, label)
}
