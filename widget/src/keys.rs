//! What each key does: one table for the handler and for the list that `?` shows.

use gpumem_charts::{Measure, Pace};

use crate::state::Step;

/// What a key asks for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Key {
    /// Along the chart.
    Step(Step),
    /// To the row before or after.
    Row(Step),
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

/// What the key of that name asks for.
pub(crate) fn of(key: &str, shift: bool) -> Option<Key> {
    Some(match key {
        "ArrowLeft" if shift => Key::Pan(-ASIDE),
        "ArrowRight" if shift => Key::Pan(ASIDE),
        "ArrowLeft" | "," => Key::Step(Step::Back),
        "ArrowRight" | "." => Key::Step(Step::Forward),
        "ArrowUp" => Key::Row(Step::Back),
        "ArrowDown" => Key::Row(Step::Forward),
        "PageUp" => Key::Step(Step::First),
        "End" | "PageDown" => Key::Step(Step::Last),
        "Home" | "0" => Key::Whole,
        "+" | "=" => Key::Zoom(CLOSER),
        "-" => Key::Zoom(1.0 / CLOSER),
        "p" => Key::Peak,
        "t" => Key::Cross,
        "Enter" | " " => Key::Choose,
        "k" => Key::Measure,
        "c" => Key::Pace,
        "d" => Key::Device,
        "/" => Key::Search,
        "?" => Key::Help,
        "Escape" => Key::Clear,
        _ => return None,
    })
}

impl Key {
    /// It means something wherever in the report the keyboard is, not only on a chart.
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
pub(crate) const fn other_measure(measure: Measure) -> Measure {
    match measure {
        Measure::Total => Measure::PerRun,
        Measure::PerRun => Measure::Total,
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
            assert!(of(key, false).is_some(), "{name}");
        }
    }
}
