//! What each key does: one table for the handler and for the list that `?` shows.

use gpumem_charts::{CellMeasure, Pace};

use crate::state::Movement;

/// The action of a key.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum KeyAction {
    /// Along the chart.
    Step(Movement),
    /// To the row before or after.
    Row(Movement),
    /// To the highest peak.
    Peak,
    /// To the run's place in the other chart.
    Cross,
    /// Picks the run's cell.
    Choose,
    /// A closer look, or one from farther away.
    Zoom(f64),
    /// An earlier or a later part of the time, in shares of what is in view.
    Pan(f64),
    /// All of the time.
    Whole,
    /// What the rows show: the total, or each run.
    Measure,
    /// How time runs: by runs or by the clock.
    Pace,
    /// The next device.
    Device,
    /// Into the search field.
    Search,
    /// The list of keys.
    Help,
    /// Nothing picked, nothing read out.
    Clear,
}

/// How much a key zooms.
const CLOSER: f64 = 0.5;
/// How far a key pans, in shares of what is in view.
const ASIDE: f64 = 0.25;

/// The action of the key of that name.
pub(crate) fn action_for(key: &str, shift: bool) -> Option<KeyAction> {
    Some(match key {
        "ArrowLeft" if shift => KeyAction::Pan(-ASIDE),
        "ArrowRight" if shift => KeyAction::Pan(ASIDE),
        "ArrowLeft" | "," => KeyAction::Step(Movement::Back),
        "ArrowRight" | "." => KeyAction::Step(Movement::Forward),
        "ArrowUp" => KeyAction::Row(Movement::Back),
        "ArrowDown" => KeyAction::Row(Movement::Forward),
        "PageUp" => KeyAction::Step(Movement::First),
        "End" | "PageDown" => KeyAction::Step(Movement::Last),
        "Home" | "0" => KeyAction::Whole,
        "+" | "=" => KeyAction::Zoom(CLOSER),
        "-" => KeyAction::Zoom(1.0 / CLOSER),
        "p" => KeyAction::Peak,
        "t" => KeyAction::Cross,
        "Enter" | " " => KeyAction::Choose,
        "k" => KeyAction::Measure,
        "c" => KeyAction::Pace,
        "d" => KeyAction::Device,
        "/" => KeyAction::Search,
        "?" => KeyAction::Help,
        "Escape" => KeyAction::Clear,
        _ => return None,
    })
}

impl KeyAction {
    /// Whether the key works in the whole report, not only on a chart.
    pub(crate) const fn is_everywhere(self) -> bool {
        matches!(self, Self::Search | Self::Help | Self::Clear)
    }
}

/// Keys and what they do, as people read them.
pub(crate) const LIST: [(&str, &str); 15] = [
    ("← → , .", "run before, run after"),
    ("↑ ↓", "row above, row below"),
    ("PageUp PageDown", "first run, last run"),
    ("p", "the highest peak"),
    ("t", "the run among the samples over time, and back"),
    (
        "Enter",
        "open a row, pick a run's cell, go into what holds memory",
    ),
    ("+ −", "closer, farther (also Ctrl and wheel)"),
    ("Shift ← →", "earlier, later"),
    ("Home 0", "the whole session (also double click)"),
    ("k", "total or per run"),
    ("c", "runs or clock"),
    ("d", "next device"),
    ("/", "find cells by their source"),
    ("Esc", "go out again, drop what is picked"),
    ("?", "this list"),
];

/// The other of two.
pub(crate) const fn other_measure(measure: CellMeasure) -> CellMeasure {
    match measure {
        CellMeasure::Total => CellMeasure::PerRun,
        CellMeasure::PerRun => CellMeasure::Total,
    }
}

/// The other of two.
pub(crate) const fn other_pace(pace: Pace) -> Pace {
    match pace {
        Pace::Runs => Pace::Clock,
        Pace::Clock => Pace::Runs,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_of_the_list_does_something() {
        let names = LIST.iter().flat_map(|(keys, _)| keys.split(' '));
        for name in names.filter(|name| *name != "Shift") {
            let key = match name {
                "←" => "ArrowLeft",
                "→" => "ArrowRight",
                "↑" => "ArrowUp",
                "↓" => "ArrowDown",
                "−" => "-",
                "Esc" => "Escape",
                key => key,
            };
            assert!(action_for(key, false).is_some(), "{name}");
        }
    }
}
