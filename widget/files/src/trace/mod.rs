//! A trace of PyTorch's profiler in the page: memory over time, operators and kernels, steps and labelled
//! ranges.

mod known;
mod operators;
mod page;
mod state;

use gpumem_explorer::formats::TRACE_TITLE;
use gpumem_readers::cell_files::CellFiles;
use gpumem_readers::chrome_trace::{RangeRow, TraceExplorer, range_rows};
use gpumem_readers::json_file::JsonError;
use gpumem_scene::{Point, Theme};
use web_sys::Element;

use crate::FileView;
use page::TracePage;
use state::{CHART, TraceState};

/// One trace in the page.
pub(crate) struct TraceFile {
    explorer: TraceExplorer,
    ranges: Vec<RangeRow>,
    state: TraceState,
    page: Option<TracePage>,
}

impl TraceFile {
    /// The trace in `bytes`, with cells named as in the lines of `cells`.
    pub(crate) fn open(bytes: &[u8], cells: &str) -> Result<Self, JsonError> {
        let explorer = TraceExplorer::open(bytes, &CellFiles::from_text(cells))?;
        Ok(Self {
            state: TraceState::new(&explorer.summary),
            ranges: range_rows(&explorer.summary.ranges),
            explorer,
            page: None,
        })
    }

    fn show(&mut self) {
        if let Some(page) = &mut self.page {
            page.show(&self.explorer, &self.ranges, &self.state);
        }
    }

    fn on_page(&mut self, act: impl FnOnce(&mut TracePage, &TraceExplorer, &TraceState)) {
        if let Some(page) = &mut self.page {
            act(page, &self.explorer, &self.state);
        }
    }
}

impl FileView for TraceFile {
    fn kind(&self) -> &'static str {
        TRACE_TITLE
    }

    fn mount(&mut self, root: &Element, name: &str) {
        let page = TracePage::build(root, &self.explorer, &self.ranges, &self.state, name);
        self.page = Some(page);
    }

    fn resize(&mut self, width: f64, scale: f64) {
        (self.state.width, self.state.scale) = (width, scale);
        self.on_page(TracePage::paint);
    }

    fn theme(&mut self, theme: Theme) {
        self.state.theme = theme;
        self.on_page(TracePage::restyle);
    }

    fn repaint(&mut self) {
        self.on_page(TracePage::paint);
    }

    fn point(&mut self, pointed: Option<(&str, Point)>) {
        self.state.pointed = pointed.map(|(_, at)| at);
        self.on_page(|page, explorer, state| {
            page.read(explorer, state);
        });
    }

    fn grab(&mut self, chart: &str, x: f64) {
        if chart == CHART {
            self.state.grab(x);
        }
    }

    fn drag(&mut self, x: f64) -> bool {
        let is_more = self.state.drag_to(x);
        if is_more {
            // The table follows when the chart is let go.
            self.on_page(TracePage::paint);
        }
        is_more
    }

    fn release(&mut self, is_over: bool) {
        if self.state.release(is_over) {
            self.show();
        }
    }

    fn click(&mut self, _chart: &str, at: Point) {
        let range = self.page.as_ref().and_then(|page| page.range_at(at));
        match range.and_then(|idx| self.explorer.summary.ranges.get(idx)) {
            Some(range) => {
                let end = range.start + range.duration;
                self.state.choose_time((range.start, end));
            }
            None => self.state.click(at.x),
        }
        self.show();
    }

    fn act(&mut self, action: &str, argument: &str) {
        if self.state.act(&self.ranges, action, argument) {
            self.show();
        }
    }

    fn zoom(&mut self, _chart: &str, x: f64, factor: f64) {
        self.state.zoom(self.state.time_at(x), factor);
        self.on_page(TracePage::paint);
    }

    fn input(&mut self, input: &str, value: &str) {
        if input == "search" {
            value.trim().clone_into(&mut self.state.rows.search);
            self.state.first_row = 0;
        }
        self.show();
    }

    fn press(&mut self, chart: &str, key: &str, is_shifted: bool) -> bool {
        let meant = chart == CHART && self.state.press(key, is_shifted);
        if meant {
            self.show();
        }
        meant
    }

    fn hover(&mut self, row: &str) {
        let row = row.parse().ok();
        if std::mem::replace(&mut self.state.hovered, row) == row {
            return;
        }
        self.on_page(TracePage::paint);
    }
}
