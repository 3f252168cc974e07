//! Cells, blocks and steps as slices.

use std::borrow::Cow;
use std::cmp::Reverse;

use serde_json::{Map, Value, json};

use super::event::{Micros, Phase, TraceArgs, ViewerEvent};
use super::lanes::Lanes;
use super::{NOTEBOOK, thread_of};
use gpumem_analyzer::{Analysis, Peak, RunRow, cell_label};
use gpumem_model::recording::{Points, Recording, Run, RunIdx, RunKind, Series};
use gpumem_model::units::{ByteDelta, Bytes, Nanos};

/// What is drawn in the tracks of the cells.
pub(super) struct Slices<'a> {
    pub(super) events: Vec<ViewerEvent<'a>>,
    pub(super) n_lanes: usize,
}

/// A slice that has no track yet.
struct Slice<'a> {
    /// The run, or the run that the step is in.
    run: RunIdx,
    is_step: bool,
    name: Cow<'a, str>,
    start: Micros,
    end: Micros,
    args: TraceArgs,
}

/// Every run and every step that the marks of a loop bound.
pub(super) fn slices<'a>(recording: &'a Recording, analysis: &Analysis) -> Slices<'a> {
    let mut slices = Vec::new();
    let last = recording.last_instant();
    for run in recording.runs() {
        slices.push(of_run(recording, analysis, run, last));
        slices.extend(steps(recording, run));
    }
    slices.sort_by_key(|slice| (slice.start, Reverse(slice.end)));
    let mut lanes = Lanes::default();
    let mut lane_of_run = vec![0; recording.runs().len()];
    let mut events = Vec::with_capacity(slices.len());
    for slice in slices {
        let around = if slice.is_step {
            Some(slice.run)
        } else {
            recording.run(slice.run).parent
        };
        let preferred = around.map_or(0, |run| lane_of_run[run.get()]);
        let lane = lanes.place(preferred, (slice.start, slice.end));
        if !slice.is_step {
            lane_of_run[slice.run.get()] = lane;
        }
        events.push(ViewerEvent {
            ph: Phase::Complete,
            name: slice.name,
            cat: Some(if slice.is_step { "step" } else { "run" }),
            pid: NOTEBOOK,
            tid: thread_of(recording, lane),
            ts: slice.start,
            dur: Some(slice.end.since(slice.start)),
            s: None,
            args: slice.args,
        });
    }
    Slices {
        events,
        n_lanes: lanes.len(),
    }
}

/// A run that has not ended goes on until `last`.
fn of_run<'a>(
    recording: &'a Recording,
    analysis: &Analysis,
    run: &'a Run,
    last: Nanos,
) -> Slice<'a> {
    let ended = run.ended.unwrap_or(last);
    Slice {
        run: run.idx,
        is_step: false,
        name: name(recording, run),
        start: run.started.into(),
        end: ended.max(run.started).into(),
        args: figures(recording, analysis, run),
    }
}

fn name<'a>(recording: &Recording, run: &'a Run) -> Cow<'a, str> {
    if let (RunKind::Block, Some(label)) = (run.kind, &run.label) {
        return Cow::from(label);
    }
    let label = cell_label(recording, run);
    Cow::from(match run.execution_count {
        Some(number) => format!("[{number}] {label}"),
        None => label,
    })
}

fn figures(recording: &Recording, analysis: &Analysis, run: &Run) -> TraceArgs {
    let mut args = Map::new();
    args.insert("run".to_owned(), run.idx.0.into());
    args.insert("status".to_owned(), run.status.name().into());
    for row in rows(analysis, run.idx) {
        let label = recording.device(row.device).label.clone();
        args.insert(label, of_row(row));
    }
    TraceArgs::Other(args.into())
}

fn rows(analysis: &Analysis, run: RunIdx) -> &[RunRow] {
    let rows = &analysis.rows;
    let from = rows.partition_point(|row| row.run < run);
    let to = rows.partition_point(|row| row.run <= run);
    &rows[from..to]
}

fn of_row(row: &RunRow) -> Value {
    json!({
        "metric": row.metric.name(),
        "before_bytes": row.before.map(Bytes::get),
        "after_bytes": row.after.map(Bytes::get),
        "kept_bytes": row.kept.map(ByteDelta::get),
        "peak_bytes": row.peak.map(Peak::low).map(Bytes::get),
    })
}

/// The steps of a run's loops. All devices are read at each mark, so one of them tells when.
fn steps<'a>(recording: &'a Recording, run: &'a Run) -> Vec<Slice<'a>> {
    let mut loops: Vec<(&str, &Points)> = Vec::new();
    for (_, series, points) in recording.series_of(run.idx) {
        if let Series::Marked(label) = series
            && loops.iter().all(|(known, _)| known != label)
        {
            loops.push((label, points));
        }
    }
    let of_loop = |(label, points)| steps_of(run, label, points);
    loops.into_iter().flat_map(of_loop).collect()
}

/// From each mark to the next. Downsampling leaves marks out: a slice may be several steps.
fn steps_of<'a>(run: &Run, label: &'a str, points: &Points) -> Vec<Slice<'a>> {
    let marks = points.iter().zip(points.iter().skip(1));
    let between = marks.filter(|(before, after)| before.ordinal < after.ordinal);
    between
        .map(|(before, after)| Slice {
            run: run.idx,
            is_step: true,
            name: Cow::from(label),
            start: before.at.into(),
            end: after.at.into(),
            args: TraceArgs::Steps {
                first_step: before.ordinal + 1,
                last_step: after.ordinal,
            },
        })
        .collect()
}
