//! The numbers of one run in words.

use gpumem_core::analyze::{Analysis, Peak, RunRow, cell_label};
use gpumem_core::chart::{Field, Map, Segment};
use gpumem_core::decimal::rounded;
use gpumem_core::holders::{self, RootKind};
use gpumem_core::recording::{DeviceIdx, Recording, Run, RunIdx, Series, Status};
use gpumem_core::units::{Bytes, Nanos, Units};

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
            .map(|(name, figure)| format!("{name} {figure}"))
            .collect();
        let name = [&*self.name, &self.place]
            .into_iter()
            .filter(|it| !it.is_empty());
        let name = name.collect::<Vec<_>>().join(" · ");
        format!("{name}: {}", figures.join(", "))
    }
}

/// The numbers of `run` on `device`.
pub(crate) fn of_run(
    recording: &Recording,
    analysis: &Analysis,
    device: DeviceIdx,
    run: RunIdx,
    units: Units,
) -> Readout {
    let first = analysis.rows.partition_point(|row| row.run < run);
    let of_run = analysis.rows[first..]
        .iter()
        .take_while(|row| row.run == run);
    let row = of_run.clone().find(|row| row.device == device);
    let run = recording.run(run);
    let mut figures = row.map_or_else(Vec::new, |row| of_row(row, run.ended.is_none(), units));
    if let Some(ended) = run.ended {
        figures.push(("took", ended.since(run.started).to_string()));
    }
    if let Some(words) = unusual(run.status) {
        figures.push(("ended", words.to_owned()));
    }
    Readout {
        name: shortened(&cell_label(recording, run), 44),
        place: place(recording, run),
        figures,
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
pub(crate) fn of_part(part: &Segment, parts: &[Segment], units: Units) -> Readout {
    let total: Bytes = parts.iter().map(|part| part.size).sum();
    let share = 100.0 * part.size.as_f64() / total.as_f64().max(1.0);
    let category = part.category.filter(|_| part.is_name);
    let place = rounded(share, 1) + " % of what is there";
    Readout {
        name: part.name.clone(),
        place: match category {
            Some(category) => format!("{}, {place}", category.words()),
            None => place,
        },
        figures: vec![("size", units.size(part.size))],
    }
}

/// A field of the map of holders in words.
pub(crate) fn of_field(field: &Field, map: &Map, units: Units) -> Readout {
    let mut figures = Vec::new();
    figures.push(if let Some(change) = field.change {
        ("changed by", units.change(change))
    } else {
        let share = 100.0 * field.n_bytes.as_f64() / map.n_bytes().as_f64().max(1.0);
        (
            "holds",
            format!("{}, {} %", units.size(field.n_bytes), rounded(share, 0)),
        )
    });
    figures.push(("is", field.what.clone()));
    if !field.path.is_empty() && field.path != field.name {
        figures.push(("path", field.path.clone()));
    }
    let kind = field.kind.and_then(RootKind::words);
    Readout {
        name: field.name.clone(),
        place: kind
            .or_else(|| field.part.map(holders::Part::words))
            .unwrap_or_default()
            .to_owned(),
        figures,
    }
}

fn place(recording: &Recording, run: &Run) -> String {
    let ordinal = recording.runs()[..=run.idx.get()]
        .iter()
        .filter(|other| other.cell == run.cell && other.kind == run.kind)
        .count();
    match run.execution_count {
        Some(count) => format!("In [{count}] · run {ordinal}"),
        None => format!("run {ordinal}"),
    }
}

fn of_row(row: &RunRow, is_open: bool, units: Units) -> Vec<(&'static str, String)> {
    let mut figures = Vec::new();
    if let Some(kept) = row.kept {
        figures.push(("kept", units.change(kept)));
    }
    if let Some((before, now)) = row.before.zip(row.so_far) {
        figures.push(("kept so far", units.change(now.since(before))));
    }
    let metrics = [
        ("allocated", row.allocated),
        ("reserved", row.reserved),
        ("this process", row.process_used),
        ("device", row.device_used),
    ];
    for (name, levels) in metrics {
        let words = match levels {
            (Some(before), None) if is_open => {
                Some(format!("{} when it began", units.size(before)))
            }
            levels => way(levels, units),
        };
        figures.extend(words.map(|words| (name, words)));
    }
    if let Some(peak) = row.peak {
        figures.push(("peak", peak_words(peak, units)));
    }
    if let Some(n_retries) = row.n_retries.filter(|n| *n > 0) {
        figures.push((
            "cache flushed",
            if n_retries == 1 {
                "once".to_owned()
            } else {
                format!("{n_retries} times")
            },
        ));
    }
    figures
}

fn way((before, after): (Option<Bytes>, Option<Bytes>), units: Units) -> Option<String> {
    let shown = |level: Option<Bytes>| level.map(|bytes| units.size(bytes));
    let (before, after) = (shown(before), shown(after));
    match (before, after) {
        (None, None) => None,
        (Some(before), Some(after)) if before == after => Some(after),
        (before, after) => Some(format!("{} → {}", or_unknown(before), or_unknown(after))),
    }
}

fn or_unknown(level: Option<String>) -> String {
    level.unwrap_or_else(|| "not available".to_owned())
}

fn peak_words(peak: Peak, units: Units) -> String {
    match peak {
        Peak::Exact(bytes) => format!("{}, exact", units.size(bytes)),
        Peak::Between { low, high } => format!("{} to {}", units.size(low), units.size(high)),
        Peak::AtLeast(bytes) => format!("at least {}", units.size(bytes)),
    }
}

/// What is said of a run that did not end well, or not yet.
pub(crate) fn unusual(status: Status) -> Option<&'static str> {
    match status {
        Status::Ok => None,
        Status::Running => Some("not yet"),
        Status::Error => Some("with an error"),
        Status::Interrupted => Some("interrupted"),
        Status::OutOfMemory => Some("out of memory"),
    }
}

fn shortened(text: &str, n_chars: usize) -> String {
    if text.chars().count() <= n_chars {
        return text.to_owned();
    }
    let head: String = text.chars().take(n_chars.saturating_sub(1)).collect();
    format!("{}…", head.trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::recording_of_runs;
    use gpumem_core::analyze::{Rules, analyze};

    #[track_caller]
    fn check_way(before: Option<u64>, after: Option<u64>, expected: Option<&str>) {
        let level = |n_gib: Option<u64>| n_gib.map(Bytes::gib);
        assert_eq!(
            way((level(before), level(after)), Units::Binary).as_deref(),
            expected
        );
    }

    #[test]
    fn levels_are_a_way_and_unknown_is_not_zero() {
        check_way(Some(4), Some(5), Some("4 GiB → 5 GiB"));
        check_way(Some(4), Some(4), Some("4 GiB"));
        check_way(None, Some(5), Some("not available → 5 GiB"));
        check_way(None, None, None);
    }

    #[test]
    fn a_run_is_named_by_its_cell_its_number_and_its_place() {
        let recording = recording_of_runs(&[0, 1, 0]);
        let analysis = analyze(&recording, &Rules::default());
        let read = of_run(
            &recording,
            &analysis,
            DeviceIdx(0),
            RunIdx(2),
            Units::Binary,
        );
        assert_eq!(read.name, "step0(model)");
        assert_eq!(read.place, "In [3] · run 2");
        assert_eq!(read.figures.last(), Some(&("took", "1.0 s".to_owned())));
    }

    #[test]
    fn long_names_are_cut_between_characters() {
        assert_eq!(shortened("naïve änderung", 7), "naïve…");
        assert_eq!(shortened("short", 7), "short");
    }
}
