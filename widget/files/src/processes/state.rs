//! The state of the page of processes, and how events change it.

use gpumem_explorer::process_page::{PageColumn, ProcessPage, RowOrder};
use gpumem_model::units::Nanos;
use gpumem_scene::Theme;

/// How many charts are shown at first.
pub(crate) const N_FIRST: usize = 24;
/// Rows of the table that are in the page at once.
pub(crate) const N_ROWS: usize = 25;
/// A key goes over this part of the time.
const LEAP: f64 = 0.02;

/// The state of the page.
#[derive(Debug, Clone)]
pub(crate) struct ProcessesState {
    /// The charts of all rows are shown.
    pub(crate) is_open: bool,
    /// What is marked by keys: it stays when the pointer leaves.
    pub(crate) kept: Option<(usize, Nanos)>,
    /// What is pointed at.
    pointed: Option<(usize, Nanos)>,
    /// The row of the table that is pointed at.
    hovered: Option<usize>,
    /// The cause whose rows stand out.
    pub(crate) cause: Option<usize>,
    /// A chosen row.
    pub(crate) row: Option<usize>,
    /// Which rows the table shows.
    pub(crate) order: RowOrder,
    /// The first one in the page.
    pub(crate) first_row: usize,
    /// In logical pixels.
    pub(crate) width: f64,
    /// Device pixels of a logical one.
    pub(crate) scale: f64,
    pub(crate) theme: Theme,
}

impl Default for ProcessesState {
    fn default() -> Self {
        Self {
            is_open: false,
            kept: None,
            pointed: None,
            hovered: None,
            cause: None,
            row: None,
            order: RowOrder::default(),
            first_row: 0,
            width: 0.0,
            scale: 1.0,
            theme: Theme::Light,
        }
    }
}

impl ProcessesState {
    /// The row and the instant that are read out.
    pub(crate) fn place(&self) -> Option<(usize, Nanos)> {
        self.pointed.or(self.kept)
    }

    /// The row that is pointed at, in a chart or in the table.
    pub(crate) fn pointed_row(&self) -> Option<usize> {
        self.place().map(|place| place.0).or(self.hovered)
    }

    /// How many charts are shown.
    pub(crate) fn n_charts(&self, page: &ProcessPage) -> usize {
        let n = page.rows.len();
        if self.is_open { n } else { n.min(N_FIRST) }
    }

    /// The chosen rows.
    pub(crate) fn chosen<'a>(&'a self, page: &'a ProcessPage) -> &'a [usize] {
        match (&self.row, self.cause) {
            (Some(row), _) => std::slice::from_ref(row),
            (None, Some(cause)) => page.causes.get(cause).map_or(&[], |it| &it.rows),
            (None, None) => &[],
        }
    }

    pub(crate) fn point(&mut self, place: Option<(usize, Nanos)>) {
        self.pointed = place;
    }

    pub(crate) fn hover(&mut self, row: Option<usize>) {
        self.hovered = row;
    }

    /// Chooses a row; the one that is chosen, no more.
    pub(crate) fn choose_row(&mut self, row: usize) {
        self.row = (self.row != Some(row)).then_some(row);
        self.cause = None;
    }

    pub(crate) fn search(&mut self, words: &str) {
        words.trim().clone_into(&mut self.order.search);
        self.first_row = 0;
    }

    /// What a button means; false for nothing.
    pub(crate) fn act(&mut self, page: &ProcessPage, action: &str, argument: &str) -> bool {
        let number = argument.parse::<usize>();
        match (action, argument, number) {
            ("cause", _, Ok(cause)) if cause < page.causes.len() => {
                self.cause = (self.cause != Some(cause)).then_some(cause);
                self.row = None;
                // Its rows are the first ones where the table is not sorted.
                (self.order.column, self.first_row) = (None, 0);
            }
            ("row", _, Ok(row)) if row < page.rows.len() => self.choose_row(row),
            ("charts", "all", _) => self.is_open = true,
            ("charts", "few", _) => self.is_open = false,
            ("sort", name, _) => match PageColumn::from_name(name) {
                Some(column) => self.sort_by(column),
                None => return false,
            },
            ("unsort", _, _) => (self.order.column, self.first_row) = (None, 0),
            ("rows", "next", _) => self.first_row += N_ROWS,
            ("rows", "previous", _) => self.first_row = self.first_row.saturating_sub(N_ROWS),
            _ => return false,
        }
        true
    }

    fn sort_by(&mut self, column: PageColumn) {
        self.order.is_descending = if self.order.column == Some(column) {
            !self.order.is_descending
        } else {
            !column.is_words()
        };
        (self.order.column, self.first_row) = (Some(column), 0);
    }

    /// What a key means on a chart, or elsewhere; false for nothing.
    pub(crate) fn press(&mut self, page: &ProcessPage, on_chart: bool, key: &str) -> bool {
        if key == "Escape" {
            let is_any = self.kept.is_some() || self.row.is_some() || self.cause.is_some();
            (self.kept, self.row, self.cause) = (None, None, None);
            return is_any;
        }
        let n = self.n_charts(page);
        if !on_chart || n == 0 {
            return false;
        }
        let span = page.span;
        let (row, at) = self.kept.unwrap_or((0, span));
        let leap = Nanos::new((span.as_f64() * LEAP) as u64);
        self.kept = Some(match key {
            "ArrowLeft" => (row, at.since(leap)),
            "ArrowRight" => (row, (at + leap).min(span)),
            "Home" => (row, Nanos::ZERO),
            "End" => (row, span),
            "ArrowDown" => ((row + 1).min(n - 1), at),
            "ArrowUp" => (row.saturating_sub(1), at),
            "Enter" | " " => {
                self.choose_row(row);
                (row, at)
            }
            _ => return false,
        });
        true
    }
}

#[cfg(test)]
mod tests {
    use gpumem_analyzer::Severity;
    use gpumem_explorer::process_page::{PageCause, PageRow};

    use super::*;

    /// A page with `n` processes, of which the first two leak.
    fn page(n: usize) -> ProcessPage {
        let cause = PageCause {
            severity: Severity::Critical,
            words: "2 leak".to_owned(),
            command: String::new(),
            rows: vec![0, 1],
        };
        ProcessPage {
            span: Nanos::new(100),
            causes: vec![cause],
            rows: vec![PageRow::default(); n],
            ..ProcessPage::default()
        }
    }

    #[test]
    fn the_first_charts_are_shown_until_somebody_asks_for_all() {
        let (page, mut state) = (page(512), ProcessesState::default());
        assert_eq!(state.n_charts(&page), 24);
        assert!(state.act(&page, "charts", "all"));
        assert_eq!(state.n_charts(&page), 512);
    }

    #[test]
    fn a_cause_is_chosen_and_chosen_no_more() {
        let (page, mut state) = (page(4), ProcessesState::default());
        state.act(&page, "sort", "memory");
        assert!(state.act(&page, "cause", "0"));
        assert_eq!(state.chosen(&page), [0, 1]);
        assert_eq!(state.order.column, None, "its rows come first");
        state.choose_row(3);
        assert_eq!(state.chosen(&page), [3]);
        state.act(&page, "cause", "0");
        state.act(&page, "cause", "0");
        assert_eq!(state.chosen(&page), [0; 0]);
        assert!(!state.act(&page, "cause", "1"), "there is none");
    }

    #[test]
    fn keys_go_through_time_and_from_chart_to_chart() {
        let (page, mut state) = (page(3), ProcessesState::default());
        assert!(state.press(&page, true, "ArrowLeft"));
        assert_eq!(state.place(), Some((0, Nanos::new(98))));
        state.press(&page, true, "ArrowDown");
        state.press(&page, true, "Home");
        assert_eq!(state.place(), Some((1, Nanos::ZERO)));
        state.point(Some((2, Nanos::new(7))));
        assert_eq!(
            state.place(),
            Some((2, Nanos::new(7))),
            "the pointer comes first"
        );
        state.point(None);
        assert!(!state.press(&page, false, "ArrowDown"));
        assert!(state.press(&page, false, "Escape"));
        assert_eq!(state.place(), None);
        assert!(!state.press(&page, false, "Escape"), "the notebook's then");
    }

    #[test]
    fn a_column_is_sorted_the_largest_first_and_then_the_other_way() {
        let (page, mut state) = (page(3), ProcessesState::default());
        state.act(&page, "sort", "memory");
        assert!(state.order.is_descending);
        state.act(&page, "sort", "memory");
        assert!(!state.order.is_descending);
        state.act(&page, "sort", "name");
        assert!(!state.order.is_descending, "names from a to z");
        assert!(!state.act(&page, "sort", "other"));
    }
}
