//! The recording, the rules and the view state, and what follows from them.

use gpumem_core::analyze::{Analysis, Rules, analyze};
use gpumem_core::chart::{self, Scene, Theme};
use gpumem_core::format::{self, ReadError};
use gpumem_core::json;
use gpumem_core::recording::{DeviceKind, Recording, RunIdx};
use gpumem_core::units::Bytes;

use crate::state::{Chart, Event, State, Step};

/// Everything that the page shows, without the page.
pub(crate) struct Model {
    recording: Recording,
    rules: Rules,
    analysis: Analysis,
    state: State,
    /// The colours of the charts.
    pub(crate) theme: Theme,
    /// Device pixels per logical pixel.
    pub(crate) scale: f64,
}

impl Model {
    /// The first look at a recording.
    pub(crate) fn new(recording: Recording) -> Self {
        let rules = Rules::default();
        let analysis = analyze(&recording, &rules);
        Self {
            state: State::new(&recording, &analysis),
            recording,
            rules,
            analysis,
            theme: Theme::default(),
            scale: 1.0,
        }
    }

    /// What was recorded.
    pub(crate) fn recording(&self) -> &Recording {
        &self.recording
    }

    /// What follows from it under the rules as they are set.
    pub(crate) fn analysis(&self) -> &Analysis {
        &self.analysis
    }

    /// What the reader looks at.
    pub(crate) fn state(&self) -> &State {
        &self.state
    }

    /// Takes in frames; those before a faulty one are taken in all the same.
    pub(crate) fn apply(&mut self, frames: &[u8]) -> Result<(), ReadError> {
        let read = format::apply(&mut self.recording, frames);
        self.analysis = analyze(&self.recording, &self.rules);
        read
    }

    /// Takes in what the reader did, and returns the state before it.
    pub(crate) fn handle(&mut self, event: Event) -> State {
        let next = self.state.after(event, &self.recording, &self.analysis);
        std::mem::replace(&mut self.state, next)
    }

    /// Takes in a key that was pressed on a chart with these runs, in its order;
    /// `None` where the key means nothing.
    pub(crate) fn press(&mut self, chart: Chart, runs: &[RunIdx], key: &str) -> Option<State> {
        let step = match key {
            "ArrowLeft" => Step::Back,
            "ArrowRight" => Step::Forward,
            "Home" => Step::First,
            "End" => Step::Last,
            "Enter" | " " => {
                let (_, run) = self.state.hovered?;
                return Some(self.handle(Event::Clicked(Some(run))));
            }
            "Escape" => return Some(self.handle(Event::Cleared)),
            _ => return None,
        };
        Some(self.handle(Event::Stepped(chart, step, runs.to_vec())))
    }

    /// The smallest growth that counts on the device that is shown.
    pub(crate) fn threshold(&self) -> Bytes {
        *self.threshold_of(&mut self.rules.clone())
    }

    /// The same, as it is without the reader's doing.
    pub(crate) fn default_threshold(&self) -> Bytes {
        *self.threshold_of(&mut Rules::default())
    }

    /// Sets the smallest growth that counts on the device that is shown, and judges anew.
    pub(crate) fn set_threshold(&mut self, smallest: Bytes) {
        let mut rules = self.rules;
        *self.threshold_of(&mut rules) = smallest;
        self.rules = rules;
        self.analysis = analyze(&self.recording, &self.rules);
    }

    /// The picture of a chart.
    pub(crate) fn scene(&self, chart: Chart) -> Scene {
        let view = chart::View {
            width: self.state.width,
            device: self.state.device,
            hovered: self.state.hovered.map(|(_, run)| run),
            selected: self.state.selected(&self.recording, &self.analysis),
            span: None,
        };
        match chart {
            Chart::Growth => chart::growth(&self.recording, &self.analysis, &view),
            Chart::Timeline => chart::timeline(&self.recording, &self.analysis, &view),
        }
    }

    /// The report as JSON, as the extension itself writes it.
    pub(crate) fn report_json(&self) -> String {
        json::report_json(&self.recording, &self.analysis)
    }

    fn threshold_of<'a>(&self, rules: &'a mut Rules) -> &'a mut Bytes {
        let device = self.recording.devices().get(self.state.device.get());
        match device.map(|device| device.kind) {
            Some(DeviceKind::Host) => &mut rules.min_host_growth,
            _ => &mut rules.min_growth,
        }
    }
}
