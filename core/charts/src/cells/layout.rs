//! The columns of the panel, the same for the rows and for the chart below them.

/// Left and right of a panel's content.
const PAD: f64 = 12.0;
const GAP: f64 = 10.0;
const NAME: f64 = 258.0;
const TOTAL: f64 = 76.0;
const SCALE: f64 = 52.0;
const STATE: f64 = 98.0;
/// From the first width on there is a bar column; below the second one everything is in one column.
const WIDE: f64 = 752.0;
const NARROW: f64 = 632.0;

/// The columns of a panel of this width.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CellLayout {
    /// Of the panel, in logical pixels.
    pub width: f64,
}

impl CellLayout {
    /// The columns of a panel of this width, without its border.
    pub const fn new(width: f64) -> Self {
        Self { width }
    }

    /// Everything is in one column.
    pub fn is_narrow(self) -> bool {
        self.width < NARROW
    }

    /// Its CSS class.
    pub fn name(self) -> &'static str {
        match self.width {
            _ if self.is_narrow() => "narrow",
            width if width < WIDE => "middle",
            _ => "wide",
        }
    }

    /// Where the charts begin.
    pub fn chart_left(self) -> f64 {
        if self.is_narrow() {
            PAD
        } else {
            PAD + NAME + GAP
        }
    }

    /// Where they end.
    pub fn chart_right(self) -> f64 {
        let beside = match self.name() {
            "narrow" => 0.0,
            "middle" => TOTAL + STATE + 2.0 * GAP,
            _ => TOTAL + SCALE + STATE + 3.0 * GAP,
        };
        (self.width - PAD - beside).max(self.chart_left() + 40.0)
    }

    /// How wide the charts are.
    pub fn chart_width(self) -> f64 {
        self.chart_right() - self.chart_left()
    }
}
