//! The state of the snapshot page, and how events change it.

use gpumem_explorer::chart::axis_value_at;
use gpumem_readers::torch_snapshot::{Explorer, FlameSide};
use gpumem_scene::{Point, Theme};

/// The fewest events in view.
const LEAST_EVENTS: f64 = 16.0;
/// The zoom factor of a key.
const STEP: f64 = 1.5;
/// The share of the view that a key with Shift moves over.
const LEAP: f64 = 0.02;

/// A chart of the page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SnapshotChart {
    Levels,
    Icicle,
}

impl SnapshotChart {
    pub(crate) fn named(name: &str) -> Option<Self> {
        match name {
            "levels" => Some(Self::Levels),
            "icicle" => Some(Self::Icicle),
            _ => None,
        }
    }
}

/// The state of the page.
#[derive(Debug, Clone)]
pub(crate) struct SnapshotView {
    /// By its position in the summary.
    pub(crate) device: usize,
    /// Number of events before the moment that is shown.
    pub(crate) moment: usize,
    /// The range of events in view.
    pub(crate) span: (f64, f64),
    pub(crate) n_events: usize,
    /// The frame that is as wide as the chart.
    pub(crate) root: usize,
    pub(crate) is_inside: bool,
    pub(crate) search: String,
    pub(crate) pointed: Option<(SnapshotChart, Point)>,
    /// The chart of the levels is being dragged.
    pub(crate) is_held: bool,
    /// In logical pixels.
    pub(crate) width: f64,
    /// Device pixels of a logical one.
    pub(crate) scale: f64,
    pub(crate) theme: Theme,
}

impl SnapshotView {
    /// The peak of the device that reserves most; devices that ran out of memory come first.
    pub(crate) fn new(explorer: &Explorer) -> Self {
        let devices = explorer.summary.devices.iter().enumerate();
        let fullest =
            devices.max_by_key(|(_, device)| (!device.failed.is_empty(), device.reserved));
        let mut state = Self {
            device: fullest.map_or(0, |(idx, _)| idx),
            moment: 0,
            span: (0.0, 1.0),
            n_events: 0,
            root: 0,
            is_inside: false,
            search: String::new(),
            pointed: None,
            is_held: false,
            width: 0.0,
            scale: 1.0,
            theme: Theme::Light,
        };
        state.see_device(explorer, state.device);
        state
    }

    pub(crate) fn side(&self) -> FlameSide {
        if self.is_inside {
            FlameSide::Inside
        } else {
            FlameSide::Outside
        }
    }

    /// The peak of the trace; its end without one.
    pub(crate) fn peak(explorer: &Explorer, device: usize) -> usize {
        let timeline = explorer.summary.devices.get(device);
        let timeline = timeline.and_then(|it| it.timeline.as_ref());
        timeline.map_or(0, |it| it.peak_event.map_or(0, |event| event + 1))
    }

    fn see_device(&mut self, explorer: &Explorer, device: usize) {
        let timeline = explorer.summary.devices.get(device);
        let timeline = timeline.and_then(|it| it.timeline.as_ref());
        self.device = device;
        self.n_events = timeline.map_or(0, |it| it.n_events);
        self.span = (0.0, self.n_events as f64);
        self.moment = Self::peak(explorer, device);
        self.root = 0;
    }

    /// Handles a button; false if it is unknown.
    pub(crate) fn act(&mut self, explorer: &Explorer, action: &str, argument: &str) -> bool {
        match (action, argument) {
            ("device", number) => match number.parse() {
                Ok(device) => self.see_device(explorer, device),
                Err(_) => return false,
            },
            ("moment", "peak") => self.go_to(Self::peak(explorer, self.device)),
            ("moment", "end") => self.go_to(self.n_events),
            ("moment", number) => match number.parse() {
                Ok(event) => self.go_to(event),
                Err(_) => return false,
            },
            ("whole", _) => self.span = (0.0, self.n_events as f64),
            ("zoom", "in") => self.zoom(None, 1.0 / STEP),
            ("zoom", "out") => self.zoom(None, STEP),
            _ => return false,
        }
        true
    }

    /// What a key means; false for nothing.
    pub(crate) fn press(
        &mut self,
        chart: Option<SnapshotChart>,
        key: &str,
        is_shifted: bool,
    ) -> bool {
        let leap = if is_shifted {
            ((self.span.1 - self.span.0) * LEAP).max(1.0) as usize
        } else {
            1
        };
        match (chart, key) {
            (Some(SnapshotChart::Icicle), "Escape") if self.root > 0 => self.root = 0,
            (Some(SnapshotChart::Levels), "ArrowLeft") => {
                self.go_to(self.moment.saturating_sub(leap));
            }
            (Some(SnapshotChart::Levels), "ArrowRight") => self.go_to(self.moment + leap),
            (Some(SnapshotChart::Levels), "Home") => self.go_to(0),
            (Some(SnapshotChart::Levels), "End") => self.go_to(self.n_events),
            (Some(SnapshotChart::Levels), "+" | "=") => self.zoom(None, 1.0 / STEP),
            (Some(SnapshotChart::Levels), "-") => self.zoom(None, STEP),
            (Some(SnapshotChart::Levels), "0") => self.span = (0.0, self.n_events as f64),
            _ => return false,
        }
        true
    }

    fn go_to(&mut self, event: usize) {
        self.moment = event.min(self.n_events);
        self.root = 0;
        let (at, (from, to)) = (self.moment as f64, self.span);
        if !(from..=to).contains(&at) {
            let half = (to - from) / 2.0;
            self.look_at(at - half, at + half);
        }
    }

    /// Multiplies the number of events in view, around an event or else around the moment.
    pub(crate) fn zoom(&mut self, around: Option<f64>, factor: f64) {
        let around = around.unwrap_or(self.moment as f64);
        let (from, to) = self.span;
        let most = (self.n_events as f64).max(1.0);
        let length = ((to - from) * factor).clamp(LEAST_EVENTS.min(most), most);
        let share = ((around - from) / (to - from).max(1.0)).clamp(0.0, 1.0);
        let from = around - share * length;
        self.look_at(from, from + length);
    }

    /// Those events, as far as there are any.
    fn look_at(&mut self, from: f64, to: f64) {
        let n_events = self.n_events as f64;
        let length = (to - from).min(n_events);
        let from = from.clamp(0.0, (n_events - length).max(0.0));
        self.span = (from, from + length);
    }

    /// After how many events it is at a place of the chart of the levels.
    pub(crate) fn event_at(&self, x: f64) -> Option<f64> {
        axis_value_at(x, self.width, self.span)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gpumem_readers::cell_files::CellFiles;

    fn state(n_events: usize) -> SnapshotView {
        let explorer = Explorer::open(b"].", &CellFiles::default()).expect("an empty snapshot");
        SnapshotView {
            n_events,
            span: (0.0, n_events as f64),
            width: 678.0,
            ..SnapshotView::new(&explorer)
        }
    }

    #[test]
    fn zoom_stays_within_the_trace_and_keeps_the_pointed_event() {
        let mut state = state(1000);
        state.zoom(Some(250.0), 0.5);
        assert_eq!(state.span, (125.0, 625.0));
        state.zoom(Some(125.0), 10.0);
        assert_eq!(state.span, (0.0, 1000.0));
        for _ in 0..50 {
            state.zoom(Some(999.0), 0.1);
        }
        assert!((state.span.1 - state.span.0 - LEAST_EVENTS).abs() < 1e-9);
    }

    #[test]
    fn keys_go_through_the_trace_and_take_the_view_along() {
        let mut state = state(1000);
        assert!(state.press(Some(SnapshotChart::Levels), "ArrowRight", false));
        assert!(state.press(Some(SnapshotChart::Levels), "ArrowRight", true));
        assert_eq!(state.moment, 21);
        state.zoom(Some(0.0), 0.1);
        assert!(state.press(Some(SnapshotChart::Levels), "End", false));
        assert_eq!((state.moment, state.span), (1000, (900.0, 1000.0)));
        assert!(!state.press(None, "End", false));
    }

    #[test]
    fn what_no_button_means_is_nothing() {
        let explorer = Explorer::open(b"].", &CellFiles::default()).expect("an empty snapshot");
        let mut state = state(10);
        assert!(!state.act(&explorer, "moment", "soon"));
        assert!(!state.act(&explorer, "other", ""));
        assert!(state.act(&explorer, "moment", "99"));
        assert_eq!(state.moment, 10);
    }
}
