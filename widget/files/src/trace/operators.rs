//! The table of operators and kernels.

use gpumem_explorer::chart::instant_words;
use gpumem_model::units::count;
use gpumem_model::units::{ByteDelta, Nanos};
use gpumem_page_kit::dom::{Maker, add, flag, refill, write};
use gpumem_readers::chrome_trace::{
    GroupBy, OperatorColumn, OperatorFigures, RowKind, TraceExplorer,
};
use web_sys::Element;

use super::known::TraceFacts;
use super::state::{N_ROWS, TraceState};
use crate::UNITS;
use crate::controls::{choices, search};
use crate::table::{pager, sorted_head};

/// What is in the page.
pub(crate) struct Operators {
    panel: Element,
    kinds: Element,
    groups: Element,
    pager: Element,
    found: Element,
    rows: Element,
    has_kernels: bool,
}

/// A column: its head, and what it means.
type OperatorHead = (OperatorColumn, &'static str, &'static str);

const FIGURES: [OperatorHead; 6] = [
    (OperatorColumn::Calls, "Calls", "how often it was called"),
    (
        OperatorColumn::TotalTime,
        "Total time",
        "from begin to end of its calls",
    ),
    (
        OperatorColumn::SelfTime,
        "Self time",
        "without the operators that it calls",
    ),
    (
        OperatorColumn::DeviceTime,
        "Device time",
        "of the kernels that it launches itself",
    ),
    (
        OperatorColumn::Memory,
        "Memory",
        "allocated minus freed, with the operators that it calls",
    ),
    (
        OperatorColumn::SelfMemory,
        "Self memory",
        "allocated minus freed, without the operators that it calls",
    ),
];

impl Operators {
    pub(crate) fn build(make: &Maker, explorer: &TraceExplorer) -> Self {
        let title = make.text("h3", &[], "Operators and kernels");
        let (kinds, groups) = (make.segments("rows"), make.segments("group by"));
        let search = search(make, "find an operator or kernel");
        let tools = make.group("div.tools", &[], &[&kinds, &groups, &search]);
        let line = make.group("div.line", &[], &[&title, &tools]);
        let found = make.empty("p.muted", &[("role", "status")]);
        let pager = make.empty("div.tools", &[]);
        let below = make.group("div.line", &[], &[&found, &pager]);
        let rows = make.empty("div.scroll", &[]);
        Self {
            panel: make.group("section.panel.operators", &[], &[&line, &below, &rows]),
            kinds,
            groups,
            pager,
            found,
            rows,
            has_kernels: !explorer.summary.kernels.is_empty(),
        }
    }

    pub(crate) fn panel(&self) -> &Element {
        &self.panel
    }

    pub(crate) fn show(
        &self,
        make: &Maker,
        explorer: &TraceExplorer,
        state: &TraceState,
        known: &TraceFacts,
    ) {
        self.show_choices(make, explorer, state);
        self.show_found(explorer, state, known);
        let pages = pager(make, "rows", state.first_row, known.shown.len(), N_ROWS);
        refill(&self.pager, &pages);
        let columns = self.columns(known);
        let table = make.empty("table", &[]);
        add(&table, &heads(make, state, &columns));
        for &row in known.shown.iter().skip(state.first_row).take(N_ROWS) {
            add(&table, &self.row(make, explorer, state, known, row));
        }
        refill(&self.rows, &[table]);
    }

    fn show_choices(&self, make: &Maker, explorer: &TraceExplorer, state: &TraceState) {
        let kind = match state.rows.is_kernel {
            None => "all",
            Some(false) => "operators",
            Some(true) => "kernels",
        };
        let kinds = [
            ("all", "All"),
            ("operators", "Operators"),
            ("kernels", "Kernels"),
        ];
        refill(&self.kinds, &choices(make, "kind", kind, &kinds));
        let has_both = self.has_kernels && !explorer.summary.operators.is_empty();
        flag(&self.kinds, "hidden", !has_both);
        let groups = [
            (GroupBy::Name, "By name"),
            (GroupBy::Shapes, "By input shapes"),
            (GroupBy::Module, "By module"),
            (GroupBy::Function, "By Python function"),
        ];
        let there = groups.into_iter().filter(|it| explorer.has(it.0));
        let there: Vec<_> = there.map(|(by, label)| (by.name(), label)).collect();
        let buttons = choices(make, "by", state.by.name(), &there);
        refill(&self.groups, &buttons);
        flag(&self.groups, "hidden", there.len() < 2);
    }

    /// How many rows there are, and which calls are counted.
    fn show_found(&self, explorer: &TraceExplorer, state: &TraceState, known: &TraceFacts) {
        let n_shown = known.shown.len();
        let n_rows = known.table.n_rows();
        let rows = if n_shown == n_rows {
            count(n_shown, "row")
        } else {
            format!("{n_shown} of {}", count(n_rows, "row"))
        };
        let calls = match state.chosen {
            Some((from, to)) => {
                let step = (to - from) / 100.0;
                let (from, to) = (instant_words(from, step), instant_words(to, step));
                format!("only calls that begin between {from} and {to}")
            }
            None => "all calls".to_owned(),
        };
        let device = explorer.summary.devices.get(state.device);
        let device = device.map(|device| {
            let name = gpumem_explorer::formats::torch_trace_device(device);
            format!(" · memory on {name}")
        });
        write(
            &self.found,
            &format!("{rows} · {calls}{}", device.unwrap_or_default()),
        );
    }

    /// The columns of which the trace has something.
    fn columns(&self, known: &TraceFacts) -> Vec<OperatorHead> {
        let is_there = |column: &OperatorHead| match column.0 {
            OperatorColumn::DeviceTime => self.has_kernels,
            OperatorColumn::Memory | OperatorColumn::SelfMemory => known.levels.is_some(),
            _ => true,
        };
        FIGURES.into_iter().filter(is_there).collect()
    }

    fn row(
        &self,
        make: &Maker,
        explorer: &TraceExplorer,
        state: &TraceState,
        known: &TraceFacts,
        number: usize,
    ) -> Element {
        let name = known.table.name(explorer, number);
        let is_marked = state.marked == Some(number);
        let argument = number.to_string();
        let attributes = [
            ("data-action", "row"),
            ("data-argument", &*argument),
            ("aria-pressed", if is_marked { "true" } else { "false" }),
            ("title", name),
        ];
        let code = make.text("code", &[], name);
        let button = make.group("button.operator", &attributes, &[&code]);
        let called = make.group("div.called", &[], &[&button]);
        let kind = match known.table.kind(number) {
            RowKind::Operator => None,
            RowKind::Runtime => Some("runtime call"),
            RowKind::Kernel => Some("kernel"),
        };
        if let Some(kind) = kind {
            add(&called, &make.text("span.muted", &[], kind));
        }
        let cell = make.group("td", &[], &[&called]);
        let row = make.group("tr", &[("data-row", &argument)], &[&cell]);
        flag(&row, "data-chosen", is_marked);
        if state.by != GroupBy::Name {
            let within = match known.table.within(explorer, number) {
                "" => "–",
                within => within.strip_prefix("nn.Module: ").unwrap_or(within),
            };
            let within = make.text("code", &[], within);
            add(&row, &make.group("td.within", &[], &[&within]));
        }
        for (column, _, _) in self.columns(known) {
            let words = figure(column, &known.figures[number]);
            add(&row, &make.text("td.figure", &[], &words));
        }
        row
    }
}

fn heads(make: &Maker, state: &TraceState, columns: &[OperatorHead]) -> Element {
    let heads = make.empty("tr", &[]);
    let within = match state.by {
        GroupBy::Name => None,
        GroupBy::Shapes => Some((OperatorColumn::Within, "Input shapes", "as recorded")),
        GroupBy::Module => Some((OperatorColumn::Within, "Module", "the innermost one")),
        GroupBy::Function => {
            let meaning = "the innermost one outside of torch, with the line where it begins";
            Some((OperatorColumn::Within, "Called from", meaning))
        }
    };
    let name = (OperatorColumn::Name, "Name", "the operator or kernel");
    let texts = [Some(name), within].into_iter().flatten();
    let n_texts = texts.clone().count();
    for (idx, (column, words, meaning)) in texts.chain(columns.iter().copied()).enumerate() {
        let is_sorted = state.rows.column == column;
        let sorted = is_sorted.then_some(state.rows.is_descending);
        let button = [column.name(), words, meaning];
        add(&heads, &sorted_head(make, button, idx < n_texts, sorted));
    }
    heads
}

fn figure(column: OperatorColumn, figures: &OperatorFigures) -> String {
    let time = |time: Nanos| match time.get() {
        0 => "–".to_owned(),
        _ => time.to_string(),
    };
    let memory = |change: ByteDelta| match change.get() {
        0 => "–".to_owned(),
        _ => UNITS.change(change),
    };
    match column {
        OperatorColumn::Name | OperatorColumn::Within => String::new(),
        OperatorColumn::Calls => figures.n_calls.to_string(),
        OperatorColumn::TotalTime => figures.total.to_string(),
        OperatorColumn::SelfTime => figures.own.to_string(),
        OperatorColumn::DeviceTime => time(figures.on_device),
        OperatorColumn::Memory => memory(figures.memory),
        OperatorColumn::SelfMemory => memory(figures.own_memory),
    }
}
