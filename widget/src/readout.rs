//! The numbers of one run in words.

use gpumem_charts as charts;
use gpumem_charts::{BarSegment, Map, RunDescription, Tile};
use gpumem_model::holders::{RootKind, StorageUse};
use gpumem_model::recording::{DeviceIdx, Recording, RunIdx, Series, Status};
use gpumem_model::units::{Bytes, Nanos, Units};

/// What is read out of a run: a title and named figures.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Readout {
    /// Its cell, by the first line that says what it does.
    pub(crate) name: String,
    /// Which of the cell's runs: `In [18] · run 3`.
    pub(crate) place: String,
    /// Name and figure.
    pub(crate) figures: Vec<(&'static str, String)>,
}

impl Readout {
    /// One sentence for those who do not see the page.
    pub(crate) fn sentence(&self) -> String {
        let figures: Vec<String> = self
            .figures
            .iter()
            .map(|(name, figure)| format!("{name} {figure}").trim_start().to_owned())
            .collect();
        let name = [&*self.name, &self.place]
            .into_iter()
            .filter(|it| !it.is_empty());
        let name = name.collect::<Vec<_>>().join(" · ");
        format!("{name}: {}", figures.join(", "))
    }
}

/// A run, as the heads of the rows read it.
pub(crate) fn of_run(read: RunDescription) -> Readout {
    Readout {
        name: read.name,
        place: read.place,
        figures: vec![("", read.words)],
    }
}

/// What is known of `device` at an instant inside a run: the last sample until then.
pub(crate) fn at(
    recording: &Recording,
    device: DeviceIdx,
    run: RunIdx,
    at: Nanos,
    units: Units,
) -> Vec<(&'static str, String)> {
    let points = recording.samples(run, device, &Series::Sampled);
    let until = points.between(Nanos::ZERO, at).end;
    let Some(sample) = until.checked_sub(1).and_then(|idx| points.get(idx)) else {
        return Vec::new();
    };
    let started = recording.run(run).started;
    let metrics = [
        ("this process", sample.process_used),
        ("device", sample.device_used),
    ];
    let known = metrics
        .into_iter()
        .filter_map(|(name, level)| Some((name, units.size(level?))));
    let when = ("after", sample.at.since(started).to_string());
    std::iter::once(when).chain(known).collect()
}

/// A part of a device in words.
pub(crate) fn of_part(part: &BarSegment, parts: &[BarSegment], units: Units) -> Readout {
    let total: Bytes = parts.iter().map(|part| part.size).sum();
    let share = 100.0 * part.size.as_f64() / total.as_f64().max(1.0);
    let category = part.category.filter(|_| part.is_name);
    let place = format!("{share:.1} % of what is there");
    Readout {
        name: part.name.clone(),
        place: match category {
            Some(category) => format!("{}, {place}", category.name()),
            None => place,
        },
        figures: vec![("size", units.size(part.size))],
    }
}

/// A field of the map of holders in words.
pub(crate) fn of_field(field: &Tile, map: &Map, units: Units) -> Readout {
    let mut figures = Vec::new();
    figures.push(if let Some(change) = field.change {
        ("changed by", units.change(change))
    } else {
        let share = 100.0 * field.n_bytes.as_f64() / map.n_bytes().as_f64().max(1.0);
        (
            "holds",
            format!("{}, {share:.0} %", units.size(field.n_bytes)),
        )
    });
    figures.push(("is", field.what.clone()));
    if !field.path.is_empty() && field.path != field.name {
        figures.push(("path", field.path.clone()));
    }
    let kind = field.kind.and_then(RootKind::description);
    Readout {
        name: field.name.clone(),
        place: kind
            .or_else(|| field.part.map(StorageUse::description))
            .unwrap_or_default()
            .to_owned(),
        figures,
    }
}

/// What is said of a run that did not end well, or not yet.
pub(crate) const fn unusual(status: Status) -> Option<&'static str> {
    match status {
        Status::Running => Some("not yet"),
        status => charts::ended(status),
    }
}

#[cfg(test)]
mod tests {
    use gpumem_analyzer::{Rules, analyze};
    use gpumem_charts::cells;

    use super::*;
    use crate::fixture::recording_of_runs;

    #[test]
    fn a_run_is_a_sentence() {
        let recording = recording_of_runs(&[0, 1, 0]);
        let analysis = analyze(&recording, &Rules::default());
        let cells = cells(&recording, &analysis, DeviceIdx(0));
        let read = cells.reading(RunIdx(2), Units::Binary).expect("a run");
        assert_eq!(
            of_run(read).sentence(),
            "step0(model) · In [3]: run 2 of 2: kept +1 GiB, 2 GiB so far; all cells 3 GiB"
        );
    }
}
