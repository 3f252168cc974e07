//! A scene as an SVG document: a plotters backend that writes SVG elements.

use std::convert::Infallible;
use std::fmt::{Display, Write as _};

use plotters_backend::text_anchor::HPos;
use plotters_backend::{
    BackendColor, BackendCoord, BackendStyle, BackendTextStyle, DrawingBackend, DrawingErrorKind,
    FontFamily, FontStyle,
};

use crate::Scene;
use crate::paint::paint;
use crate::theme::Theme;
use gpumem_model::printable::printable;
use gpumem_model::units::trimmed;

/// Backends have integer coordinates: this many of them make a logical pixel.
const SCALE: f64 = 10.0;

/// The scene as an SVG document, with its description as the title for screen readers.
pub fn svg(scene: &Scene, theme: Theme) -> String {
    let (width, height) = scene.device_size(SCALE);
    let mut document = Document {
        size: (width, height),
        text: format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{}\" height=\"{}\" \
             viewBox=\"0 0 {width} {height}\" role=\"img\">\n<title>{}</title>\n",
            trimmed(scene.width, 2),
            trimmed(scene.height, 2),
            escaped(&printable(&scene.description)),
        ),
    };
    paint(scene, theme, SCALE, &mut document).expect("writing to a string does not fail");
    document.text + "</svg>\n"
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

/// The document as far as it is written.
struct Document {
    size: (u32, u32),
    text: String,
}

type Svg = Result<(), DrawingErrorKind<Infallible>>;

impl Document {
    fn put(&mut self, element: impl Display) {
        writeln!(self.text, "{element}").expect("a string takes everything");
    }
}

fn hex(colour: BackendColor) -> String {
    let (red, green, blue) = colour.rgb;
    format!("#{red:02x}{green:02x}{blue:02x}")
}

fn points(path: impl IntoIterator<Item = BackendCoord>) -> String {
    let points = path.into_iter().map(|(x, y)| format!("{x},{y}"));
    points.collect::<Vec<_>>().join(" ")
}

impl DrawingBackend for Document {
    type ErrorType = Infallible;

    fn get_size(&self) -> (u32, u32) {
        self.size
    }

    fn ensure_prepared(&mut self) -> Svg {
        Ok(())
    }

    fn present(&mut self) -> Svg {
        Ok(())
    }

    fn draw_pixel(&mut self, at: BackendCoord, colour: BackendColor) -> Svg {
        let (x, y) = at;
        let fill = hex(colour);
        self.put(format_args!(
            "<rect x=\"{x}\" y=\"{y}\" width=\"1\" height=\"1\" fill=\"{fill}\"/>"
        ));
        Ok(())
    }

    fn draw_rect<S: BackendStyle>(
        &mut self,
        (left, top): BackendCoord,
        (right, bottom): BackendCoord,
        style: &S,
        _fill: bool,
    ) -> Svg {
        let (width, height, fill) = (right - left, bottom - top, hex(style.color()));
        self.put(format_args!(
            "<rect x=\"{left}\" y=\"{top}\" width=\"{width}\" height=\"{height}\" fill=\"{fill}\"/>"
        ));
        Ok(())
    }

    fn draw_path<S: BackendStyle, I: IntoIterator<Item = BackendCoord>>(
        &mut self,
        path: I,
        style: &S,
    ) -> Svg {
        let (points, stroke, width) = (points(path), hex(style.color()), style.stroke_width());
        self.put(format_args!(
            "<polyline points=\"{points}\" fill=\"none\" stroke=\"{stroke}\" \
             stroke-width=\"{width}\" stroke-linejoin=\"round\"/>"
        ));
        Ok(())
    }

    fn fill_polygon<S: BackendStyle, I: IntoIterator<Item = BackendCoord>>(
        &mut self,
        outline: I,
        style: &S,
    ) -> Svg {
        let (points, fill) = (points(outline), hex(style.color()));
        self.put(format_args!(
            "<polygon points=\"{points}\" fill=\"{fill}\"/>"
        ));
        Ok(())
    }

    fn draw_text<S: BackendTextStyle>(
        &mut self,
        text: &str,
        style: &S,
        (x, baseline): BackendCoord,
    ) -> Svg {
        let anchor = match style.anchor().h_pos {
            HPos::Left => "start",
            HPos::Center => "middle",
            HPos::Right => "end",
        };
        let family = match style.family() {
            FontFamily::Monospace => "ui-monospace,DejaVu Sans Mono,monospace",
            _ => "system-ui,DejaVu Sans,sans-serif",
        };
        let weight = match style.style() {
            FontStyle::Bold => " font-weight=\"600\"",
            _ => "",
        };
        let (size, fill, text) = (trimmed(style.size(), 2), hex(style.color()), escaped(text));
        self.put(format_args!(
            "<text x=\"{x}\" y=\"{baseline}\" font-family=\"{family}\" font-size=\"{size}\"{weight} \
             text-anchor=\"{anchor}\" fill=\"{fill}\">{text}</text>"
        ));
        Ok(())
    }
}
