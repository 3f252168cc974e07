//! The table of processes.

use gpumem_explorer::process_page::{PageColumn, PageRow, ProcessPage};
use gpumem_page_kit::dom::{Maker, add, flag, refill, set_attribute, write};
use gpumem_wording::Sign;
use web_sys::Element;

use super::state::{N_ROWS, ProcessesState};
use crate::UNITS;
use crate::controls::search;
use crate::table::{add_row, pager, sorted_head};

/// What is in the page.
pub(crate) struct ProcessesTable {
    panel: Element,
    found: Element,
    pager: Element,
    scroll: Element,
    columns: Vec<PageColumn>,
}

impl ProcessesTable {
    pub(crate) fn build(make: &Maker, page: &ProcessPage) -> Self {
        let title = make.text("h3", &[], "All of them");
        let search = search(make, &format!("find a {}", page.noun));
        let tools = make.group("div.tools", &[], &[&search]);
        let line = make.group("div.line", &[], &[&title, &tools]);
        let found = make.empty("p.muted", &[("role", "status")]);
        let pager = make.empty("div.tools", &[]);
        let below = make.group("div.line", &[], &[&found, &pager]);
        let scroll = make.empty("div.scroll", &[]);
        Self {
            panel: make.group(
                "section.panel.rows-of-processes",
                &[],
                &[&line, &below, &scroll],
            ),
            found,
            pager,
            scroll,
            columns: page.columns(),
        }
    }

    pub(crate) fn panel(&self) -> &Element {
        &self.panel
    }

    pub(crate) fn show(&self, make: &Maker, page: &ProcessPage, state: &ProcessesState) {
        let shown = page.order(&state.order);
        let n = page.rows.len();
        let words = if shown.len() == n {
            format!("{n} in all")
        } else {
            format!("{} of {n}", shown.len())
        };
        let sorted = match state.order.column {
            None => "what matters comes first".to_owned(),
            Some(column) => format!("by {}", page.head(column).to_lowercase()),
        };
        write(&self.found, &format!("{words} · {sorted}"));
        let mut tools = pager(make, "rows", state.first_row, shown.len(), N_ROWS);
        if state.order.column.is_some() {
            tools.push(make.link("unsort", "rows", "What matters first"));
        }
        refill(&self.pager, &tools);
        let table = make.empty("table", &[]);
        add(&table, &self.heads(make, page, state));
        let chosen = state.chosen(page);
        for idx in shown.into_iter().skip(state.first_row).take(N_ROWS) {
            let is_chosen = chosen.contains(&idx);
            let row = self.row(make, &table, &page.rows[idx], idx);
            set_attribute(&row, "data-row", &idx.to_string());
            flag(&row, "data-chosen", is_chosen);
        }
        refill(&self.scroll, &[table]);
    }

    fn heads(&self, make: &Maker, page: &ProcessPage, state: &ProcessesState) -> Element {
        let heads = make.empty("tr", &[]);
        for column in &self.columns {
            let is_sorted = state.order.column == Some(*column);
            let sorted = is_sorted.then_some(state.order.is_descending);
            let button = [column.name(), &page.head(*column), column.meaning()];
            add(
                &heads,
                &sorted_head(make, button, column.is_words(), sorted),
            );
        }
        heads
    }

    fn row(&self, make: &Maker, table: &Element, row: &PageRow, idx: usize) -> Element {
        let argument = idx.to_string();
        let attributes = [("data-action", "row"), ("data-argument", &*argument)];
        let name = make.text("button.operator", &attributes, &row.name);
        let first = make.empty("div.called", &[]);
        let sign = row.severity.map_or("", |it| Sign::from(it).glyph());
        let mark = make.text("span.sign", &[("data-sign", sign)], sign);
        add(&first, &mark);
        add(&first, &name);
        let line = add_row(make, table, &first, &[]);
        for column in self.columns.iter().skip(1) {
            let tag = if column.is_words() { "td" } else { "td.figure" };
            let words = column.cell(row, UNITS);
            add(&line, &make.text(tag, &[], &words));
        }
        line
    }
}
