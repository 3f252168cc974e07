//! Texts in a scene, and keeping them off each other.

use super::scene::{Anchor, Face, Item, Point, Rect, Role};
use super::text;
use crate::printable::printable;

/// Below this no text is readable.
pub(super) const SMALL: f64 = 11.0;
pub(super) const MEDIUM: f64 = 12.0;
pub(super) const LARGE: f64 = 15.0;

/// A text that is being placed.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Label {
    at: Point,
    text: String,
    size: f64,
    face: Face,
    anchor: Anchor,
    role: Role,
}

impl Label {
    /// Small and muted, beginning at `at` on its baseline.
    pub(super) fn new(text: impl AsRef<str>, at: Point) -> Self {
        Self {
            at,
            text: printable(text.as_ref()),
            size: SMALL,
            face: Face::Sans,
            anchor: Anchor::Start,
            role: Role::Muted,
        }
    }

    pub(super) fn role(self, role: Role) -> Self {
        Self { role, ..self }
    }

    pub(super) fn face(self, face: Face) -> Self {
        Self { face, ..self }
    }

    pub(super) fn size(self, size: f64) -> Self {
        Self { size, ..self }
    }

    pub(super) fn anchor(self, anchor: Anchor) -> Self {
        Self { anchor, ..self }
    }

    /// Cut to that width; empty where there is no room for anything.
    pub(super) fn fitted(self, room: f64) -> Self {
        Self {
            text: text::fitted(&self.text, self.face, self.size, room),
            ..self
        }
    }

    /// Cut to that width, or empty where too little would be left to know it by.
    pub(super) fn legible_in(self, room: f64) -> Self {
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
    pub(super) fn between(mut self, left: f64, right: f64) -> Self {
        let bounds = self.bounds();
        let over = (bounds.x + bounds.width - right).max(0.0);
        let under = (left - (bounds.x - over)).max(0.0);
        self.at.x += under - over;
        self
    }

    pub(super) fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    pub(super) fn width(&self) -> f64 {
        text::width(&self.text, self.face, self.size)
    }

    /// The space of its line: from the highest to the lowest letter.
    pub(super) fn bounds(&self) -> Rect {
        let width = self.width();
        let left = match self.anchor {
            Anchor::Start => self.at.x,
            Anchor::Middle => self.at.x - width / 2.0,
            Anchor::End => self.at.x - width,
        };
        Rect::new(left, self.at.y - 0.8 * self.size, width, self.size)
    }
}

impl From<Label> for Item {
    fn from(label: Label) -> Self {
        Self::Text {
            at: label.at,
            text: label.text,
            size: label.size,
            face: label.face,
            anchor: label.anchor,
            role: label.role,
        }
    }
}

/// Where texts stand already. What comes first has the place.
#[derive(Debug, Default)]
pub(super) struct Occupied(Vec<Rect>);

impl Occupied {
    /// Between two texts of one line.
    pub(super) const GAP: f64 = 8.0;

    /// Takes the label's place, if it is free.
    pub(super) fn take(&mut self, label: &Label) -> bool {
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
