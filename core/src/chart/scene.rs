//! Positioned primitives in logical pixels. Colours are roles; a theme gives
//! them values when the scene is painted.

use crate::recording::RunIdx;

/// A point in logical pixels, from the top left.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Point {
    /// To the right.
    pub x: f64,
    /// Down.
    pub y: f64,
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
    /// The point lies in the rectangle.
    pub fn contains(&self, point: Point) -> bool {
        (self.x..=self.x + self.width).contains(&point.x)
            && (self.y..=self.y + self.height).contains(&point.y)
    }
}

/// What a colour is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Role {
    /// Behind everything.
    Background,
    /// Text.
    Text,
    /// Text of less weight.
    Muted,
    /// Axis lines.
    Line,
    /// Grid lines.
    Grid,
    /// A run that kept memory.
    Kept,
    /// A run of a leak.
    Leak,
    /// A run that is watched.
    Watch,
    /// A run that gave all back.
    Ok,
    /// The ghost of a peak.
    Ghost,
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
    /// A panel in front of the picture.
    Panel,
}

/// Where a text stands, seen from its point.
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

/// A primitive.
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
    /// A filled circle.
    Dot {
        /// Its middle.
        at: Point,
        /// In logical pixels.
        radius: f64,
        /// What colour.
        role: Role,
    },
    /// A line of text; `at` is its baseline.
    Text {
        /// Where the baseline is.
        at: Point,
        /// What it says.
        text: String,
        /// Height in logical pixels (CSS `font-size`).
        size: f64,
        /// Which typeface.
        face: Face,
        /// Where it stands.
        anchor: Anchor,
        /// What colour.
        role: Role,
    },
}

/// What lies under a point.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Target {
    /// A run.
    Run(RunIdx),
}

/// A region that answers to the pointer.
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
    /// In painting order.
    pub items: Vec<Item>,
    /// What answers to the pointer, the topmost last.
    pub hits: Vec<Hit>,
    /// What it shows, for those who do not see it.
    pub description: String,
}

impl Scene {
    /// What lies under a point.
    pub fn hit(&self, point: Point) -> Option<Target> {
        self.hits
            .iter()
            .rev()
            .find(|hit| hit.rect.contains(point))
            .map(|hit| hit.target)
    }
}
