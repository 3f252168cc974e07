//! Processes side by side: what is found, their levels over time, and a table of them.

mod multiples;
mod page;
mod rows;
mod state;

use gpumem_core::chart::{Point, Theme};
use gpumem_core::process_page::{Band, PageError, ProcessPage, bands};
use gpumem_page_kit::dom::Dom;
use web_sys::Element;

use crate::Shown;
use page::Page;
use state::State;

/// The ranks of a job, or the child processes of a session, in the page.
pub(crate) struct Processes {
    known: Known,
    state: State,
    page: Option<Page>,
}

/// What is shown.
pub(crate) struct Known {
    pub(crate) page: ProcessPage,
    pub(crate) bands: Vec<Band>,
}

impl Processes {
    pub(crate) fn open(bytes: &[u8]) -> Result<Self, PageError> {
        let page = ProcessPage::from_bytes(bytes)?;
        Ok(Self {
            known: Known {
                bands: bands(&page),
                page,
            },
            state: State::default(),
            page: None,
        })
    }

    fn on_page(&mut self, act: impl FnOnce(&mut Page, &Known, &State) -> Dom<()>) -> Dom<()> {
        match &mut self.page {
            Some(page) => act(page, &self.known, &self.state),
            None => Ok(()),
        }
    }

    fn place(&self, chart: &str, at: Point) -> Option<(usize, gpumem_core::units::Nanos)> {
        let page = self.page.as_ref()?;
        page.place(chart, at, self.known.page.span)
    }
}

impl Shown for Processes {
    fn kind(&self) -> &'static str {
        "gpumem"
    }

    fn mount(&mut self, root: &Element, name: &str) -> Dom<()> {
        let page = Page::build(root, &self.known, &self.state, name)?;
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
        let place = pointed.and_then(|(chart, at)| self.place(chart, at));
        self.state.point(place);
        self.on_page(Page::read)
    }

    fn click(&mut self, chart: &str, at: Point) -> Dom<()> {
        if let Some((row, _)) = self.place(chart, at) {
            self.state.choose_row(row);
            return self.on_page(Page::show);
        }
        Ok(())
    }

    fn act(&mut self, action: &str, argument: &str) -> Dom<()> {
        if self.state.act(&self.known.page, action, argument) {
            return self.on_page(Page::show);
        }
        Ok(())
    }

    fn input(&mut self, input: &str, value: &str) -> Dom<()> {
        if input == "search" {
            self.state.search(value);
            return self.on_page(Page::show_rows);
        }
        Ok(())
    }

    fn press(&mut self, chart: &str, key: &str, _is_shifted: bool) -> Dom<bool> {
        let on_chart = self.page.as_ref().is_some_and(|page| page.has_chart(chart));
        let meant = self.state.press(&self.known.page, on_chart, key);
        if meant {
            self.on_page(Page::show)?;
        }
        Ok(meant)
    }

    fn hover(&mut self, row: &str) -> Dom<()> {
        self.state.hover(row.parse().ok());
        self.on_page(Page::read)
    }
}
