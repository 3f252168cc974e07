//! A scene as a PNG: a plotters backend of our own, since the one that comes
//! with plotters has neither smooth lines nor letters with their side bearings.
//!
//! Everything is an outline whose coverage of each pixel is computed exactly.

use std::collections::BTreeSet;
use std::convert::Infallible;

use ab_glyph::{Font as _, PxScale, ScaleFont as _};
use ab_glyph_rasterizer::{Point as Corner, Rasterizer, point};
use plotters_backend::text_anchor::HPos;
use plotters_backend::{
    BackendColor, BackendCoord, BackendStyle, BackendTextStyle, DrawingBackend, DrawingErrorKind,
};

mod fonts;
mod palette;

use fonts::{face_of, font};
use palette::Palette;

use crate::paint::paint;
use crate::theme::{Rgb, Theme};
use crate::{Item, Scene};

/// The scene as a PNG of indexed colours, with `scale` pixels per logical pixel.
pub fn png(scene: &Scene, theme: Theme, scale: f64) -> Vec<u8> {
    let mut bitmap = Bitmap::new(scene.device_size(scale));
    paint(scene, theme, scale, &mut bitmap).expect("memory takes every pixel");
    let palette = Palette::new(&bitmap.pixels, &flat_colours(scene, theme));
    encoded(&bitmap, &palette).expect("writing to memory does not fail")
}

/// What the scene is painted with, before smooth edges mix it.
fn flat_colours(scene: &Scene, theme: Theme) -> Vec<Rgb> {
    let roles = scene.items.iter().map(Item::role);
    let colours = roles.chain([scene.sheet]).map(|role| theme.colour(role));
    let distinct: BTreeSet<Rgb> = colours.collect();
    distinct.into_iter().collect()
}

fn encoded(bitmap: &Bitmap, palette: &Palette) -> Result<Vec<u8>, png::EncodingError> {
    let mut bytes = Vec::new();
    let mut encoder = png::Encoder::new(&mut bytes, bitmap.width, bitmap.height);
    encoder.set_color(png::ColorType::Indexed);
    encoder.set_depth(png::BitDepth::Eight);
    encoder.set_palette(palette.bytes());
    encoder.set_compression(png::Compression::High);
    // Indices are names, not amounts: there is nothing to predict.
    encoder.set_filter(png::Filter::NoFilter);
    let mut writer = encoder.write_header()?;
    writer.write_image_data(&palette.indices(&bitmap.pixels))?;
    writer.finish()?;
    Ok(bytes)
}

struct Bitmap {
    width: u32,
    height: u32,
    pixels: Vec<Rgb>,
}

type PaintResult = Result<(), DrawingErrorKind<Infallible>>;

impl Bitmap {
    fn new((width, height): (u32, u32)) -> Self {
        Self {
            width,
            height,
            pixels: vec![Rgb(0, 0, 0); width as usize * height as usize],
        }
    }

    fn blend(&mut self, x: i32, y: i32, colour: BackendColor, coverage: f64) {
        let (Ok(x), Ok(y)) = (u32::try_from(x), u32::try_from(y)) else {
            return;
        };
        if x < self.width && y < self.height {
            let below = &mut self.pixels[y as usize * self.width as usize + x as usize];
            *below = mixed(*below, colour.rgb, colour.alpha * coverage);
        }
    }

    /// Fills closed outlines; where they overlap they are one.
    fn cover(&mut self, outlines: &[Vec<Corner>], colour: BackendColor) {
        let corners = || outlines.iter().flatten();
        let left = corners()
            .map(|c| c.x)
            .fold(f32::INFINITY, f32::min)
            .max(0.0);
        let top = corners()
            .map(|c| c.y)
            .fold(f32::INFINITY, f32::min)
            .max(0.0);
        let right = corners()
            .map(|c| c.x)
            .fold(0.0, f32::max)
            .min(self.width as f32);
        let bottom = corners()
            .map(|c| c.y)
            .fold(0.0, f32::max)
            .min(self.height as f32);
        if right <= left || bottom <= top {
            return;
        }
        let (x, y) = (pixel(left), pixel(top));
        let (width, height) = (pixel(right) - x + 2, pixel(bottom) - y + 2);
        let mut raster = Rasterizer::new(
            width.unsigned_abs() as usize,
            height.unsigned_abs() as usize,
        );
        for outline in outlines {
            let next = outline.iter().cycle().skip(1);
            for (from, to) in outline.iter().zip(next) {
                let moved = |c: &Corner| point(c.x - x as f32, c.y - y as f32);
                raster.draw_line(moved(from), moved(to));
            }
        }
        raster.for_each_pixel_2d(|dx, dy, coverage| {
            self.blend(
                x + dx.cast_signed(),
                y + dy.cast_signed(),
                colour,
                f64::from(coverage.min(1.0)),
            );
        });
    }
}

fn mixed(below: Rgb, above: (u8, u8, u8), share: f64) -> Rgb {
    let mix = |below: u8, above: u8| {
        let value = f64::from(below) + (f64::from(above) - f64::from(below)) * share;
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "between two bytes"
        )]
        let byte = value.round() as u8;
        byte
    };
    Rgb(
        mix(below.0, above.0),
        mix(below.1, above.1),
        mix(below.2, above.2),
    )
}

#[expect(clippy::cast_possible_truncation, reason = "clamped to the bitmap")]
fn pixel(length: f32) -> i32 {
    length.floor() as i32
}

fn corner((x, y): BackendCoord) -> Corner {
    point(x as f32, y as f32)
}

impl DrawingBackend for Bitmap {
    type ErrorType = Infallible;

    fn get_size(&self) -> (u32, u32) {
        (self.width, self.height)
    }

    fn ensure_prepared(&mut self) -> PaintResult {
        Ok(())
    }

    fn present(&mut self) -> PaintResult {
        Ok(())
    }

    fn draw_pixel(&mut self, (x, y): BackendCoord, colour: BackendColor) -> PaintResult {
        self.blend(x, y, colour, 1.0);
        Ok(())
    }

    fn draw_rect<S: BackendStyle>(
        &mut self,
        (left, top): BackendCoord,
        (right, bottom): BackendCoord,
        style: &S,
        _fill: bool,
    ) -> PaintResult {
        let (width, height) = (self.width.cast_signed(), self.height.cast_signed());
        for y in top.max(0)..bottom.min(height) {
            for x in left.max(0)..right.min(width) {
                self.blend(x, y, style.color(), 1.0);
            }
        }
        Ok(())
    }

    fn draw_path<S: BackendStyle, I: IntoIterator<Item = BackendCoord>>(
        &mut self,
        path: I,
        style: &S,
    ) -> PaintResult {
        let points: Vec<Corner> = path.into_iter().map(corner).collect();
        let half = style.stroke_width() as f32 / 2.0;
        let mut outlines: Vec<_> = points
            .windows(2)
            .filter(|pair| pair[0] != pair[1])
            .map(|pair| stroke(pair[0], pair[1], half))
            .collect();
        let joints = points.get(1..points.len().saturating_sub(1)).unwrap_or(&[]);
        outlines.extend(joints.iter().map(|joint| disc(*joint, half)));
        self.cover(&outlines, style.color());
        Ok(())
    }

    fn fill_polygon<S: BackendStyle, I: IntoIterator<Item = BackendCoord>>(
        &mut self,
        outline: I,
        style: &S,
    ) -> PaintResult {
        let outline = outline.into_iter().map(corner).collect();
        self.cover(&[outline], style.color());
        Ok(())
    }

    fn draw_text<S: BackendTextStyle>(
        &mut self,
        text: &str,
        style: &S,
        baseline: BackendCoord,
    ) -> PaintResult {
        let font = font(face_of(style));
        #[expect(clippy::cast_possible_truncation, reason = "a font's size is small")]
        let em = style.size() as f32;
        // ab_glyph scales by the height of a line, CSS by the em.
        let units = font.units_per_em().unwrap_or(1000.0);
        let scaled = font.as_scaled(PxScale::from(em * font.height_unscaled() / units));
        let width: f32 = text
            .chars()
            .map(|c| scaled.h_advance(scaled.glyph_id(c)))
            .sum();
        let mut pen = corner(baseline);
        pen.x -= match style.anchor().h_pos {
            HPos::Left => 0.0,
            HPos::Center => width / 2.0,
            HPos::Right => width,
        };
        for letter in text.chars() {
            let mut glyph = scaled.scaled_glyph(letter);
            // On whole pixels a letter is the same wherever it stands: smaller when packed.
            glyph.position = point(pen.x.round(), pen.y);
            pen.x += scaled.h_advance(glyph.id);
            if let Some(outline) = font.outline_glyph(glyph) {
                let (left, top) = (
                    pixel(outline.px_bounds().min.x),
                    pixel(outline.px_bounds().min.y),
                );
                outline.draw(|x, y, coverage| {
                    let (x, y) = (left + x.cast_signed(), top + y.cast_signed());
                    self.blend(x, y, style.color(), f64::from(coverage.min(1.0)));
                });
            }
        }
        Ok(())
    }
}

/// The rectangle around a line.
fn stroke(from: Corner, to: Corner, half: f32) -> Vec<Corner> {
    let (dx, dy) = (to.x - from.x, to.y - from.y);
    let length = dx.hypot(dy);
    let (nx, ny) = (-dy / length * half, dx / length * half);
    vec![
        point(from.x + nx, from.y + ny),
        point(from.x - nx, from.y - ny),
        point(to.x - nx, to.y - ny),
        point(to.x + nx, to.y + ny),
    ]
}

/// A circle, turning the same way as [`stroke`] so that the two add up.
fn disc(centre: Corner, radius: f32) -> Vec<Corner> {
    const N_CORNERS: u16 = 24;
    (0..N_CORNERS)
        .map(|idx| {
            let angle = std::f32::consts::TAU * f32::from(idx) / f32::from(N_CORNERS);
            point(
                centre.x + radius * angle.cos(),
                centre.y + radius * angle.sin(),
            )
        })
        .collect()
}

#[cfg(test)]
mod tests;
