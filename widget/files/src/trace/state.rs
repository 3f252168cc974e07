//! The state of the trace page, and how events change it.

use gpumem_explorer::chart::axis_value_at;
use gpumem_model::units::Nanos;
use gpumem_readers::chrome_trace::{GroupBy, OperatorColumn, OperatorView, RangeRow, TraceSummary};
use gpumem_scene::{Point, Theme};

/// The name of the chart.
pub(crate) const CHART: &str = "profile";
/// Rows of a table that are in the page at once.
pub(crate) const N_ROWS: usize = 25;
/// The shortest time in view, in nanoseconds.
const LEAST_NANOS: f64 = 100.0;
/// The zoom factor of a key.
const STEP: f64 = 1.5;
/// The share of the view that a key moves over.
const LEAP: f64 = 0.01;
/// A shorter drag, in pixels, is a click.
const LEAST_DRAG: f64 = 4.0;

/// The state of the page. Times are nanoseconds after the trace's start.
#[derive(Debug, Clone)]
pub(crate) struct TraceState {
    /// By its position in the summary.
    pub(crate) device: usize,
    /// The duration of the whole trace.
    pub(crate) duration: f64,
    /// The time in view.
    pub(crate) span: (f64, f64),
    /// The part of the time whose calls are counted; `None` for all of it.
    pub(crate) chosen: Option<(f64, f64)>,
    /// The keyboard cursor.
    pub(crate) cursor: Option<f64>,
    /// How the rows are grouped.
    pub(crate) by: GroupBy,
    /// Which rows are shown.
    pub(crate) rows: OperatorView,
    /// The first row in the page, of those that are shown.
    pub(crate) first_row: usize,
    /// The first range in the page.
    pub(crate) first_range: usize,
    /// The row whose calls are marked.
    pub(crate) marked: Option<usize>,
    /// The row under the pointer, whose calls are marked meanwhile.
    pub(crate) hovered: Option<usize>,
    pub(crate) pointed: Option<Point>,
    drag: Option<Drag>,
    /// In logical pixels.
    pub(crate) width: f64,
    /// Device pixels of a logical one.
    pub(crate) scale: f64,
    pub(crate) theme: Theme,
}

/// A drag of the chart.
#[derive(Debug, Clone, Copy)]
struct Drag {
    from: f64,
    x: f64,
    is_more: bool,
    /// The chosen time before the drag.
    before: Option<(f64, f64)>,
}

impl TraceState {
    /// All of the trace, on its first device; the rows with most time of their own first.
    pub(crate) fn new(summary: &TraceSummary) -> Self {
        let duration = summary.duration.as_f64().max(1.0);
        Self {
            device: 0,
            duration,
            span: (0.0, duration),
            chosen: None,
            cursor: None,
            by: GroupBy::Name,
            rows: OperatorView {
                search: String::new(),
                is_kernel: None,
                column: OperatorColumn::SelfTime,
                is_descending: true,
            },
            first_row: 0,
            first_range: 0,
            marked: None,
            hovered: None,
            pointed: None,
            drag: None,
            width: 0.0,
            scale: 1.0,
            theme: Theme::Light,
        }
    }

    /// The part of the time whose calls are counted.
    pub(crate) fn within(&self) -> Option<(Nanos, Nanos)> {
        let nanos = |at: f64| Nanos::new(at.round() as u64);
        self.chosen.map(|(from, to)| (nanos(from), nanos(to)))
    }

    /// Handles a button; false if it is unknown.
    pub(crate) fn act(&mut self, ranges: &[RangeRow], action: &str, argument: &str) -> bool {
        let number = argument.parse::<usize>();
        match (action, argument, number) {
            ("device", _, Ok(device)) => self.device = device,
            ("sort", name, _) => match OperatorColumn::from_name(name) {
                Some(column) => self.sort_by(column),
                None => return false,
            },
            ("by", name, _) => {
                self.by = GroupBy::from_name(name).unwrap_or_default();
                // Rows of other groups have other numbers.
                (self.marked, self.hovered, self.first_row) = (None, None, 0);
                if self.by == GroupBy::Name && self.rows.column == OperatorColumn::Within {
                    self.rows.column = OperatorColumn::Name;
                }
            }
            ("kind", name, _) => {
                self.rows.is_kernel = match name {
                    "operators" => Some(false),
                    "kernels" => Some(true),
                    _ => None,
                };
                self.first_row = 0;
            }
            ("row", _, Ok(row)) => self.marked = (self.marked != Some(row)).then_some(row),
            ("rows", "next", _) => self.first_row += N_ROWS,
            ("rows", "previous", _) => self.first_row = self.first_row.saturating_sub(N_ROWS),
            ("ranges", "next", _) => self.first_range += N_ROWS,
            ("ranges", "previous", _) => {
                self.first_range = self.first_range.saturating_sub(N_ROWS);
            }
            ("range", _, Ok(row)) => {
                if let Some(row) = ranges.get(row) {
                    self.choose_time(row.extent);
                }
            }
            ("clear", _, _) => self.choose(None),
            ("unmark", _, _) => self.marked = None,
            ("whole", _, _) => self.span = (0.0, self.duration),
            ("zoom", "chosen", _) => {
                if let Some((from, to)) = self.chosen {
                    self.look_at(from, to);
                }
            }
            ("zoom", "in", _) => self.zoom(None, 1.0 / STEP),
            ("zoom", "out", _) => self.zoom(None, STEP),
            _ => return false,
        }
        true
    }

    fn sort_by(&mut self, column: OperatorColumn) {
        let is_text = matches!(column, OperatorColumn::Name | OperatorColumn::Within);
        self.rows.is_descending = if self.rows.column == column {
            !self.rows.is_descending
        } else {
            !is_text
        };
        (self.rows.column, self.first_row) = (column, 0);
    }

    /// Counts the calls of that time alone; of the one that is chosen, all again.
    pub(crate) fn choose_time(&mut self, (from, to): (Nanos, Nanos)) {
        let chosen = Some((from.as_f64(), to.as_f64()));
        self.choose(chosen.filter(|_| self.chosen != chosen));
        if let Some((from, to)) = self.chosen
            && (to < self.span.0 || from > self.span.1)
        {
            let half = (self.span.1 - self.span.0) / 2.0;
            let middle = f64::midpoint(from, to);
            self.look_at(middle - half, middle + half);
        }
    }

    fn choose(&mut self, chosen: Option<(f64, f64)>) {
        (self.chosen, self.first_row) = (chosen, 0);
    }

    /// The chart is held at that place.
    pub(crate) fn grab(&mut self, x: f64) {
        self.drag = self.time_at(x).map(|from| Drag {
            from,
            x,
            is_more: false,
            before: self.chosen,
        });
    }

    /// The held chart is drawn to that place. True if that was more than a click.
    pub(crate) fn drag_to(&mut self, x: f64) -> bool {
        let Some(drag) = &mut self.drag else {
            return false;
        };
        drag.is_more |= (x - drag.x).abs() > LEAST_DRAG;
        if !drag.is_more {
            return false;
        }
        let from = drag.from;
        let to = axis_value_at(x.max(0.0), self.width, self.span);
        // Beside the chart is its edge.
        let to = to.unwrap_or(if x < self.width / 2.0 {
            self.span.0
        } else {
            self.span.1
        });
        self.choose(Some((from.min(to), from.max(to))));
        true
    }

    /// The chart is let go. True if what is chosen may be another.
    pub(crate) fn release(&mut self, is_over: bool) -> bool {
        let Some(drag) = self.drag.take() else {
            return false;
        };
        if !is_over {
            self.chosen = drag.before;
        }
        drag.is_more
    }

    /// A place of the chart was clicked that is no range: all calls are counted again.
    pub(crate) fn click(&mut self, x: f64) {
        self.cursor = self.time_at(x);
        self.choose(None);
    }

    /// What a key on the chart means; false for nothing.
    pub(crate) fn press(&mut self, key: &str, is_shifted: bool) -> bool {
        let leap = (self.span.1 - self.span.0) * LEAP;
        let at = self.cursor.unwrap_or(self.span.0);
        match key {
            "ArrowLeft" => self.go_to(at - leap, is_shifted),
            "ArrowRight" => self.go_to(at + leap, is_shifted),
            "Home" => self.go_to(0.0, is_shifted),
            "End" => self.go_to(self.duration, is_shifted),
            "+" | "=" => self.zoom(self.cursor, 1.0 / STEP),
            "-" => self.zoom(self.cursor, STEP),
            "0" => self.span = (0.0, self.duration),
            "Escape" if self.chosen.is_some() => self.choose(None),
            "Escape" if self.marked.is_some() => self.marked = None,
            _ => return false,
        }
        true
    }

    /// With Shift, the part that is chosen grows or shrinks at the end where the keyboard is.
    fn go_to(&mut self, to: f64, is_choosing: bool) {
        let from = self.cursor.unwrap_or(self.span.0);
        let to = to.clamp(0.0, self.duration);
        if is_choosing {
            let fixed = match self.chosen {
                Some((start, end)) if (from - end).abs() < 1.0 => start,
                Some((start, end)) if (from - start).abs() < 1.0 => end,
                _ => from,
            };
            self.choose(Some((fixed.min(to), fixed.max(to))));
        }
        self.cursor = Some(to);
        if !(self.span.0..=self.span.1).contains(&to) {
            let half = (self.span.1 - self.span.0) / 2.0;
            self.look_at(to - half, to + half);
        }
    }

    /// Multiplies the time in view, around an instant or else around the middle.
    pub(crate) fn zoom(&mut self, around: Option<f64>, factor: f64) {
        let (from, to) = self.span;
        let around = around.unwrap_or(f64::midpoint(from, to));
        let length = ((to - from) * factor).clamp(LEAST_NANOS.min(self.duration), self.duration);
        let share = ((around - from) / (to - from).max(1.0)).clamp(0.0, 1.0);
        let from = around - share * length;
        self.look_at(from, from + length);
    }

    /// That time, as far as there is any.
    fn look_at(&mut self, from: f64, to: f64) {
        let length = (to - from).clamp(LEAST_NANOS.min(self.duration), self.duration);
        let from = from.clamp(0.0, self.duration - length);
        self.span = (from, from + length);
    }

    /// When it is at a place of the chart.
    pub(crate) fn time_at(&self, x: f64) -> Option<f64> {
        axis_value_at(x, self.width, self.span)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gpumem_readers::cell_files::CellFiles;
    use gpumem_readers::chrome_trace::{range_rows, summary};

    /// Two steps of 400 ns in 1000 ns.
    fn steps() -> TraceSummary {
        let file = br#"{"traceEvents": [
            {"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#0", "pid": 1, "tid": 1, "ts": 0, "dur": 0.4},
            {"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#1", "pid": 1, "tid": 1, "ts": 0.6, "dur": 0.4}
        ]}"#;
        summary(file, &CellFiles::default()).expect("it is whole")
    }

    fn state() -> TraceState {
        TraceState {
            width: 678.0,
            ..TraceState::new(&steps())
        }
    }

    #[test]
    fn dragging_chooses_a_part_and_a_click_gives_it_up() {
        let mut state = state();
        state.grab(66.0);
        assert!(!state.drag_to(68.0), "this is a click yet");
        assert!(state.drag_to(366.0));
        assert_eq!(state.chosen, Some((0.0, 500.0)));
        assert!(state.drag_to(1000.0), "beyond the edge");
        assert_eq!(state.chosen, Some((0.0, 1000.0)));
        assert!(state.release(true));
        state.click(366.0);
        assert_eq!((state.chosen, state.cursor), (None, Some(500.0)));
    }

    #[test]
    fn a_drag_that_is_broken_off_changes_nothing() {
        let mut state = state();
        state.chosen = Some((100.0, 200.0));
        state.grab(66.0);
        state.drag_to(366.0);
        state.release(false);
        assert_eq!(state.chosen, Some((100.0, 200.0)));
    }

    #[test]
    fn a_range_is_chosen_and_given_up() {
        let (ranges, mut state) = (range_rows(&steps().ranges), state());
        state.first_row = 50;
        assert!(state.act(&ranges, "range", "1"));
        assert_eq!((state.chosen, state.first_row), (Some((600.0, 1000.0)), 0));
        assert!(state.act(&ranges, "range", "1"));
        assert_eq!(state.chosen, None);
        state.look_at(0.0, 200.0);
        assert!(state.act(&ranges, "range", "1"));
        assert_eq!(state.span, (700.0, 900.0), "what is chosen is in view");
        assert!(
            state.act(&ranges, "range", "9"),
            "a range that is not there"
        );
    }

    #[test]
    fn figures_are_sorted_from_the_largest_and_texts_from_the_first() {
        let (ranges, mut state) = (range_rows(&steps().ranges), state());
        let order = |state: &TraceState| (state.rows.column, state.rows.is_descending);
        state.act(&ranges, "sort", "calls");
        assert_eq!(order(&state), (OperatorColumn::Calls, true));
        state.act(&ranges, "sort", "calls");
        assert_eq!(order(&state), (OperatorColumn::Calls, false));
        state.act(&ranges, "sort", "name");
        assert_eq!(order(&state), (OperatorColumn::Name, false));
        assert!(!state.act(&ranges, "sort", "colour"));
    }

    #[test]
    fn keys_move_and_with_shift_choose() {
        let mut state = state();
        assert!(state.press("End", false));
        assert!(state.press("ArrowLeft", true));
        assert!(state.press("ArrowLeft", true));
        assert_eq!(state.chosen, Some((980.0, 1000.0)));
        assert!(state.press("ArrowRight", true));
        assert_eq!(state.chosen, Some((990.0, 1000.0)));
        assert!(state.press("Escape", false));
        assert_eq!(state.chosen, None);
        assert!(!state.press("Escape", false));
    }

    #[test]
    fn zooming_stays_within_the_trace() {
        let mut state = state();
        state.zoom(Some(250.0), 0.5);
        assert_eq!(state.span, (125.0, 625.0));
        state.zoom(Some(125.0), 10.0);
        assert_eq!(state.span, (0.0, 1000.0));
        for _ in 0..50 {
            state.zoom(Some(999.0), 0.1);
        }
        assert!((state.span.1 - state.span.0 - LEAST_NANOS).abs() < 1e-9);
    }

    #[test]
    fn rows_of_other_groups_are_not_marked() {
        let (ranges, mut state) = (range_rows(&steps().ranges), state());
        state.act(&ranges, "row", "3");
        assert_eq!(state.marked, Some(3));
        state.act(&ranges, "by", "shapes");
        assert_eq!((state.marked, state.by), (None, GroupBy::Shapes));
    }
}
