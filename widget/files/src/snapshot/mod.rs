//! A memory snapshot of PyTorch in the page: its levels over the trace, who held what at any moment of it,
//! and where its memory lies.

mod page;
mod state;

use gpumem_explorer::formats::SNAPSHOT_TITLE;
use gpumem_readers::cell_files::CellFiles;
use gpumem_readers::torch_snapshot::{Explorer, SnapshotError};
use gpumem_scene::{Point, Theme};
use web_sys::Element;

use crate::FileView;
use page::SnapshotPage;
use state::{SnapshotChart, SnapshotView};

/// One snapshot in the page.
pub(crate) struct Snapshot {
    explorer: Explorer,
    state: SnapshotView,
    page: Option<SnapshotPage>,
}

impl Snapshot {
    /// The snapshot in `bytes`, with cells named as in the lines of `cells`.
    pub(crate) fn open(bytes: &[u8], cells: &str) -> Result<Self, SnapshotError> {
        let explorer = Explorer::open(bytes, &CellFiles::from_text(cells))?;
        Ok(Self {
            state: SnapshotView::new(&explorer),
            explorer,
            page: None,
        })
    }

    fn move_to(&mut self, x: f64) {
        if let Some(event) = self.state.event_at(x) {
            self.state.moment = event.round() as usize;
        }
        self.on_page(SnapshotPage::follow);
    }

    fn on_page(&mut self, act: impl FnOnce(&mut SnapshotPage, &Explorer, &SnapshotView)) {
        if let Some(page) = &mut self.page {
            act(page, &self.explorer, &self.state);
        }
    }
}

impl FileView for Snapshot {
    fn kind(&self) -> &'static str {
        SNAPSHOT_TITLE
    }

    fn mount(&mut self, root: &Element, name: &str) {
        let page = SnapshotPage::build(root, &self.explorer, &self.state, name);
        self.page = Some(page);
    }

    fn resize(&mut self, width: f64, scale: f64) {
        (self.state.width, self.state.scale) = (width, scale);
        self.on_page(SnapshotPage::paint);
    }

    fn theme(&mut self, theme: Theme) {
        self.state.theme = theme;
        self.on_page(SnapshotPage::restyle);
    }

    fn repaint(&mut self) {
        self.on_page(SnapshotPage::paint);
    }

    fn point(&mut self, pointed: Option<(&str, Point)>) {
        self.state.pointed =
            pointed.and_then(|(chart, at)| Some((SnapshotChart::named(chart)?, at)));
        self.on_page(SnapshotPage::point);
    }

    fn grab(&mut self, chart: &str, x: f64) {
        if SnapshotChart::named(chart) == Some(SnapshotChart::Levels) {
            self.state.is_held = true;
            self.move_to(x);
        }
    }

    fn drag(&mut self, x: f64) -> bool {
        if self.state.is_held {
            self.move_to(x);
        }
        self.state.is_held
    }

    fn release(&mut self, _is_over: bool) {
        if std::mem::take(&mut self.state.is_held) {
            self.state.root = 0;
            self.on_page(SnapshotPage::show);
        }
    }

    fn click(&mut self, chart: &str, at: Point) {
        if SnapshotChart::named(chart) == Some(SnapshotChart::Icicle) {
            let node = self.page.as_ref().and_then(|it| it.node_at(at));
            if let Some(node) = node {
                self.state.root = node;
                self.on_page(SnapshotPage::paint);
            }
        }
    }

    fn act(&mut self, action: &str, argument: &str) {
        if self.state.act(&self.explorer, action, argument) {
            self.on_page(SnapshotPage::show);
        }
    }

    fn zoom(&mut self, chart: &str, x: f64, factor: f64) {
        if SnapshotChart::named(chart) == Some(SnapshotChart::Levels) {
            self.state.zoom(self.state.event_at(x), factor);
            self.on_page(SnapshotPage::paint);
        }
    }

    fn input(&mut self, input: &str, value: &str) {
        match input {
            "search" => value.trim().clone_into(&mut self.state.search),
            "inside" => {
                self.state.is_inside = value == "true";
                self.state.root = 0;
                return self.on_page(SnapshotPage::show);
            }
            _ => {}
        }
        self.on_page(SnapshotPage::paint);
    }

    fn press(&mut self, chart: &str, key: &str, is_shifted: bool) -> bool {
        let meant = self
            .state
            .press(SnapshotChart::named(chart), key, is_shifted);
        if meant {
            self.on_page(SnapshotPage::show);
        }
        meant
    }
}
