//! A memory snapshot of PyTorch in the page: its levels over the trace, who held what at any moment of it,
//! and where its memory lies.

mod page;
mod state;

use gpumem_core::chart::{Point, Theme};
use gpumem_core::read::cell_files::CellFiles;
use gpumem_core::read::torch_snapshot::{Explorer, SnapshotError};
use gpumem_page_kit::dom::Dom;
use web_sys::Element;

use crate::Shown;
use page::Page;
use state::{Chart, State};

/// One snapshot in the page.
pub(crate) struct Snapshot {
    explorer: Explorer,
    state: State,
    page: Option<Page>,
}

impl Snapshot {
    /// The snapshot in `bytes`, with cells named as in the lines of `cells`.
    pub(crate) fn open(bytes: &[u8], cells: &str) -> Result<Self, SnapshotError> {
        let explorer = Explorer::open(bytes, &CellFiles::from_text(cells))?;
        Ok(Self {
            state: State::of(&explorer),
            explorer,
            page: None,
        })
    }

    fn read(&mut self) -> Dom<()> {
        self.on_page(|page, explorer, state| {
            page.read(explorer, state);
            Ok(())
        })
    }

    fn move_to(&mut self, x: f64) -> Dom<()> {
        if let Some(event) = self.state.event_at(x) {
            self.state.moment = event.round() as usize;
        }
        self.on_page(Page::follow)
    }

    fn on_page(&mut self, act: impl FnOnce(&mut Page, &Explorer, &State) -> Dom<()>) -> Dom<()> {
        match &mut self.page {
            Some(page) => act(page, &self.explorer, &self.state),
            None => Ok(()),
        }
    }
}

impl Shown for Snapshot {
    fn kind(&self) -> &'static str {
        "PyTorch memory snapshot"
    }

    fn mount(&mut self, root: &Element, name: &str) -> Dom<()> {
        let page = Page::build(root, &self.explorer, &self.state, name)?;
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
        self.state.pointed = pointed.and_then(|(chart, at)| Some((Chart::named(chart)?, at)));
        self.read()
    }

    fn grab(&mut self, chart: &str, x: f64) -> Dom<()> {
        if Chart::named(chart) == Some(Chart::Levels) {
            self.state.is_held = true;
            self.move_to(x)?;
        }
        Ok(())
    }

    fn drag(&mut self, x: f64) -> Dom<bool> {
        if self.state.is_held {
            self.move_to(x)?;
        }
        Ok(self.state.is_held)
    }

    fn release(&mut self, _is_over: bool) -> Dom<()> {
        if std::mem::take(&mut self.state.is_held) {
            self.state.root = 0;
            return self.on_page(Page::show);
        }
        Ok(())
    }

    fn click(&mut self, chart: &str, at: Point) -> Dom<()> {
        if Chart::named(chart) == Some(Chart::Icicle) {
            let node = self.page.as_ref().and_then(|it| it.node_at(at));
            if let Some(node) = node {
                self.state.root = node;
                return self.on_page(Page::paint);
            }
        }
        Ok(())
    }

    fn act(&mut self, action: &str, argument: &str) -> Dom<()> {
        if self.state.act(&self.explorer, action, argument) {
            return self.on_page(Page::show);
        }
        Ok(())
    }

    fn zoom(&mut self, chart: &str, x: f64, factor: f64) -> Dom<()> {
        if Chart::named(chart) == Some(Chart::Levels) {
            self.state.zoom(self.state.event_at(x), factor);
            return self.on_page(Page::paint);
        }
        Ok(())
    }

    fn input(&mut self, input: &str, value: &str) -> Dom<()> {
        match input {
            "search" => value.trim().clone_into(&mut self.state.search),
            "inside" => {
                self.state.is_inside = value == "true";
                self.state.root = 0;
                return self.on_page(Page::show);
            }
            _ => {}
        }
        self.on_page(Page::paint)
    }

    fn press(&mut self, chart: &str, key: &str, is_shifted: bool) -> Dom<bool> {
        let meant = self.state.press(Chart::named(chart), key, is_shifted);
        if meant {
            self.on_page(Page::show)?;
        }
        Ok(meant)
    }
}
