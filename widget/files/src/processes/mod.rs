//! Processes side by side: what is found, their levels over time, and a table of them.

mod multiples;
mod page;
mod rows;
mod state;

use gpumem_explorer::process_page::{LevelBand, PageError, ProcessPage, bands};
use gpumem_scene::{Point, Theme};
use web_sys::Element;

use crate::FileView;
use page::ProcessesPage;
use state::ProcessesState;

/// The ranks of a job, or the child processes of a session, in the page.
pub(crate) struct ProcessesFile {
    known: ProcessesModel,
    state: ProcessesState,
    page: Option<ProcessesPage>,
}

/// What is shown.
pub(crate) struct ProcessesModel {
    pub(crate) page: ProcessPage,
    pub(crate) bands: Vec<LevelBand>,
}

impl ProcessesFile {
    pub(crate) fn open(bytes: &[u8]) -> Result<Self, PageError> {
        let page = ProcessPage::from_bytes(bytes)?;
        Ok(Self {
            known: ProcessesModel {
                bands: bands(&page),
                page,
            },
            state: ProcessesState::default(),
            page: None,
        })
    }

    fn on_page(&mut self, act: impl FnOnce(&mut ProcessesPage, &ProcessesModel, &ProcessesState)) {
        if let Some(page) = &mut self.page {
            act(page, &self.known, &self.state);
        }
    }

    fn place(&self, chart: &str, at: Point) -> Option<(usize, gpumem_model::units::Nanos)> {
        let page = self.page.as_ref()?;
        page.place(chart, at, self.known.page.span)
    }
}

impl FileView for ProcessesFile {
    fn kind(&self) -> &'static str {
        "gpumem"
    }

    fn mount(&mut self, root: &Element, name: &str) {
        let page = ProcessesPage::build(root, &self.known, &self.state, name);
        self.page = Some(page);
    }

    fn resize(&mut self, width: f64, scale: f64) {
        (self.state.width, self.state.scale) = (width, scale);
        self.on_page(ProcessesPage::paint);
    }

    fn theme(&mut self, theme: Theme) {
        self.state.theme = theme;
        self.on_page(ProcessesPage::restyle);
    }

    fn repaint(&mut self) {
        self.on_page(ProcessesPage::paint);
    }

    fn point(&mut self, pointed: Option<(&str, Point)>) {
        let place = pointed.and_then(|(chart, at)| self.place(chart, at));
        self.state.point(place);
        self.on_page(ProcessesPage::read);
    }

    fn click(&mut self, chart: &str, at: Point) {
        if let Some((row, _)) = self.place(chart, at) {
            self.state.choose_row(row);
            self.on_page(ProcessesPage::show);
        }
    }

    fn act(&mut self, action: &str, argument: &str) {
        if self.state.act(&self.known.page, action, argument) {
            self.on_page(ProcessesPage::show);
        }
    }

    fn input(&mut self, input: &str, value: &str) {
        if input == "search" {
            self.state.search(value);
            self.on_page(ProcessesPage::show_rows);
        }
    }

    fn press(&mut self, chart: &str, key: &str, _is_shifted: bool) -> bool {
        let on_chart = self.page.as_ref().is_some_and(|page| page.has_chart(chart));
        let meant = self.state.press(&self.known.page, on_chart, key);
        if meant {
            self.on_page(ProcessesPage::show);
        }
        meant
    }

    fn hover(&mut self, row: &str) {
        self.state.hover(row.parse().ok());
        self.on_page(ProcessesPage::read);
    }
}
