//! A plotters backend for a canvas, in device pixels.
//!
//! plotters-canvas draws, but it thinks in CSS pixels, moves every straight line
//! by half a pixel and sets text in generic families. Here a line is moved only
//! where its width is odd, lines join round, and text has the page's own faces
//! and stands on its baseline, as `gpumem_core::chart::paint` asks. Rectangles and
//! dots, which a long session has by the thousand, are filled without handing over
//! a colour that is set already: that takes longer than filling them.

use std::f64::consts::TAU;

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
#[derive(Debug, Clone)]
pub(crate) struct Faces {
    /// For the interface.
    pub(crate) sans: String,
    /// For code.
    pub(crate) mono: String,
}

/// A canvas whose coordinates are device pixels.
pub(crate) struct Canvas<'a> {
    backend: CanvasBackend,
    context: CanvasRenderingContext2d,
    faces: &'a Faces,
    /// The colour and the font that are set, where they are known.
    fill: Option<((u8, u8, u8), u64)>,
    font: String,
}

impl<'a> Canvas<'a> {
    /// An empty canvas of that many device pixels; `None` where the page gives no
    /// drawing context.
    pub(crate) fn of(
        element: &HtmlCanvasElement,
        size: (u32, u32),
        faces: &'a Faces,
    ) -> Option<Self> {
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
            fill: None,
            font: String::new(),
        })
    }

    fn set_fill(&mut self, colour: BackendColor) {
        let key = (colour.rgb, colour.alpha.to_bits());
        if self.fill != Some(key) {
            let (r, g, b) = colour.rgb;
            self.context
                .set_fill_style_str(&format!("rgba({r},{g},{b},{})", colour.alpha));
            self.fill = Some(key);
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
        let font = format!("{weight}{}px {face}", style.size());
        if self.font != font {
            self.context.set_font(&font);
            self.font = font;
        }
    }
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
        self.backend.present()
    }

    fn draw_pixel(&mut self, point: BackendCoord, colour: BackendColor) -> Drawn {
        self.fill = None;
        self.backend.draw_pixel(point, colour)
    }

    fn draw_line<S: BackendStyle>(
        &mut self,
        from: BackendCoord,
        to: BackendCoord,
        style: &S,
    ) -> Drawn {
        self.draw_path([from, to], style)
    }

    fn draw_rect<S: BackendStyle>(
        &mut self,
        upper_left: BackendCoord,
        lower_right: BackendCoord,
        style: &S,
        fill: bool,
    ) -> Drawn {
        if !fill {
            return self.backend.draw_rect(upper_left, lower_right, style, fill);
        }
        self.set_fill(style.color());
        let (left, top) = (f64::from(upper_left.0), f64::from(upper_left.1));
        let (right, bottom) = (f64::from(lower_right.0), f64::from(lower_right.1));
        self.context
            .fill_rect(left, top, right - left, bottom - top);
        Ok(())
    }

    fn draw_path<S: BackendStyle, I: IntoIterator<Item = BackendCoord>>(
        &mut self,
        path: I,
        style: &S,
    ) -> Drawn {
        // A line of odd width covers whole pixels only when its middle is between two.
        let shift = f64::from(style.stroke_width() % 2) / 2.0;
        let _ = self.context.translate(shift, shift);
        let drawn = self.backend.draw_path(path, style);
        let _ = self.context.translate(-shift, -shift);
        drawn
    }

    fn draw_circle<S: BackendStyle>(
        &mut self,
        centre: BackendCoord,
        radius: u32,
        style: &S,
        fill: bool,
    ) -> Drawn {
        if !fill {
            return self.backend.draw_circle(centre, radius, style, fill);
        }
        self.set_fill(style.color());
        self.context.begin_path();
        // Fails only for a negative radius.
        let (x, y) = (f64::from(centre.0), f64::from(centre.1));
        let _ = self.context.arc(x, y, f64::from(radius), 0.0, TAU);
        self.context.fill();
        Ok(())
    }

    fn fill_polygon<S: BackendStyle, I: IntoIterator<Item = BackendCoord>>(
        &mut self,
        corners: I,
        style: &S,
    ) -> Drawn {
        self.fill = None;
        self.backend.fill_polygon(corners, style)
    }

    fn draw_text<S: BackendTextStyle>(&mut self, text: &str, style: &S, at: BackendCoord) -> Drawn {
        self.set_font(style);
        self.set_fill(style.color());
        self.context.set_text_align(match style.anchor().h_pos {
            HPos::Left => "left",
            HPos::Center => "center",
            HPos::Right => "right",
        });
        self.context.set_text_baseline("alphabetic");
        // Fails only for coordinates that are not numbers.
        let _ = self
            .context
            .fill_text(text, f64::from(at.0), f64::from(at.1));
        Ok(())
    }
}
