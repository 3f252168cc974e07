//! A scene as an SVG document.

use plotters::prelude::SVGBackend;
use plotters_backend::text_anchor::{Pos, VPos};
use plotters_backend::{
    BackendColor, BackendCoord, BackendStyle, BackendTextStyle, DrawingBackend, DrawingErrorKind,
    FontFamily, FontStyle,
};

use super::paint::paint;
use super::scene::Scene;
use super::text;
use super::theme::Theme;

/// plotters' coordinates are whole numbers: so many of them make a logical pixel.
const SCALE: f64 = 10.0;
/// plotters-svg divides the size of a font by this.
const SIZE_DIVISOR: f64 = 1.24;
/// plotters-svg moves a text that hangs from its top down by so many of its sizes.
const TOP_TO_BASELINE: f64 = 0.76;

/// The scene as an SVG document, described for those who do not see it.
pub fn svg(scene: &Scene, theme: Theme) -> String {
    let mut document = String::new();
    let size = scene.device_size(SCALE);
    let mut backend = Baseline(SVGBackend::with_string(&mut document, size));
    paint(scene, theme, SCALE, &mut backend).expect("writing to a string does not fail");
    drop(backend);
    let (_, content) = document
        .split_once('>')
        .expect("the document begins with its svg tag");
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{}\" height=\"{}\" \
         viewBox=\"0 0 {} {}\" role=\"img\">\n<title>{}</title>{content}",
        scene.width,
        scene.height,
        size.0,
        size.1,
        escaped(&text::printable(&scene.description)),
    )
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

/// Places letters as [`paint`] asks for them.
struct Baseline<'a>(SVGBackend<'a>);

type Outcome = Result<(), DrawingErrorKind<std::io::Error>>;

impl DrawingBackend for Baseline<'_> {
    type ErrorType = std::io::Error;

    fn get_size(&self) -> (u32, u32) {
        self.0.get_size()
    }

    fn ensure_prepared(&mut self) -> Outcome {
        self.0.ensure_prepared()
    }

    fn present(&mut self) -> Outcome {
        self.0.present()
    }

    fn draw_pixel(&mut self, point: BackendCoord, colour: BackendColor) -> Outcome {
        self.0.draw_pixel(point, colour)
    }

    fn draw_rect<S: BackendStyle>(
        &mut self,
        top_left: BackendCoord,
        bottom_right: BackendCoord,
        style: &S,
        fill: bool,
    ) -> Outcome {
        self.0.draw_rect(top_left, bottom_right, style, fill)
    }

    fn draw_path<S: BackendStyle, I: IntoIterator<Item = BackendCoord>>(
        &mut self,
        path: I,
        style: &S,
    ) -> Outcome {
        self.0.draw_path(path, style)
    }

    fn draw_circle<S: BackendStyle>(
        &mut self,
        center: BackendCoord,
        radius: u32,
        style: &S,
        fill: bool,
    ) -> Outcome {
        self.0.draw_circle(center, radius, style, fill)
    }

    fn fill_polygon<S: BackendStyle, I: IntoIterator<Item = BackendCoord>>(
        &mut self,
        outline: I,
        style: &S,
    ) -> Outcome {
        self.0.fill_polygon(outline, style)
    }

    fn draw_text<S: BackendTextStyle>(
        &mut self,
        text: &str,
        style: &S,
        (x, baseline): BackendCoord,
    ) -> Outcome {
        #[expect(clippy::cast_possible_truncation, reason = "a font's size is small")]
        let rise = (style.size() * TOP_TO_BASELINE).round() as i32;
        self.0
            .draw_text(text, &Hanging(style), (x, baseline - rise))
    }
}

/// The same letters, hanging from their top, of the size that comes out right.
struct Hanging<'a, S>(&'a S);

impl<S: BackendTextStyle> BackendTextStyle for Hanging<'_, S> {
    type FontError = S::FontError;

    fn color(&self) -> BackendColor {
        self.0.color()
    }

    fn size(&self) -> f64 {
        self.0.size() * SIZE_DIVISOR
    }

    fn style(&self) -> FontStyle {
        self.0.style()
    }

    fn anchor(&self) -> Pos {
        Pos::new(self.0.anchor().h_pos, VPos::Top)
    }

    fn family(&self) -> FontFamily<'_> {
        self.0.family()
    }

    fn layout_box(&self, text: &str) -> Result<(BackendCoord, BackendCoord), S::FontError> {
        self.0.layout_box(text)
    }

    fn draw<E, DrawFunc: FnMut(i32, i32, BackendColor) -> Result<(), E>>(
        &self,
        text: &str,
        pos: BackendCoord,
        draw: DrawFunc,
    ) -> Result<Result<(), E>, S::FontError> {
        self.0.draw(text, pos, draw)
    }
}
