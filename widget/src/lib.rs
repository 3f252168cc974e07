//! The report in the page: a view that owns a recording, the rules and what the
//! reader looks at.
//!
//! The page's script hands it bytes, sizes and events and catches what it
//! throws; it holds no rule of the domain. [`state`] decides what an event means,
//! [`model`] what follows from it, [`page`] which elements change, [`canvas`] how
//! a scene becomes pixels.
#![forbid(unsafe_code)]

mod canvas;
mod cards;
mod dom;
#[cfg(test)]
mod fixture;
mod model;
mod page;
mod readout;
mod state;
mod threshold;

use gpumem_core::chart::{Point, Theme};
use gpumem_core::format;
use gpumem_core::recording::DeviceIdx;
use wasm_bindgen::prelude::{JsError, JsValue, wasm_bindgen};
use web_sys::Element;

use model::Model;
use page::Page;
use state::{Chart, Event, State};

/// One report in the page.
#[wasm_bindgen]
pub struct View {
    model: Model,
    page: Option<Page>,
}

#[wasm_bindgen]
impl View {
    /// A view of the recording in `bytes`; throws where they are not one.
    #[wasm_bindgen(constructor)]
    pub fn new(bytes: &[u8]) -> Result<View, JsError> {
        #[cfg(feature = "development")]
        console_error_panic_hook::set_once();
        Ok(Self {
            model: Model::new(format::decode(bytes)?),
            page: None,
        })
    }

    /// Builds the report under `root`.
    pub fn mount(&mut self, root: &Element) -> Result<(), JsValue> {
        self.page = Some(Page::build(root, &self.model)?);
        Ok(())
    }

    /// Takes in frames that were recorded since; throws where they do not fit.
    pub fn apply(&mut self, frames: &[u8]) -> Result<(), JsValue> {
        let read = self.model.apply(frames);
        self.on_page(Page::show)?;
        read.map_err(|error| JsError::from(error).into())
    }

    /// Gives the charts their width in CSS pixels, at `scale` device pixels each.
    pub fn resize(&mut self, width: f64, scale: f64) -> Result<(), JsValue> {
        self.model.scale = scale;
        self.model.handle(Event::Resized(width));
        self.on_page(Page::restyle)
    }

    /// Light or dark colours for the charts.
    pub fn theme(&mut self, dark: bool) -> Result<(), JsValue> {
        self.model.theme = if dark { Theme::Dark } else { Theme::Light };
        self.on_page(Page::restyle)
    }

    /// The pointer moved over a chart to a point in CSS pixels from its top left.
    pub fn point(&mut self, chart: &str, x: f64, y: f64) -> Result<(), JsValue> {
        let at = Chart::from_name(chart)
            .and_then(|chart| Some((chart, self.page.as_ref()?.run_at(chart, Point { x, y })?)));
        self.handle(Event::Pointed(at))
    }

    /// The pointer left the charts.
    pub fn leave(&mut self) -> Result<(), JsValue> {
        self.handle(Event::Pointed(None))
    }

    /// A chart was clicked at a point in CSS pixels from its top left.
    pub fn click(&mut self, chart: &str, x: f64, y: f64) -> Result<(), JsValue> {
        let run = Chart::from_name(chart)
            .and_then(|chart| self.page.as_ref()?.run_at(chart, Point { x, y }));
        self.handle(Event::Clicked(run))
    }

    /// A key was pressed on a chart; says whether it meant anything.
    pub fn press(&mut self, chart: &str, key: &str) -> Result<bool, JsValue> {
        let (Some(chart), Some(page)) = (Chart::from_name(chart), &self.page) else {
            return Ok(false);
        };
        let Some(before) = self.model.press(chart, &page.runs_along(chart), key) else {
            return Ok(false);
        };
        self.update(&before)?;
        if let Some(page) = &self.page {
            page.say_run(&self.model);
        }
        Ok(true)
    }

    /// A button with this `data-action` and `data-argument` was pressed.
    pub fn act(&mut self, action: &str, argument: &str) -> Result<(), JsValue> {
        match action {
            "runs" => self.handle(Event::Toggled(argument.to_owned())),
            "device" => match argument.parse() {
                Ok(idx) => self.handle(Event::Switched(DeviceIdx(idx))),
                Err(_) => Ok(()),
            },
            "default" => {
                self.model.set_threshold(self.model.default_threshold());
                self.on_page(Page::judge)
            }
            _ => Ok(()),
        }
    }

    /// The slider of the smallest growth that counts was moved to a position.
    pub fn set_threshold(&mut self, position: u32) -> Result<(), JsValue> {
        self.model.set_threshold(threshold::size_at(position));
        self.on_page(Page::judge)
    }

    /// The report as JSON under the rules as they are set.
    pub fn report_json(&self) -> String {
        self.model.report_json()
    }

    fn handle(&mut self, event: Event) -> Result<(), JsValue> {
        let before = self.model.handle(event);
        self.update(&before)
    }

    fn update(&mut self, before: &State) -> Result<(), JsValue> {
        match &mut self.page {
            Some(page) => page.update(before, &self.model),
            None => Ok(()),
        }
    }

    fn on_page(
        &mut self,
        show: impl FnOnce(&mut Page, &Model) -> Result<(), JsValue>,
    ) -> Result<(), JsValue> {
        match &mut self.page {
            Some(page) => show(page, &self.model),
            None => Ok(()),
        }
    }
}
