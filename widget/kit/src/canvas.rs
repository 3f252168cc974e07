//! A plotters backend for a canvas, in device pixels.
//!
//! plotters-canvas has the canvas. What it draws is in CSS pixels, every straight line moved
//! by half a pixel and text in generic families, and it formats a float for every colour;
//! here a line is moved only where its width is odd, lines join round, and text has the
//! page's own faces and stands on its baseline, as `gpumem_scene::paint` asks. Lines,
//! dots and bars that come in a row in one colour are one path: of a long session's
//! thousands, each drawn by itself, setting colours and painting would take longer than
//! everything else together.

use plotters_backend::text_anchor::HPos;
use plotters_backend::{
    BackendColor, BackendCoord, BackendStyle, BackendTextStyle, DrawingBackend, DrawingErrorKind,
    FontFamily, FontStyle,
};
use plotters_canvas::CanvasBackend;
use wasm_bindgen::JsCast;
use web_sys::{CanvasRenderingContext2d, HtmlCanvasElement};

type Drawn = Result<(), DrawingErrorKind<<CanvasBackend as DrawingBackend>::ErrorType>>;

/// The page's typefaces, as CSS `font-family` lists.
#[derive(Debug, Clone, PartialEq)]
pub struct Faces {
    /// For the interface.
    pub sans: String,
    /// For code.
    pub mono: String,
}

/// How a path is painted once it is complete.
#[derive(Debug, Clone, Copy, PartialEq)]
enum PathInk {
    Fill((u8, u8, u8)),
    Stroke((u8, u8, u8), u32),
}

/// A canvas whose coordinates are device pixels.
pub struct Canvas<'a> {
    backend: CanvasBackend,
    context: CanvasRenderingContext2d,
    faces: &'a Faces,
    /// The ink of the pending path.
    ink: Option<PathInk>,
    style: Style,
}

/// What is set in the context: setting it again takes longer than painting a word.
#[derive(Default)]
struct Style {
    fill: Option<(u8, u8, u8)>,
    stroke: Option<(u8, u8, u8)>,
    font: String,
    align: &'static str,
}

impl<'a> Canvas<'a> {
    /// An empty canvas of that many device pixels; `None` where the page gives no
    /// drawing context.
    pub fn new(element: &HtmlCanvasElement, size: (u32, u32), faces: &'a Faces) -> Option<Self> {
        let context: CanvasRenderingContext2d = element.get_context("2d").ok()??.dyn_into().ok()?;
        if (element.width(), element.height()) == size {
            context.clear_rect(0.0, 0.0, f64::from(size.0), f64::from(size.1));
        } else {
            element.set_width(size.0);
            element.set_height(size.1);
        }
        context.set_line_join("round");
        Some(Self {
            backend: CanvasBackend::with_canvas_object(element.clone())?,
            context,
            faces,
            ink: None,
            style: Style::default(),
        })
    }

    /// What follows is painted so, together with what is waiting to be painted so.
    fn take_up(&mut self, ink: PathInk) {
        if self.ink == Some(ink) {
            return;
        }
        self.paint();
        self.context.begin_path();
        self.ink = Some(ink);
    }

    /// Paints the path that is waiting.
    fn paint(&mut self) {
        match self.ink.take() {
            None => {}
            Some(PathInk::Fill(colour)) => {
                self.set_fill(colour);
                self.context.fill();
            }
            Some(PathInk::Stroke(colour, width)) => {
                self.set_stroke(colour);
                self.context.set_line_width(f64::from(width));
                self.context.stroke();
            }
        }
    }

    fn set_font<S: BackendTextStyle>(&mut self, style: &S) {
        let weight = match style.style() {
            FontStyle::Bold => "600 ",
            FontStyle::Italic | FontStyle::Oblique => "italic ",
            FontStyle::Normal => "",
        };
        let family = style.family();
        let face = match family {
            FontFamily::Monospace => &self.faces.mono,
            FontFamily::SansSerif => &self.faces.sans,
            FontFamily::Serif | FontFamily::Name(_) => family.as_str(),
        };
        let font = format!("{weight}{:.2}px {face}", style.size());
        if self.style.font != font {
            self.context.set_font(&font);
            self.style.font = font;
        }
    }

    fn set_fill(&mut self, colour: (u8, u8, u8)) {
        if self.style.fill.replace(colour) != Some(colour) {
            self.context.set_fill_style_str(&css(colour));
        }
    }

    fn set_stroke(&mut self, colour: (u8, u8, u8)) {
        if self.style.stroke.replace(colour) != Some(colour) {
            self.context.set_stroke_style_str(&css(colour));
        }
    }

    fn set_align(&mut self, align: &'static str) {
        if std::mem::replace(&mut self.style.align, align) != align {
            self.context.set_text_align(align);
        }
    }

    /// Goes along the points, moved by so much to the right and down.
    fn trace(&self, path: impl IntoIterator<Item = BackendCoord>, shift: f64) {
        for (idx, (x, y)) in path.into_iter().enumerate() {
            let (x, y) = (f64::from(x) + shift, f64::from(y) + shift);
            if idx == 0 {
                self.context.move_to(x, y);
            } else {
                self.context.line_to(x, y);
            }
        }
    }
}

fn css((red, green, blue): (u8, u8, u8)) -> String {
    format!("#{red:02x}{green:02x}{blue:02x}")
}

impl DrawingBackend for Canvas<'_> {
    type ErrorType = <CanvasBackend as DrawingBackend>::ErrorType;

    fn get_size(&self) -> (u32, u32) {
        self.backend.get_size()
    }

    fn ensure_prepared(&mut self) -> Drawn {
        self.backend.ensure_prepared()
    }

    fn present(&mut self) -> Drawn {
        self.paint();
        self.backend.present()
    }

    fn draw_pixel(&mut self, point: BackendCoord, colour: BackendColor) -> Drawn {
        self.take_up(PathInk::Fill(colour.rgb));
        self.context
            .rect(f64::from(point.0), f64::from(point.1), 1.0, 1.0);
        Ok(())
    }

    fn draw_rect<S: BackendStyle>(
        &mut self,
        upper_left: BackendCoord,
        lower_right: BackendCoord,
        style: &S,
        _fill: bool,
    ) -> Drawn {
        self.take_up(PathInk::Fill(style.color().rgb));
        let (left, top) = (f64::from(upper_left.0), f64::from(upper_left.1));
        let (right, bottom) = (f64::from(lower_right.0), f64::from(lower_right.1));
        self.context.rect(left, top, right - left, bottom - top);
        Ok(())
    }

    fn draw_path<S: BackendStyle, I: IntoIterator<Item = BackendCoord>>(
        &mut self,
        path: I,
        style: &S,
    ) -> Drawn {
        let width = style.stroke_width();
        self.take_up(PathInk::Stroke(style.color().rgb, width));
        // A line of odd width covers whole pixels only when its middle is between two.
        self.trace(path, f64::from(width % 2) / 2.0);
        Ok(())
    }

    fn fill_polygon<S: BackendStyle, I: IntoIterator<Item = BackendCoord>>(
        &mut self,
        corners: I,
        style: &S,
    ) -> Drawn {
        // By itself: where two areas of one path overlap, their directions decide what is filled.
        self.paint();
        self.take_up(PathInk::Fill(style.color().rgb));
        self.trace(corners, 0.0);
        self.paint();
        Ok(())
    }

    fn draw_text<S: BackendTextStyle>(&mut self, text: &str, style: &S, at: BackendCoord) -> Drawn {
        self.paint();
        self.set_font(style);
        self.set_fill(style.color().rgb);
        self.set_align(match style.anchor().h_pos {
            HPos::Left => "left",
            HPos::Center => "center",
            HPos::Right => "right",
        });
        // Fails only for coordinates that are not numbers.
        let _ = self
            .context
            .fill_text(text, f64::from(at.0), f64::from(at.1));
        Ok(())
    }
}
