//! A run that filled a name in a loop which is over before it is counted, or turns too fast for levels to be
//! read: what the name has at the run's end tells what each item keeps.
//!
//! Of items without a graph nobody knows whether they are there to be collected: only graphs are judged.

use gpumem_heap::filling_loop;
use gpumem_model::holders::{DeviceHolders, Holder, Keeper};
use gpumem_model::recording::{DeviceIdx, Recording, Run, Sample, Series};
use gpumem_model::units::{ByteDelta, Bytes, Nanos};

use super::loop_place::{LoopPlace, LoopUnit};
use super::loops;
use super::paths::Paths;
use super::row::{metric_of, of_sample};
use super::series::{Key, StepSeries};

/// The name has most of what the run kept, and most of what it has is kept for its items.
const MOST: f64 = 0.5;

/// Fewer items may be set up rather than collected.
const FEW: u64 = 6;

/// The course has so many points: its items are alike.
const N_POINTS: u64 = 16;

/// The items that a run gave a name, as the steps of its loop.
pub(super) fn items(
    recording: &Recording,
    paths: &Paths,
    run: &Run,
    device: DeviceIdx,
) -> Option<StepSeries> {
    let ended = run.ended.filter(|_| run.parent.is_none())?;
    let mut series = recording.series_of(run.idx);
    let is_marked = series.any(|(_, series, _)| matches!(series, Series::Marked(_)));
    let look = recording.holders(run.idx, device)?;
    let levels = run.levels.iter().find(|it| it.device == device)?;
    let ends = [
        Sample::of(&levels.before),
        Sample::of(levels.after.as_ref()?),
    ];
    let metric = metric_of(&ends)?;
    let [start, end] = ends.map(|it| of_sample(&it, metric).unwrap_or_default());
    let kept = end.since(start).as_f64();
    let (holder, grown) = most_grown(recording, run, device, look)?;
    let (n, n_bytes) = holder.entries();
    let is_filled = grown >= MOST * kept && n_bytes >= MOST * grown && n_bytes <= kept / MOST;
    if is_marked || n < FEW || !is_filled || !keeps_graphs(holder) {
        return None;
    }
    if loops::has_blocks(recording, run) {
        return None;
    }
    let in_loop = place(recording, run, holder)?;
    let level = |point: u64| start + Bytes::new((n_bytes * point as f64 / N_POINTS as f64) as u64);
    let n_steps = usize::try_from(n).unwrap_or(usize::MAX);
    let mut path = paths.names(run.idx);
    path.push(format!("items of {}", in_loop.name()));
    Some(StepSeries {
        key: Key::of_steps(run, path, device),
        run: run.idx,
        metric,
        start: Some(start),
        levels: (1..=N_POINTS).map(level).collect(),
        n_grown: (n_steps, n_steps),
        n_steps,
        steps_per_point: n as f64 / N_POINTS as f64,
        in_loop: Some(in_loop),
        period: ended
            .get()
            .checked_sub(run.started.get())
            .map(|it| Nanos::new(it / n)),
    })
}

/// The name with the most that is new, and how much that is. At the first look of all, what it has.
fn most_grown<'a>(
    recording: &Recording,
    run: &Run,
    device: DeviceIdx,
    look: &'a DeviceHolders,
) -> Option<(&'a Holder, f64)> {
    let is_first = recording.holders_before(run.idx, device).is_none();
    let grown = |it: &Holder| match it.fresh.or(is_first.then_some(it.retained)) {
        Some(fresh) => fresh.since(Bytes::ZERO),
        None => it.grown.unwrap_or(ByteDelta::ZERO),
    };
    let holders = look.roots.iter().chain(&look.sharing);
    let most = holders.max_by_key(|it| grown(it))?;
    Some((most, grown(most).as_f64()))
}

/// Each item keeps a graph, or the frames of an exception.
fn keeps_graphs(holder: &Holder) -> bool {
    let traits = &holder.traits;
    let is_graph = traits.graph.as_f64() >= MOST * holder.retained.as_f64();
    is_graph || traits.keeper == Some(Keeper::Traceback)
}

/// The loop that fills it, as some cell's text has it.
fn place(recording: &Recording, run: &Run, holder: &Holder) -> Option<LoopPlace> {
    let sources = recording.sources(run);
    let (idx, line) = filling_loop(holder, &sources)?;
    let text = if idx == 0 {
        ""
    } else {
        sources[idx].lines().nth(line as usize - 1)?.trim()
    };
    Some(LoopPlace {
        unit: LoopUnit::Item,
        line,
        text: text.to_owned(),
        ..LoopPlace::default()
    })
}
