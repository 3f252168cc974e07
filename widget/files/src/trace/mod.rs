//! A trace of PyTorch's profiler in the page: memory over time, operators and kernels, steps and labelled
//! ranges.

mod known;
mod operators;
mod page;
mod state;

use gpumem_core::chart::{Point, Theme};
use gpumem_core::read::cell_files::CellFiles;
use gpumem_core::read::chrome_trace::{RangeRow, TraceExplorer, range_rows};
use gpumem_core::read::json_file::JsonError;
use gpumem_page_kit::dom::Dom;
use web_sys::Element;

use crate::Shown;
use page::Page;
use state::{CHART, State};

/// One trace in the page.
pub(crate) struct Trace {
    explorer: TraceExplorer,
    ranges: Vec<RangeRow>,
    state: State,
    page: Option<Page>,
}

impl Trace {
    /// The trace in `bytes`, with cells named as in the lines of `cells`.
    pub(crate) fn open(bytes: &[u8], cells: &str) -> Result<Self, JsonError> {
        let explorer = TraceExplorer::open(bytes, &CellFiles::from_text(cells))?;
        Ok(Self {
            state: State::of(&explorer.summary),
            ranges: range_rows(&explorer.summary.ranges),
            explorer,
            page: None,
        })
    }

    fn show(&mut self) -> Dom<()> {
        match &mut self.page {
            Some(page) => page.show(&self.explorer, &self.ranges, &self.state),
            None => Ok(()),
        }
    }

    fn on_page(
        &mut self,
        act: impl FnOnce(&mut Page, &TraceExplorer, &State) -> Dom<()>,
    ) -> Dom<()> {
        match &mut self.page {
            Some(page) => act(page, &self.explorer, &self.state),
            None => Ok(()),
        }
    }
}

impl Shown for Trace {
    fn kind(&self) -> &'static str {
        "PyTorch profiler trace"
    }

    fn mount(&mut self, root: &Element, name: &str) -> Dom<()> {
        let page = Page::build(root, &self.explorer, &self.ranges, &self.state, name)?;
        self.page = Some(page);
        Ok(())
    }

    fn resize(&mut self, width: f64, scale: f64) -> Dom<()> {
        (self.state.width, self.state.scale) = (width, scale);
        self.on_page(Page::paint)
    }

    fn theme(&mut self, theme: Theme) -> Dom<()> {
        self.state.theme = theme;
        self.on_page(Page::restyle)
    }

    fn repaint(&mut self) -> Dom<()> {
        self.on_page(Page::paint)
    }

    fn point(&mut self, pointed: Option<(&str, Point)>) -> Dom<()> {
        self.state.pointed = pointed.map(|(_, at)| at);
        self.on_page(|page, explorer, state| {
            page.read(explorer, state);
            Ok(())
        })
    }

    fn grab(&mut self, chart: &str, x: f64) -> Dom<()> {
        if chart == CHART {
            self.state.grab(x);
        }
        Ok(())
    }

    fn drag(&mut self, x: f64) -> Dom<bool> {
        let is_more = self.state.drag_to(x);
        if is_more {
            // The table follows when the chart is let go.
            self.on_page(Page::paint)?;
        }
        Ok(is_more)
    }

    fn release(&mut self, is_over: bool) -> Dom<()> {
        if self.state.release(is_over) {
            return self.show();
        }
        Ok(())
    }

    fn click(&mut self, _chart: &str, at: Point) -> Dom<()> {
        let range = self.page.as_ref().and_then(|page| page.range_at(at));
        match range.and_then(|idx| self.explorer.summary.ranges.get(idx)) {
            Some(range) => {
                let end = range.start + range.duration;
                self.state.choose_time((range.start, end));
            }
            None => self.state.click(at.x),
        }
        self.show()
    }

    fn act(&mut self, action: &str, argument: &str) -> Dom<()> {
        if self.state.act(&self.ranges, action, argument) {
            return self.show();
        }
        Ok(())
    }

    fn zoom(&mut self, _chart: &str, x: f64, factor: f64) -> Dom<()> {
        self.state.zoom(self.state.time_at(x), factor);
        self.on_page(Page::paint)
    }

    fn input(&mut self, input: &str, value: &str) -> Dom<()> {
        if input == "search" {
            value.trim().clone_into(&mut self.state.rows.search);
            self.state.first_row = 0;
        }
        self.show()
    }

    fn press(&mut self, chart: &str, key: &str, is_shifted: bool) -> Dom<bool> {
        let meant = chart == CHART && self.state.press(key, is_shifted);
        if meant {
            self.show()?;
        }
        Ok(meant)
    }

    fn hover(&mut self, row: &str) -> Dom<()> {
        let row = row.parse().ok();
        if std::mem::replace(&mut self.state.hovered, row) == row {
            return Ok(());
        }
        self.on_page(Page::paint)
    }
}
