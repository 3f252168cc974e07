//! What a pointer that is held down and moved means.

use crate::state::{Chart, TimeRange};
use crate::zoom::ZoomWindow;

/// A drag is longer than the tremor of a click.
const TREMOR: f64 = 4.0;
/// How near the end of the brush is taken for the end itself.
const REACH: f64 = 8.0;

/// A pointer that is held down, by where it was put down.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Gesture {
    /// On which chart.
    pub(crate) chart: Chart,
    from: f64,
    to: f64,
    grip: Grip,
    is_drag: bool,
}

/// What a brush that is moved shows; `None` is all of the time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Brushed(pub(crate) Option<TimeRange>);

/// What the pointer holds.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Grip {
    /// Nothing: it marks a range.
    Range,
    /// The brush of the minimap, which stood between these places.
    Brush(f64, f64),
    /// One end of the brush; the other one stands here.
    End(f64),
}

impl Gesture {
    /// The pointer was put down on a chart that can be dragged on.
    pub(crate) fn new(chart: Chart, x: f64, window: &ZoomWindow<'_>) -> Option<Self> {
        let grip = match chart {
            Chart::Row | Chart::Run | Chart::Cells | Chart::Now | Chart::Holders => return None,
            Chart::Timeline => Grip::Range,
            Chart::Minimap => {
                let (left, right) = window.places();
                match x {
                    _ if window.span.is_none() => Grip::Range,
                    x if (x - left).abs() <= REACH => Grip::End(right),
                    x if (x - right).abs() <= REACH => Grip::End(left),
                    x if (left..right).contains(&x) => Grip::Brush(left, right),
                    _ => Grip::Range,
                }
            }
        };
        Some(Self {
            chart,
            from: x,
            to: x,
            grip,
            is_drag: false,
        })
    }

    /// The pointer moved.
    pub(crate) fn move_to(&mut self, x: f64) {
        self.to = x;
        self.is_drag |= (x - self.from).abs() > TREMOR;
    }

    /// It is more than a click.
    pub(crate) const fn is_drag(&self) -> bool {
        self.is_drag
    }

    /// The range that is being marked, from left to right.
    pub(crate) fn range(&self) -> Option<(f64, f64)> {
        let is_marking = self.is_drag && self.grip == Grip::Range;
        is_marking.then(|| (self.from.min(self.to), self.from.max(self.to)))
    }

    /// What the brush shows while it is moved; `None` where it is not.
    pub(crate) fn brushed(&self, window: &ZoomWindow<'_>) -> Option<Brushed> {
        if !self.is_drag {
            return None;
        }
        match self.grip {
            Grip::Range => None,
            Grip::Brush(left, right) => {
                let (first, last) = window.ends();
                let by = (self.to - self.from).max(first - left).min(last - right);
                Some(Brushed(window.between(left + by, right + by)))
            }
            Grip::End(other) => Some(Brushed(window.between(other, self.to))),
        }
    }
}
