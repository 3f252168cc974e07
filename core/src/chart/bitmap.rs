//! A scene as a PNG: a plotters backend of our own, since the one that comes
//! with plotters has neither smooth lines nor letters with their side bearings.
//!
//! Everything is an outline whose coverage of each pixel is computed exactly.

use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::sync::LazyLock;

use ab_glyph::{Font as _, FontRef, PxScale, ScaleFont as _};
use ab_glyph_rasterizer::{Point as Corner, Rasterizer, point};
use plotters_backend::text_anchor::HPos;
use plotters_backend::{
    BackendColor, BackendCoord, BackendStyle, BackendTextStyle, DrawingBackend, DrawingErrorKind,
    FontFamily, FontStyle,
};

use super::paint::paint;
use super::scene::{Item, Scene};
use super::theme::{Rgb, Theme};

/// Colours of a PNG: enough for smooth letters, and small in a saved notebook.
const N_COLOURS: usize = 64;

/// The scene as a PNG of indexed colours, `scale` pixels per logical pixel.
pub fn png(scene: &Scene, theme: Theme, scale: f64) -> Vec<u8> {
    let mut bitmap = Bitmap::new(scene.device_size(scale));
    paint(scene, theme, scale, &mut bitmap).expect("memory takes every pixel");
    let palette = Palette::of(&bitmap.pixels, &flat_colours(scene, theme));
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

/// What the indices of a picture stand for.
struct Palette(Vec<Rgb>);

impl Palette {
    /// Nearer colours than this, in steps of a channel, are not told apart.
    const STEP: i32 = 12;

    /// The `flat` colours, and the most frequent of those between them.
    fn of(pixels: &[Rgb], flat: &[Rgb]) -> Self {
        let mut by_count: Vec<(Rgb, usize)> = counts(pixels).into_iter().collect();
        by_count.sort_by_key(|(colour, n)| (std::cmp::Reverse(*n), *colour));
        let mut chosen = flat.to_vec();
        for (colour, _) in by_count {
            let told_apart = |other: &Rgb| distance(colour, *other) > Self::STEP * Self::STEP;
            if chosen.len() < N_COLOURS && chosen.iter().all(told_apart) {
                chosen.push(colour);
            }
        }
        Self(chosen)
    }

    fn bytes(&self) -> Vec<u8> {
        self.0.iter().flat_map(|c| [c.0, c.1, c.2]).collect()
    }

    fn indices(&self, pixels: &[Rgb]) -> Vec<u8> {
        let nearest: BTreeMap<Rgb, u8> = counts(pixels)
            .into_keys()
            .map(|colour| {
                let entries = self.0.iter().zip(0_u8..);
                let best = entries.min_by_key(|(entry, _)| distance(colour, **entry));
                (colour, best.map_or(0, |(_, idx)| idx))
            })
            .collect();
        runs(pixels)
            .flat_map(|run| std::iter::repeat_n(nearest[&run[0]], run.len()))
            .collect()
    }
}

fn counts(pixels: &[Rgb]) -> BTreeMap<Rgb, usize> {
    let mut counts = BTreeMap::new();
    for run in runs(pixels) {
        *counts.entry(run[0]).or_default() += run.len();
    }
    counts
}

/// Neighbours of one colour: most of a chart is flat.
fn runs(pixels: &[Rgb]) -> impl Iterator<Item = &[Rgb]> {
    pixels.chunk_by(|a, b| a == b)
}

fn distance(a: Rgb, b: Rgb) -> i32 {
    let square = |a: u8, b: u8| (i32::from(a) - i32::from(b)).pow(2);
    square(a.0, b.0) + square(a.1, b.1) + square(a.2, b.2)
}

struct Bitmap {
    width: u32,
    height: u32,
    pixels: Vec<Rgb>,
}

type Outcome = Result<(), DrawingErrorKind<Infallible>>;

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

    fn ensure_prepared(&mut self) -> Outcome {
        Ok(())
    }

    fn present(&mut self) -> Outcome {
        Ok(())
    }

    fn draw_pixel(&mut self, (x, y): BackendCoord, colour: BackendColor) -> Outcome {
        self.blend(x, y, colour, 1.0);
        Ok(())
    }

    fn draw_rect<S: BackendStyle>(
        &mut self,
        (left, top): BackendCoord,
        (right, bottom): BackendCoord,
        style: &S,
        _fill: bool,
    ) -> Outcome {
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
    ) -> Outcome {
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

    fn draw_circle<S: BackendStyle>(
        &mut self,
        centre: BackendCoord,
        radius: u32,
        style: &S,
        _fill: bool,
    ) -> Outcome {
        self.cover(&[disc(corner(centre), radius as f32)], style.color());
        Ok(())
    }

    fn fill_polygon<S: BackendStyle, I: IntoIterator<Item = BackendCoord>>(
        &mut self,
        outline: I,
        style: &S,
    ) -> Outcome {
        let outline = outline.into_iter().map(corner).collect();
        self.cover(&[outline], style.color());
        Ok(())
    }

    fn draw_text<S: BackendTextStyle>(
        &mut self,
        text: &str,
        style: &S,
        baseline: BackendCoord,
    ) -> Outcome {
        let font = Typeface::of(style).font();
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

#[derive(Debug, Clone, Copy)]
enum Typeface {
    Sans,
    Bold,
    Mono,
}

impl Typeface {
    fn of(style: &impl BackendTextStyle) -> Self {
        match (style.family(), style.style()) {
            (FontFamily::Monospace, _) => Self::Mono,
            (_, FontStyle::Bold) => Self::Bold,
            _ => Self::Sans,
        }
    }

    fn font(self) -> &'static FontRef<'static> {
        static FONTS: LazyLock<[FontRef<'static>; 3]> = LazyLock::new(|| {
            let files: [&'static [u8]; 3] = [
                include_bytes!("fonts/sans.ttf"),
                include_bytes!("fonts/bold.ttf"),
                include_bytes!("fonts/mono.ttf"),
            ];
            files.map(|file| FontRef::try_from_slice(file).expect("a bundled font is a font"))
        });
        &FONTS[self as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::super::draw_log::view;
    use super::super::scene::{Anchor, Face, Point, Rect, Role};
    use super::super::{growth, report, text};
    use super::*;
    use crate::testing::{leak, run, session};

    fn painted(item: Item) -> Bitmap {
        let scene = Scene {
            width: 60.0,
            height: 40.0,
            items: vec![item],
            ..Scene::default()
        };
        let mut bitmap = Bitmap::new(scene.device_size(1.0));
        paint(&scene, Theme::Light, 1.0, &mut bitmap).expect("memory takes every pixel");
        bitmap
    }

    /// Left, top, right and bottom of what is not background, in pixels.
    #[track_caller]
    fn check(item: Item, expected: [usize; 4]) {
        let bitmap = painted(item);
        let background = Theme::Light.colour(Role::Background);
        let is_drawn = |idx: &usize| bitmap.pixels[*idx] != background;
        let drawn = || (0..bitmap.pixels.len()).filter(is_drawn);
        let (xs, ys) = (
            || drawn().map(|idx| idx % 60),
            || drawn().map(|idx| idx / 60),
        );
        let found = [
            xs().min().expect("something is drawn"),
            ys().min().expect("something is drawn"),
            xs().max().expect("something is drawn") + 1,
            ys().max().expect("something is drawn") + 1,
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn shapes_cover_their_pixels() {
        let role = Role::Text;
        let rect = Rect::new(10.0, 12.0, 20.0, 8.0);
        check(
            Item::Fill {
                rect,
                role,
                radius: 0.0,
            },
            [10, 12, 30, 20],
        );
        check(
            Item::Fill {
                rect,
                role,
                radius: 3.0,
            },
            [10, 12, 30, 20],
        );
        let at = Point::new(30.0, 20.0);
        check(
            Item::Dot {
                at,
                radius: 4.0,
                role,
            },
            [26, 16, 34, 24],
        );
        let line = |points: &[(f64, f64)]| Item::Line {
            points: points.iter().map(|&(x, y)| Point::new(x, y)).collect(),
            role,
            width: 1.0,
            dash: None,
        };
        check(line(&[(5.0, 10.5), (50.0, 10.5)]), [5, 10, 50, 11]);
        check(line(&[(20.5, 5.0), (20.5, 30.0)]), [20, 5, 21, 30]);
        check(
            line(&[(10.0, 10.0), (20.0, 20.0), (30.0, 10.0)]),
            [9, 9, 31, 21],
        );
    }

    #[test]
    fn letters_stand_on_their_baseline() {
        // 7.29 px of capital letter at 10 px, in DejaVu.
        let letter = Item::Text {
            at: Point::new(20.0, 30.0),
            text: "H".to_owned(),
            size: 10.0,
            face: Face::Sans,
            anchor: Anchor::Start,
            role: Role::Text,
        };
        check(letter, [20, 22, 27, 30]);
    }

    #[test]
    fn the_table_of_widths_is_that_of_the_fonts() {
        for (face, typeface) in [
            (Face::Sans, Typeface::Sans),
            (Face::Bold, Typeface::Bold),
            (Face::Mono, Typeface::Mono),
        ] {
            let font = typeface.font();
            let units = font.units_per_em().expect("it has an em");
            for letter in (' '..='~').chain(['…', '▲', '◆', '○', '·', '−', '±', '×', '■'])
            {
                let glyph = font.glyph_id(letter);
                assert_ne!(glyph.0, 0, "{letter:?} is not in {typeface:?}");
                let advance = f64::from(font.h_advance_unscaled(glyph) / units) * 1000.0;
                let measured = text::width(&letter.to_string(), face, 1000.0);
                let is_exact = letter.is_ascii() || letter == '…';
                let over = measured - advance;
                assert!(
                    over >= -110.0 && (over <= 0.5 || !is_exact),
                    "{letter:?}: {over}"
                );
            }
        }
    }

    #[test]
    fn flat_colours_are_exact_and_few() {
        let (recording, analysis) = session(&[("a()", &[run(100).peak(200), run(-50)])]);
        let scene = growth(&recording, &analysis, &view(400.0));
        let mut bitmap = Bitmap::new(scene.device_size(2.0));
        paint(&scene, Theme::Light, 2.0, &mut bitmap).expect("memory takes every pixel");
        let flat = flat_colours(&scene, Theme::Light);
        let palette = Palette::of(&bitmap.pixels, &flat);
        assert!(palette.0.len() <= N_COLOURS);
        for role in [Role::Panel, Role::Kept, Role::Ok, Role::Ghost] {
            assert!(palette.0.contains(&Theme::Light.colour(role)), "{role:?}");
        }
    }

    #[test]
    fn the_picture_of_a_session_fits_a_notebook() {
        let plays: Vec<_> = (0..7).map(|_| run(420).peak(950).sampled(40)).collect();
        let (recording, mut analysis) = session(&[
            ("model = build()", &[run(1200).peak(1250).sampled(30)]),
            ("losses.append(model(batch).sum())", &plays),
            ("validate(model, loader)", &plays),
            ("cache = warm(model)", &[run(600), run(120), run(0), run(0)]),
        ]);
        analysis.findings = (0..4).map(|cell| leak(&recording, cell, 420)).collect();
        let bytes = png(&report(&recording, &analysis, 880.0), Theme::Light, 2.0);
        let base64 = bytes.len().div_ceil(3) * 4;
        assert!(base64 <= 90_000, "{base64} bytes");
        let picture = png::Decoder::new(std::io::Cursor::new(&bytes));
        let reader = picture.read_info().expect("it is a PNG");
        assert_eq!(reader.info().width, 1760);
    }
}
