//! A memory snapshot of PyTorch in the page: its levels over the trace, who held what at any moment of it,
//! and where its memory lies.
//!
//! The page's script hands it bytes, sizes and events, as it does for the report. [`state`] decides what an
//! event means, [`page`] which elements change.
#![forbid(unsafe_code)]

mod page;
mod state;

use gpumem_core::chart::{Point, Theme};
use gpumem_core::read::cell_files::CellFiles;
use gpumem_core::read::torch_snapshot::Explorer;
use gpumem_page_kit::dom::Dom;
use wasm_bindgen::prelude::{JsError, JsValue, wasm_bindgen};
use web_sys::Element;

use page::Page;
use state::{Chart, State};

/// Smaller than the standard library's.
#[cfg(target_arch = "wasm32")]
#[global_allocator]
static ALLOCATOR: rlsf::SmallGlobalTlsf = rlsf::SmallGlobalTlsf::new();

/// One snapshot in the page.
#[wasm_bindgen]
pub struct View {
    explorer: Explorer,
    state: State,
    page: Option<Page>,
}

#[wasm_bindgen]
impl View {
    /// A view of the snapshot in `bytes`, with cells named as in the lines of `cells`; throws where they are not
    /// one.
    #[wasm_bindgen(constructor)]
    pub fn new(bytes: &[u8], cells: &str) -> Result<View, JsError> {
        #[cfg(feature = "development")]
        console_error_panic_hook::set_once();
        let explorer = Explorer::open(bytes, &CellFiles::from_text(cells))?;
        Ok(Self {
            state: State::of(&explorer),
            explorer,
            page: None,
        })
    }

    /// Builds the page of a file of that name under `root`; its charts are painted when it is told their size.
    pub fn mount(&mut self, root: &Element, name: &str) -> Result<(), JsValue> {
        let page = Page::build(root, &self.explorer, &self.state, name)?;
        self.page = Some(page);
        Ok(())
    }

    /// The charts are so wide, in logical pixels, and a logical pixel has so many device pixels.
    pub fn resize(&mut self, width: f64, scale: f64) -> Result<(), JsValue> {
        (self.state.width, self.state.scale) = (width, scale);
        self.on_page(Page::paint)
    }

    /// The page around it has that theme.
    pub fn theme(&mut self, name: &str) -> Result<(), JsValue> {
        self.state.theme = Theme::from_name(name).unwrap_or_default();
        self.on_page(Page::restyle)
    }

    /// Paints every chart again.
    pub fn repaint(&mut self) -> Result<(), JsValue> {
        self.on_page(Page::paint)
    }

    /// The pointer is there.
    pub fn point(&mut self, chart: &str, x: f64, y: f64) -> Result<(), JsValue> {
        self.state.pointed = Chart::named(chart).map(|chart| (chart, Point::new(x, y)));
        self.read()
    }

    /// The pointer is nowhere.
    pub fn leave(&mut self) -> Result<(), JsValue> {
        self.state.pointed = None;
        self.read()
    }

    /// A chart is held at that place.
    pub fn grab(&mut self, chart: &str, x: f64) -> Result<(), JsValue> {
        if Chart::named(chart) == Some(Chart::Levels) {
            self.state.is_held = true;
            self.move_to(x)?;
        }
        Ok(())
    }

    /// The held chart is drawn to that place. True if that was more than a click.
    pub fn drag(&mut self, x: f64) -> Result<bool, JsValue> {
        if self.state.is_held {
            self.move_to(x)?;
        }
        Ok(self.state.is_held)
    }

    /// The chart is let go.
    pub fn release(&mut self, _is_over: bool) -> Result<(), JsValue> {
        if std::mem::take(&mut self.state.is_held) {
            self.state.root = 0;
            return self.on_page(Page::show);
        }
        Ok(())
    }

    /// A chart was clicked there.
    pub fn click(&mut self, chart: &str, x: f64, y: f64) -> Result<(), JsValue> {
        if Chart::named(chart) == Some(Chart::Icicle) {
            let node = self
                .page
                .as_ref()
                .and_then(|it| it.node_at(Point::new(x, y)));
            if let Some(node) = node {
                self.state.root = node;
                return self.on_page(Page::paint);
            }
        }
        Ok(())
    }

    /// A button was pressed.
    pub fn act(&mut self, action: &str, argument: &str) -> Result<(), JsValue> {
        if self.state.act(&self.explorer, action, argument) {
            return self.on_page(Page::show);
        }
        Ok(())
    }

    /// So many times as many events are in view, around a place.
    pub fn zoom(&mut self, chart: &str, x: f64, factor: f64, _moved: f64) -> Result<(), JsValue> {
        if Chart::named(chart) == Some(Chart::Levels) {
            self.state.zoom(self.state.event_at(x), factor);
            return self.on_page(Page::paint);
        }
        Ok(())
    }

    /// A field has another value.
    pub fn input(&mut self, input: &str, _argument: &str, value: &str) -> Result<(), JsValue> {
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

    /// A key was pressed. True if it meant something.
    pub fn press(&mut self, chart: &str, key: &str, is_shifted: bool) -> Result<bool, JsValue> {
        let meant = self.state.press(Chart::named(chart), key, is_shifted);
        if meant {
            self.on_page(Page::show)?;
        }
        Ok(meant)
    }

    fn read(&mut self) -> Result<(), JsValue> {
        self.on_page(|page, explorer, state| {
            page.read(explorer, state);
            Ok(())
        })
    }

    fn move_to(&mut self, x: f64) -> Result<(), JsValue> {
        if let Some(event) = self.state.event_at(x) {
            self.state.moment = event.round() as usize;
        }
        self.on_page(Page::follow)
    }

    fn on_page(
        &mut self,
        act: impl FnOnce(&mut Page, &Explorer, &State) -> Dom<()>,
    ) -> Result<(), JsValue> {
        match &mut self.page {
            Some(page) => Ok(act(page, &self.explorer, &self.state)?),
            None => Ok(()),
        }
    }
}
