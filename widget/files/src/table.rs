//! Tables whose first column has names and whose others have figures.

use gpumem_page_kit::dom::{Dom, Maker, add};
use web_sys::Element;

/// A table with its heads.
pub(crate) fn table(make: &Maker, heads: &[&str]) -> Dom<Element> {
    let table = make.empty("table", &[])?;
    let head = make.empty("tr", &[])?;
    for (position, name) in heads.iter().enumerate() {
        let tag = if position == 0 { "th" } else { "th.figure" };
        add(&head, &make.text(tag, &[("scope", "col")], name)?)?;
    }
    add(&table, &head)?;
    Ok(table)
}

/// Adds a row: a name and figures.
pub(crate) fn row(make: &Maker, table: &Element, name: &str, figures: &[String]) -> Dom<()> {
    add_row(make, table, &make.text("code", &[], name)?, figures).map(drop)
}

/// Adds a row: an element and figures.
pub(crate) fn add_row(
    make: &Maker,
    table: &Element,
    first: &Element,
    figures: &[String],
) -> Dom<Element> {
    let row = make.empty("tr", &[])?;
    add(&row, &make.group("td", &[], &[first])?)?;
    for figure in figures {
        add(&row, &make.text("td.figure", &[], figure)?)?;
    }
    add(table, &row)?;
    Ok(row)
}
