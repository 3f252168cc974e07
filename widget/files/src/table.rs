//! Tables whose first column has names and whose others have figures.

use gpumem_page_kit::dom::{Maker, add, describe, flag};
use web_sys::Element;

/// A table with its heads.
pub(crate) fn table(make: &Maker, heads: &[&str]) -> Element {
    let table = make.empty("table", &[]);
    let head = make.empty("tr", &[]);
    for (position, name) in heads.iter().enumerate() {
        let tag = if position == 0 { "th" } else { "th.figure" };
        add(&head, &make.text(tag, &[("scope", "col")], name));
    }
    add(&table, &head);
    table
}

/// Adds a row: a name and figures.
pub(crate) fn row(make: &Maker, table: &Element, name: &str, figures: &[String]) {
    add_row(make, table, &make.text("code", &[], name), figures);
}

/// Adds a row: an element and figures.
pub(crate) fn add_row(
    make: &Maker,
    table: &Element,
    first: &Element,
    figures: &[String],
) -> Element {
    let row = make.empty("tr", &[]);
    add(&row, &make.group("td", &[], &[first]));
    for figure in figures {
        add(&row, &make.text("td.figure", &[], figure));
    }
    add(table, &row);
    row
}

/// The head of a column that sorts the table: its argument, what it says, what it means; if the table is
/// sorted by it, whether the largest comes first.
pub(crate) fn sorted_head(
    make: &Maker,
    [argument, words, meaning]: [&str; 3],
    is_words: bool,
    sorted: Option<bool>,
) -> Element {
    let attributes = [
        ("data-action", "sort"),
        ("data-argument", argument),
        ("title", meaning),
    ];
    let (arrow, order) = match sorted {
        None => ("", ""),
        Some(true) => (" ↓", "descending"),
        Some(false) => (" ↑", "ascending"),
    };
    let button = make.text("button", &attributes, &format!("{words}{arrow}"));
    describe(&button, "aria-label", words);
    let tag = if is_words { "th" } else { "th.figure" };
    let head = make.group(tag, &[("scope", "col")], &[&button]);
    if sorted.is_some() {
        describe(&head, "aria-sort", order);
    }
    head
}

/// Which of `n` rows are in the page, `most` at once, and buttons to the others.
pub(crate) fn pager(
    make: &Maker,
    action: &str,
    first: usize,
    n: usize,
    most: usize,
) -> Vec<Element> {
    if n <= most {
        return Vec::new();
    }
    let last = (first + most).min(n);
    let words = format!("{} – {last} of {n}", first + 1);
    let mut elements = vec![make.text("span.muted", &[], &words)];
    for (argument, label, is_there) in [
        ("previous", "Previous", first > 0),
        ("next", "Next", last < n),
    ] {
        let link = make.link(action, argument, label);
        flag(&link, "disabled", !is_there);
        elements.push(link);
    }
    elements
}
