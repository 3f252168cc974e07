//! A run that filled a name in a loop which is over before it is counted, or turns too fast for levels to be
//! read: what the name has at the run's end tells what each item keeps.
//!
//! Of items without a graph nobody knows whether they are there to be collected, unless cells do little with them
//! or a library calls the function that adds them (a hook): only these and graphs are judged.

use gpumem_heap::{FillingLoop, Uses, filling_loop, uses};
use gpumem_model::holders::{DeviceHolders, Holder, Keeper};
use gpumem_model::recording::{DeviceIdx, FrameOrigin, Recording, Run, Sample, Series};
use gpumem_model::units::{Bytes, Nanos};

use super::loop_place::{LoopPlace, LoopUnit};
use super::loops;
use super::row::{Metric, metric_of, of_sample};

/// Most of what is new in the name is its items', and the level shows most of that.
const MOST: f64 = 0.5;

/// Fewer items may be set up rather than collected.
const FEW: u64 = 6;

/// What a run gave a name in a loop.
pub(super) struct Items {
    pub(super) metric: Metric,
    /// The level before the run.
    pub(super) start: Bytes,
    pub(super) n: u64,
    /// What all of them keep.
    pub(super) n_bytes: Bytes,
    /// How long each took.
    pub(super) period: Option<Nanos>,
    pub(super) in_loop: LoopPlace,
}

/// The items that a run gave a name.
pub(super) fn items(recording: &Recording, run: &Run, device: DeviceIdx) -> Option<Items> {
    let ended = run.ended.filter(|_| run.parent.is_none())?;
    let look = recording.holders(run.idx, device)?;
    let levels = run.levels_on(device)?;
    let ends = [
        Sample::from_reading(&levels.before),
        Sample::from_reading(levels.after.as_ref()?),
    ];
    let metric = metric_of(&ends)?;
    let [start, end] = ends.map(|it| of_sample(&it, metric).unwrap_or_default());
    let kept = end.since(start).as_f64();
    let (holder, grown) = most_grown(recording, run, device, look)?;
    let (n, n_bytes) = holder.entries();
    let is_filled = n_bytes >= MOST * grown && kept >= MOST * n_bytes;
    if n < FEW || !is_filled || is_judged_by_steps(recording, run) {
        return None;
    }
    let sources = recording.sources(run);
    let found = filling_loop(holder, &sources)?;
    let is_looked_up = || found.by_library || uses(holder, &sources) == Uses::LooksUp;
    if !keeps_graphs(holder) && (is_hit(recording, run, &found, n) || !is_looked_up()) {
        return None;
    }
    Some(Items {
        metric,
        start,
        n,
        n_bytes: Bytes::new(n_bytes as u64),
        period: ended
            .get()
            .checked_sub(run.started.get())
            .map(|it| Nanos::new(it / n)),
        in_loop: place(found, &sources)?,
    })
}

/// What is looked up is most often there: the loop in the cell's own text has turned more than twice for each item.
fn is_hit(recording: &Recording, run: &Run, found: &FillingLoop, n: u64) -> bool {
    let mut loops = recording.loops(run.idx);
    let is_it = |line: u32| found.source == 0 && line == found.line;
    loops.any(|it| it.origin == FrameOrigin::Own && is_it(it.line) && it.n_iterations > 2 * n)
}

/// Its marks or blocks tell what each step keeps.
fn is_judged_by_steps(recording: &Recording, run: &Run) -> bool {
    let mut series = recording.series_of(run.idx);
    let is_marked = series.any(|(_, series, _)| matches!(series, Series::Marked(_)));
    is_marked || loops::has_blocks(recording, run)
}

/// The name with the most that is new, and how much that is. At the first look of all, what it has.
fn most_grown<'a>(
    recording: &Recording,
    run: &Run,
    device: DeviceIdx,
    look: &'a DeviceHolders,
) -> Option<(&'a Holder, f64)> {
    let is_first = recording.holders_before(run.idx, device).is_none();
    let grown = |it: &Holder| it.gained(is_first).unwrap_or_default();
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

/// The loop as its text has it; that of the run's own text is read where it is shown.
fn place(found: FillingLoop, sources: &[&str]) -> Option<LoopPlace> {
    let line = || sources[found.source].lines().nth(found.line as usize - 1);
    let text = if found.source == 0 {
        ""
    } else {
        line()?.trim()
    };
    Some(LoopPlace {
        unit: LoopUnit::Item,
        line: found.line,
        text: text.to_owned(),
        ..LoopPlace::default()
    })
}
