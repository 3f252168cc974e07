//! Files of other programs in the page: memory snapshots of PyTorch, and traces of its profiler; and
//! processes side by side.
//!
//! The page's script hands it bytes, sizes and events, as it does for the report. In each folder, `state`
//! decides what an event means, and `page` which elements change.
#![forbid(unsafe_code)]

mod controls;
mod processes;
mod snapshot;
mod table;
mod trace;

use gpumem_explorer::formats::{FileKind, Format, PageKind};
use gpumem_model::units::Units;
use gpumem_readers::torch_snapshot::SnapshotFault;
use gpumem_scene::{Point, Theme};
use wasm_bindgen::prelude::{JsError, wasm_bindgen};
use web_sys::Element;

/// How sizes are shown.
const UNITS: Units = Units::Binary;

/// The page of a file.
trait FileView {
    /// The name of this kind of file.
    fn kind(&self) -> &'static str;

    /// Builds the page of a file of that name under `root`.
    fn mount(&mut self, root: &Element, name: &str);

    /// Sets the width of the charts in logical pixels, and the device pixels of a logical one.
    fn resize(&mut self, width: f64, scale: f64);

    /// Sets the theme of the page around it.
    fn theme(&mut self, theme: Theme);

    /// Paints every chart again.
    fn repaint(&mut self);

    /// Handles the pointer's position; `None` if it left.
    fn point(&mut self, pointed: Option<(&str, Point)>);

    /// Starts dragging a chart at that place.
    fn grab(&mut self, _chart: &str, _x: f64) {}

    /// Drags the chart to that place. True if this was more than a click.
    fn drag(&mut self, _x: f64) -> bool {
        false
    }

    /// Ends the drag; `is_over` if it counts.
    fn release(&mut self, _is_over: bool) {}

    /// Handles a click on a chart.
    fn click(&mut self, chart: &str, at: Point);

    /// Handles a button.
    fn act(&mut self, action: &str, argument: &str);

    /// Multiplies the part in view, around a place.
    fn zoom(&mut self, _chart: &str, _x: f64, _factor: f64) {}

    /// Handles a new value of an input field.
    fn input(&mut self, input: &str, value: &str);

    /// Handles a key. True if it has a meaning.
    fn press(&mut self, chart: &str, key: &str, is_shifted: bool) -> bool;

    /// Marks the row under the pointer, by the argument of its button; empty for none.
    fn hover(&mut self, _row: &str) {}
}

/// One file in the page.
#[wasm_bindgen]
pub struct View(Box<dyn FileView>);

#[wasm_bindgen]
impl View {
    /// A view of the file in `bytes`, with cells named as in the lines of `cells`; throws for files that have
    /// no page.
    #[wasm_bindgen(constructor)]
    pub fn new(bytes: &[u8], cells: &str) -> Result<View, JsError> {
        #[cfg(feature = "development")]
        console_error_panic_hook::set_once();
        let kind = FileKind::recognise(bytes);
        Ok(Self(match kind.page() {
            Some(PageKind::Snapshot) => Box::new(snapshot::Snapshot::open(bytes, cells)?),
            Some(PageKind::Trace) => Box::new(trace::TraceFile::open(bytes, cells)?),
            Some(PageKind::Processes) => Box::new(processes::ProcessesFile::open(bytes)?),
            None if kind.format.is_some_and(Format::is_read) => {
                return Err(JsError::new(&elsewhere(kind)));
            }
            None => open_unknown(kind, bytes, cells)?,
        }))
    }

    /// The name of this kind of file.
    pub fn kind(&self) -> String {
        self.0.kind().to_owned()
    }

    /// Builds the page of a file of that name under `root`; its charts are painted once `resize` sets
    /// their size.
    pub fn mount(&mut self, root: &Element, name: &str) {
        self.0.mount(root, name);
    }

    /// Sets the width of the charts in logical pixels, and the device pixels of a logical one.
    pub fn resize(&mut self, width: f64, scale: f64) {
        self.0.resize(width, scale);
    }

    /// Sets the theme of the page around it.
    pub fn theme(&mut self, name: &str) {
        self.0.theme(Theme::from_name(name).unwrap_or_default());
    }

    /// Paints every chart again.
    pub fn repaint(&mut self) {
        self.0.repaint();
    }

    /// Handles the pointer's position.
    pub fn point(&mut self, chart: &str, x: f64, y: f64) {
        self.0.point(Some((chart, Point::new(x, y))));
    }

    /// Handles the pointer leaving.
    pub fn leave(&mut self) {
        self.0.point(None);
    }

    /// Starts dragging a chart at that place.
    pub fn grab(&mut self, chart: &str, x: f64) {
        self.0.grab(chart, x);
    }

    /// Drags the chart to that place. True if this was more than a click.
    pub fn drag(&mut self, x: f64) -> bool {
        self.0.drag(x)
    }

    /// Ends the drag.
    pub fn release(&mut self, is_over: bool) {
        self.0.release(is_over);
    }

    /// Handles a click on a chart.
    pub fn click(&mut self, chart: &str, x: f64, y: f64) {
        self.0.click(chart, Point::new(x, y));
    }

    /// Handles a button.
    pub fn act(&mut self, action: &str, argument: &str) {
        self.0.act(action, argument);
    }

    /// Multiplies the part in view, around a place.
    pub fn zoom(&mut self, chart: &str, x: f64, factor: f64, _moved: f64) {
        self.0.zoom(chart, x, factor);
    }

    /// Handles a new value of an input field.
    pub fn input(&mut self, input: &str, _argument: &str, value: &str) {
        self.0.input(input, value);
    }

    /// Handles a key. True if it has a meaning.
    pub fn press(&mut self, chart: &str, key: &str, is_shifted: bool) -> bool {
        self.0.press(chart, key, is_shifted)
    }

    /// A row of a table is pointed at, by the argument of its button; empty for none.
    pub fn hover(&mut self, row: &str) {
        self.0.hover(row);
    }
}

/// What to do with a file that gpumem reads, but that has no page here.
fn elsewhere(kind: FileKind) -> String {
    let name = kind.name();
    format!("{name} has no page here: `jupyter gpumem report FILE` shows it")
}

/// The page of a file of unknown kind: it may be a snapshot whose beginning is damaged.
fn open_unknown(kind: FileKind, bytes: &[u8], cells: &str) -> Result<Box<dyn FileView>, JsError> {
    match snapshot::Snapshot::open(bytes, cells) {
        Ok(snapshot) => Ok(Box::new(snapshot)),
        Err(error) if matches!(error.what, SnapshotFault::Pickle(_)) => {
            let (offset, name) = (error.offset, kind.name());
            Err(JsError::new(&format!(
                "byte {offset}: not a memory snapshot of PyTorch: it looks like {name}"
            )))
        }
        Err(error) => Err(error.into()),
    }
}
