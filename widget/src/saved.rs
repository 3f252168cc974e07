//! What the reader looks at as a line of text, which outlives the page: in the
//! widget's state, or behind the `#` of the page's address.
//!
//! `device=0&span=1000-2000&chosen=cell:3`: only what differs from the first look.
//! What a line says that is not understood is passed over.

use std::fmt::Write as _;

use gpumem_charts::{CellMeasure, Moment, Pace};
use gpumem_model::recording::{CellIdx, DeviceIdx};
use gpumem_model::rules::Rules;
use gpumem_model::units::{Nanos, Units};

use crate::settings::ThresholdSetting;
use crate::state::{Choice, Fold, Layer, TimeRange, ViewState};

/// The first look, and the rules that stand in the recording.
type InitialState<'a> = (&'a ViewState, &'a Rules);

/// The line with the differences of `state` and `rules` from the defaults.
pub(crate) fn line(
    state: &ViewState,
    rules: &Rules,
    (first, recorded): InitialState<'_>,
) -> String {
    let mut parts: Vec<(&str, String)> = Vec::new();
    if state.device != first.device {
        parts.push(("device", state.device.0.to_string()));
    }
    if let Some((from, to)) = state.span {
        parts.push(("span", format!("{}-{}", from.get(), to.get())));
    }
    if state.measure == CellMeasure::PerRun {
        parts.push(("measure", "run".to_owned()));
    }
    parts.extend(
        state
            .folds
            .iter()
            .map(|fold| ("fold", fold.name().to_owned())),
    );
    if state.all_rows {
        parts.push(("rows", "all".to_owned()));
    }
    parts.extend(state.row.map(|cell| ("row", cell.0.to_string())));
    if state.pace == Pace::Clock {
        parts.push(("pace", "clock".to_owned()));
    }
    let mut layers = state.layers;
    for layer in Layer::ALL {
        if !*layer.flag_mut(&mut layers) {
            parts.push(("hidden", layer.name().to_owned()));
        }
    }
    let inside = state.inside.iter().map(|name| ("inside", name.clone()));
    parts.extend(inside);
    if state.units != Units::default() {
        parts.push(("units", state.units.name().to_owned()));
    }
    if state.moment != Moment::After {
        parts.push(("holders", moment_name(state.moment).to_owned()));
    }
    match &state.chosen {
        None => {}
        Some(Choice::Finding(id)) => parts.push(("chosen", format!("finding:{id}"))),
        Some(Choice::Cell(cell)) => parts.push(("chosen", format!("cell:{}", cell.0))),
        Some(Choice::Search(text)) => parts.push(("chosen", format!("search:{text}"))),
    }
    parts.extend(state.dismissed.iter().map(|id| ("dismissed", id.clone())));
    let opened = state.opened.iter();
    parts.extend(opened.map(|id| ("opened", id.clone())));
    if state.in_full {
        parts.push(("full", "yes".to_owned()));
    }
    for setting in ThresholdSetting::ALL {
        let position = setting.position(rules);
        if position != setting.position(recorded) {
            parts.push((setting.name(), position.to_string()));
        }
    }
    let parts: Vec<String> = parts
        .iter()
        .map(|(name, value)| format!("{name}={}", escaped(value)))
        .collect();
    parts.join("&")
}

/// The first look, changed as the line says; what names nothing of the recording is left out.
pub(crate) fn read(
    line: &str,
    (first, recorded): InitialState<'_>,
    n_devices: usize,
    n_cells: usize,
) -> (ViewState, Rules) {
    let (mut state, mut rules) = (first.clone(), *recorded);
    for part in line.split('&') {
        let Some((name, value)) = part.split_once('=') else {
            continue;
        };
        let value = unescaped(value);
        match name {
            "device" => {
                let idx = value.parse().ok().filter(|idx| (*idx as usize) < n_devices);
                state.device = idx.map_or(state.device, DeviceIdx);
            }
            "span" => state.span = span(&value),
            "measure" if value == "run" => state.measure = CellMeasure::PerRun,
            "fold" => state.folds.extend(Fold::from_name(&value)),
            "rows" => state.all_rows = value == "all",
            "row" => {
                let idx = value.parse().ok().filter(|idx| (*idx as usize) < n_cells);
                state.row = idx.map(CellIdx);
            }
            "pace" if value == "clock" => state.pace = Pace::Clock,
            "hidden" => {
                if let Some(layer) = Layer::from_name(&value) {
                    *layer.flag_mut(&mut state.layers) = false;
                }
            }
            "units" => state.units = Units::from_name(&value).unwrap_or_default(),
            "inside" => state.inside.push(value),
            "holders" => state.moment = moment(&value),
            "chosen" => state.chosen = choice(&value, n_cells),
            "dismissed" => state.dismissed.push(value),
            "opened" => state.opened = Some(value),
            "full" => state.in_full = true,
            name => {
                if let (Some(setting), Ok(position)) =
                    (ThresholdSetting::from_name(name), value.parse())
                {
                    setting.set(&mut rules, position);
                }
            }
        }
    }
    (state, rules)
}

/// The name in the page and in what is saved.
pub(crate) const fn moment_name(moment: Moment) -> &'static str {
    match moment {
        Moment::Before => "before",
        Moment::After => "after",
        Moment::Change => "change",
    }
}

/// The moment of that name.
pub(crate) fn moment(name: &str) -> Moment {
    match name {
        "before" => Moment::Before,
        "change" => Moment::Change,
        _ => Moment::After,
    }
}

fn span(value: &str) -> Option<TimeRange> {
    let (from, to) = value.split_once('-')?;
    let (from, to) = (from.parse().ok()?, to.parse().ok()?);
    (from < to).then(|| (Nanos::new(from), Nanos::new(to)))
}

fn choice(value: &str, n_cells: usize) -> Option<Choice> {
    let (kind, what) = value.split_once(':')?;
    match kind {
        "finding" => Some(Choice::Finding(what.to_owned())),
        "search" => Some(Choice::Search(what.to_owned())),
        "cell" => {
            let idx = what.parse().ok().filter(|idx| (*idx as usize) < n_cells)?;
            Some(Choice::Cell(CellIdx(idx)))
        }
        _ => None,
    }
}

fn escaped(value: &str) -> String {
    let mut text = String::new();
    for byte in value.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b':' => {
                text.push(char::from(byte));
            }
            other => write!(text, "%{other:02X}").expect("a string takes everything"),
        }
    }
    text
}

fn unescaped(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let hex = after.get(..2).filter(|_| *first == b'%');
        let byte = hex
            .and_then(|hex| std::str::from_utf8(hex).ok())
            .and_then(|hex| u8::from_str_radix(hex, 16).ok());
        bytes.push(byte.unwrap_or(*first));
        rest = if byte.is_some() { &after[2..] } else { after };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use gpumem_analyzer::Analysis;

    use super::*;
    use crate::fixture::recording_of_runs;

    fn first() -> ViewState {
        ViewState::new(&recording_of_runs(&[0, 1]), &Analysis::default())
    }

    #[track_caller]
    fn check(state: &ViewState, rules: &Rules, expected: &str) {
        let (first, recorded) = (first(), Rules::default());
        let written = line(state, rules, (&first, &recorded));
        assert_eq!(written, expected);
        assert_eq!(
            read(&written, (&first, &recorded), 1, 2),
            (state.clone(), *rules)
        );
    }

    #[test]
    fn the_first_look_is_nothing_to_say() {
        check(&first(), &Rules::default(), "");
    }

    #[test]
    fn what_is_looked_at_is_found_again() {
        let mut state = ViewState {
            span: Some((Nanos::new(5), Nanos::new(70))),
            measure: CellMeasure::PerRun,
            folds: vec![Fold::Map, Fold::Settings],
            all_rows: true,
            row: Some(CellIdx(1)),
            pace: Pace::Clock,
            chosen: Some(Choice::Finding("leak/a=b & 'ü'".to_owned())),
            moment: Moment::Change,
            units: Units::Decimal,
            inside: vec!["Out[3]".to_owned(), ".a&b".to_owned()],
            ..first()
        };
        state.layers.peaks = false;
        state.dismissed.push("x/y".to_owned());
        let mut rules = Rules::default();
        ThresholdSetting::Runs.set(&mut rules, 2);
        check(
            &state,
            &rules,
            "span=5-70&measure=run&fold=map&fold=settings&rows=all&row=1&pace=clock&hidden=peaks\
             &inside=Out%5B3%5D&inside=.a%26b&units=GB&holders=change\
             &chosen=finding:leak%2Fa%3Db%20%26%20%27%C3%BC%27&dismissed=x%2Fy&min_runs=2",
        );
    }

    #[test]
    fn what_is_not_understood_is_passed_over() {
        let said = "device=7&span=9-3&chosen=cell:5&what=%zz&hidden=%&measure=none&=&x";
        let recorded = Rules::default();
        let read = read(said, (&first(), &recorded), 1, 2);
        assert_eq!(read, (first(), recorded));
    }
}
