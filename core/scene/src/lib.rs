//! Positioned primitives in logical pixels. Colours are roles; a theme gives them values when the scene
//! is painted. What is drawn, and why, is not known here.
//!
//! ```
//! use gpumem_scene::label::Label;
//! use gpumem_scene::{Point, Rect, Role, Theme, plot, svg};
//!
//! let mut scene = plot::sheet(200.0, 40.0, Role::Panel);
//! scene.fill(Rect::new(10.0, 10.0, 120.0, 8.0), Role::Kept, 2.0);
//! scene.text(Label::new("+420 MiB", Point::new(10.0, 34.0)));
//! assert!(svg(&scene, Theme::Light).contains("+420 MiB"));
//! ```
#![forbid(unsafe_code)]

pub mod axis;
#[cfg(feature = "bitmap")]
mod bitmap;
mod category;
#[cfg(any(test, feature = "testing"))]
pub mod draw_log;
pub mod hatch;
pub mod label;
mod paint;
pub mod plot;
mod svg;
pub mod text;
mod theme;

#[cfg(feature = "bitmap")]
pub use bitmap::png;
pub use category::Category;
pub use paint::{PaintError, paint};
pub use svg::svg;
pub use theme::{Rgb, Theme};

use crate::label::Label;
use gpumem_model::recording::RunIdx;

/// A point in logical pixels, from the top left.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Point {
    /// To the right.
    pub x: f64,
    /// Down.
    pub y: f64,
}

impl Point {
    /// The point `x` to the right and `y` down.
    pub const fn new(x: f64, y: f64) -> Self {
        Self { x, y }
    }

    /// The point at that share of the way to `other`.
    pub fn towards(self, other: Self, share: f64) -> Self {
        Self {
            x: self.x + (other.x - self.x) * share,
            y: self.y + (other.y - self.y) * share,
        }
    }
}

/// A rectangle in logical pixels.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rect {
    /// Left edge.
    pub x: f64,
    /// Upper edge.
    pub y: f64,
    /// Width, not negative.
    pub width: f64,
    /// Height, not negative.
    pub height: f64,
}

impl Rect {
    /// The rectangle with its upper left corner at `x` and `y`.
    pub const fn new(x: f64, y: f64, width: f64, height: f64) -> Self {
        Self {
            x,
            y,
            width,
            height,
        }
    }

    /// The square around a point, as far in each direction.
    pub const fn around(at: Point, reach: f64) -> Self {
        Self::new(at.x - reach, at.y - reach, 2.0 * reach, 2.0 * reach)
    }

    /// The upper left corner.
    pub(crate) const fn top_left(self) -> Point {
        Point::new(self.x, self.y)
    }

    /// The lower right corner.
    pub fn bottom_right(self) -> Point {
        Point::new(self.x + self.width, self.y + self.height)
    }

    /// The rectangle elsewhere.
    #[must_use]
    pub(crate) fn moved(self, x: f64, y: f64) -> Self {
        Self::new(self.x + x, self.y + y, self.width, self.height)
    }

    /// The rectangles have more than an edge in common.
    pub fn overlaps(self, other: Self) -> bool {
        self.x < other.x + other.width
            && other.x < self.x + self.width
            && self.y < other.y + other.height
            && other.y < self.y + self.height
    }

    /// The rectangle without a border of that width.
    #[must_use]
    pub fn inset(self, border: f64) -> Self {
        Self::new(
            self.x + border,
            self.y + border,
            (self.width - 2.0 * border).max(0.0),
            (self.height - 2.0 * border).max(0.0),
        )
    }

    /// Whether the point lies in the rectangle or on its edge.
    pub fn contains(&self, point: Point) -> bool {
        (self.x..=self.x + self.width).contains(&point.x)
            && (self.y..=self.y + self.height).contains(&point.y)
    }
}

/// What a colour is for. [`Theme`] has the values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Role {
    /// Behind everything.
    #[default]
    Background,
    /// Text.
    Text,
    /// Text of less weight.
    Muted,
    /// Axis lines.
    Line,
    /// Grid lines.
    Grid,
    /// What a cell kept.
    Kept,
    /// Below a line of what was kept.
    KeptFill,
    /// What all cells kept.
    KeptArea,
    /// What a run gave back by its end.
    Back,
    /// The upper edge of that.
    BackCap,
    /// Free in the allocator, above what was kept.
    CacheArea,
    /// What leaks.
    Leak,
    /// Below a line of what leaks.
    LeakFill,
    /// Words about a leak.
    LeakText,
    /// A run that is watched.
    Watch,
    /// A run that freed everything.
    Ok,
    /// The device's use.
    Device,
    /// This process's use.
    Process,
    /// Under the pointer.
    Hover,
    /// Where a run was.
    Span,
    /// Where a run of a leak was.
    LeakSpan,
    /// Behind what a fix adds.
    OkSpan,
    /// A panel in front of the picture.
    Panel,
    /// What a part of the device is for.
    Category(Category),
    /// Words on a part of the device.
    Word,
    /// Nothing: what is behind the picture shines through.
    Clear,
}

/// Where a text is relative to its point.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Anchor {
    /// It begins there.
    Start,
    /// Its middle is there.
    Middle,
    /// It ends there.
    End,
}

/// A typeface.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Face {
    /// The interface's own.
    Sans,
    /// The interface's own, bold.
    Bold,
    /// For code.
    Mono,
}

/// A primitive: an entry of [`Scene::items`].
#[derive(Debug, Clone, PartialEq)]
pub enum Item {
    /// A filled rectangle; `radius` rounds its corners.
    Fill {
        /// Where.
        rect: Rect,
        /// What colour.
        role: Role,
        /// Of its corners, in logical pixels.
        radius: f64,
    },
    /// A line through points.
    Line {
        /// At least two.
        points: Vec<Point>,
        /// What colour.
        role: Role,
        /// In logical pixels.
        width: f64,
        /// Lengths of dash and gap; `None` for a full line.
        dash: Option<(f64, f64)>,
    },
    /// A line of text.
    Text(Label),
}

impl Item {
    /// Its colour.
    pub fn role(&self) -> Role {
        match self {
            Self::Fill { role, .. } | Self::Line { role, .. } => *role,
            Self::Text(label) => label.role,
        }
    }

    /// The item elsewhere.
    fn moved(mut self, x: f64, y: f64) -> Self {
        match &mut self {
            Self::Fill { rect, .. } => *rect = rect.moved(x, y),
            Self::Line { points, .. } => {
                for point in points {
                    *point = Point::new(point.x + x, point.y + y);
                }
            }
            Self::Text(Label { at, .. }) => *at = Point::new(at.x + x, at.y + y),
        }
        self
    }
}

/// What lies under a point. [`Scene::hit`] finds it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target {
    /// A run.
    Run(RunIdx),
    /// A part of the device, by its position in the composition.
    Part(usize),
    /// What holds memory, by its position among the fields of the open map.
    Field(usize),
    /// A look at who holds memory while a run went on, by its position.
    Look(usize),
}

/// A region that responds to the pointer: an entry of [`Scene::hits`].
#[derive(Debug, Clone, PartialEq)]
pub struct Hit {
    /// Where.
    pub rect: Rect,
    /// What it is.
    pub target: Target,
}

/// A picture that is decided but not painted.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Scene {
    /// Logical pixels.
    pub width: f64,
    /// Logical pixels.
    pub height: f64,
    /// The colour that the picture is painted on.
    pub sheet: Role,
    /// In painting order.
    pub items: Vec<Item>,
    /// What responds to the pointer, the topmost last.
    pub hits: Vec<Hit>,
    /// The picture in words, for screen readers.
    pub description: String,
}

impl Scene {
    /// What lies under a point, the topmost first.
    pub fn hit(&self, point: Point) -> Option<Target> {
        self.hits
            .iter()
            .rev()
            .find(|hit| hit.rect.contains(point))
            .map(|hit| hit.target)
    }

    /// The whole picture.
    pub fn area(&self) -> Rect {
        Rect::new(0.0, 0.0, self.width, self.height)
    }

    /// Width and height in device pixels, at least 1 × 1.
    pub fn device_size(&self, scale: f64) -> (u32, u32) {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "saturates far outside any screen"
        )]
        let pixels = |length: f64| (length * scale).round().max(1.0) as u32;
        (pixels(self.width), pixels(self.height))
    }

    /// Draws a rectangle with rounded corners.
    pub fn fill(&mut self, rect: Rect, role: Role, radius: f64) {
        self.items.push(Item::Fill { rect, role, radius });
    }

    /// A full line from one point to another.
    pub fn rule(&mut self, from: Point, to: Point, role: Role, width: f64) {
        self.items.push(Item::Line {
            points: vec![from, to],
            role,
            width,
            dash: None,
        });
    }

    /// A full line from one place to another at that height.
    pub fn horizontal(&mut self, y: f64, (from, to): (f64, f64), role: Role, width: f64) {
        self.rule(Point::new(from, y), Point::new(to, y), role, width);
    }

    /// A full line from one height to another at that place.
    pub fn vertical(&mut self, x: f64, (from, to): (f64, f64), role: Role, width: f64) {
        self.rule(Point::new(x, from), Point::new(x, to), role, width);
    }

    /// A filled circle.
    pub fn dot(&mut self, at: Point, radius: f64, role: Role) {
        self.fill(Rect::around(at, radius), role, radius);
    }

    /// What lies in the rectangle, above everything so far.
    pub fn respond(&mut self, rect: Rect, target: Target) {
        self.hits.push(Hit { rect, target });
    }

    /// A line through points; nothing where there are fewer than two.
    pub fn line(&mut self, points: Vec<Point>, role: Role, width: f64, dash: Option<(f64, f64)>) {
        if points.len() > 1 {
            self.items.push(Item::Line {
                points,
                role,
                width,
                dash,
            });
        }
    }

    /// Draws a text, unless there was no room for any of it.
    pub fn text(&mut self, label: Label) {
        if !label.is_empty() {
            self.items.push(Item::Text(label));
        }
    }

    /// Lays another scene onto this one.
    pub fn place(&mut self, other: Self, x: f64, y: f64) {
        self.items
            .extend(other.items.into_iter().map(|item| item.moved(x, y)));
        self.hits.extend(other.hits.into_iter().map(|hit| Hit {
            rect: hit.rect.moved(x, y),
            ..hit
        }));
    }
}
/// Device pixels per logical pixel. The default is that of a dense screen.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Density(pub f64);

impl Density {
    /// The width of a device pixel in logical pixels. Points nearer than that draw the same picture.
    pub fn pixel(self) -> f64 {
        1.0 / self.0.max(1.0)
    }
}

impl Default for Density {
    fn default() -> Self {
        Self(2.0)
    }
}
