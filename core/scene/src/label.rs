//! Texts in a scene, and keeping them off each other.

use crate::{Anchor, Face, Point, Rect, Role, text};
use gpumem_model::printable::printable;

/// Below this no text is readable.
pub const SMALL: f64 = 11.0;
/// What is read first in a chart.
pub const MEDIUM: f64 = 12.0;
/// What heads a picture.
pub const LARGE: f64 = 15.0;

/// A line of text and its place.
#[derive(Debug, Clone, PartialEq)]
pub struct Label {
    /// On its baseline.
    pub(crate) at: Point,
    pub(crate) text: String,
    /// Height in logical pixels (CSS `font-size`).
    pub(crate) size: f64,
    pub(crate) face: Face,
    pub(crate) anchor: Anchor,
    pub(crate) role: Role,
}

impl Label {
    /// Small and muted, beginning at `at` on its baseline.
    pub fn new(text: impl AsRef<str>, at: Point) -> Self {
        Self {
            at,
            text: printable(text.as_ref()),
            size: SMALL,
            face: Face::Sans,
            anchor: Anchor::Start,
            role: Role::Muted,
        }
    }

    /// In the colour of that role.
    #[must_use]
    pub fn role(self, role: Role) -> Self {
        Self { role, ..self }
    }

    /// In that face.
    #[must_use]
    pub fn face(self, face: Face) -> Self {
        Self { face, ..self }
    }

    /// Height in logical pixels.
    #[must_use]
    pub fn size(self, size: f64) -> Self {
        Self { size, ..self }
    }

    /// With its place at that end of the text.
    #[must_use]
    pub fn anchor(self, anchor: Anchor) -> Self {
        Self { anchor, ..self }
    }

    /// Cut to that width; empty where there is no room for anything.
    #[must_use]
    pub fn fitted(self, room: f64) -> Self {
        Self {
            text: text::fitted(&self.text, self.face, self.size, room),
            ..self
        }
    }

    /// Cut to that width, or empty where too little would be left to know it by.
    #[must_use]
    pub fn legible_in(self, room: f64) -> Self {
        const LEAST: usize = 4;
        let whole = self.text.chars().count();
        let cut = self.fitted(room);
        match cut.text.chars().count() {
            n if n < whole && n <= LEAST => Self {
                text: String::new(),
                ..cut
            },
            _ => cut,
        }
    }

    /// Moved sideways as far as it must to lie between two edges.
    #[must_use]
    pub fn between(mut self, left: f64, right: f64) -> Self {
        let bounds = self.bounds();
        let over = (bounds.x + bounds.width - right).max(0.0);
        let under = (left - (bounds.x - over)).max(0.0);
        self.at.x += under - over;
        self
    }

    /// There was no room for anything.
    pub fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// In logical pixels.
    pub fn width(&self) -> f64 {
        text::width(&self.text, self.face, self.size)
    }

    /// The space of its line: from the highest to the lowest letter.
    pub fn bounds(&self) -> Rect {
        let width = self.width();
        let left = match self.anchor {
            Anchor::Start => self.at.x,
            Anchor::Middle => self.at.x - width / 2.0,
            Anchor::End => self.at.x - width,
        };
        Rect::new(left, self.at.y - 0.8 * self.size, width, self.size)
    }
}

/// Where texts stand already. What comes first has the place.
#[derive(Debug, Default)]
pub struct Occupied(Vec<Rect>);

impl Occupied {
    /// Between two texts of one line.
    pub const GAP: f64 = 8.0;

    /// Takes the label's place, if it is free.
    pub fn take(&mut self, label: &Label) -> bool {
        let bounds = label.bounds();
        let wide = Rect::new(
            bounds.x - Self::GAP,
            bounds.y,
            bounds.width + 2.0 * Self::GAP,
            bounds.height,
        );
        let free = !label.is_empty() && !self.0.iter().any(|taken| taken.overlaps(wide));
        if free {
            self.0.push(bounds);
        }
        free
    }
}
