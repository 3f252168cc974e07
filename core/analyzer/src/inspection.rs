//! What to inspect after a run: whether a verdict may be new, and for which devices a search for holders
//! or segments is worthwhile.
//!
//! An inspection takes time between two of the user's runs. This module decides whether it is worth
//! that; the recorder then does it.
//!
//! ```
//! use gpumem_analyzer::inspection::holders_wanted;
//! use gpumem_model::recording::{DeviceIdx, RunIdx};
//! # mod example { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/recordings/leaking.rs")); }
//! # use example::leaking;
//!
//! assert_eq!(holders_wanted(&leaking(), RunIdx(11)), [DeviceIdx(0)]);
//! ```

use std::cmp::Ordering;

use crate::Rules;
use crate::device_rows::GIVEN_BACK;
use crate::findings::fragmentation::is_in_pieces;
pub use crate::findings::outlived::least_outlived;
use crate::idle;
use gpumem_model::holders::Holder;
use gpumem_model::recording::{
    DeviceIdx, DeviceKind, Reading, Recording, Run, RunIdx, RunLevels, Sample, Series, Status,
};
use gpumem_model::source_text::deletes;
use gpumem_model::units::{ByteDelta, Bytes};

/// The host's level changes by this much on its own.
const HOST_NOISE: Bytes = Bytes::mib(1);

/// The smallest change of the process's memory that starts a search on the host, …
const MIN_HOST_CHANGE: Bytes = Bytes::mib(4);

/// … and the smallest growth, without an accelerator, if the same code has grown so twice in a row.
const MIN_HOST_GROWTH: Bytes = Bytes::new(512 << 10);

/// While a run goes on, its growth is first worth a search when it is this part of the device, …
const SHARE_WORTH_A_LOOK: u64 = 100;

/// … or by this much on the host.
const HOST_WORTH_A_LOOK: Bytes = Bytes::mib(32);

/// Code counts as repeated if it ran at most this many runs ago.
const MAX_BETWEEN: usize = 64;

/// At most this many consecutive runs may lack a look.
const MAX_MISSED: usize = 3;

/// Segments are read again if their free pieces or reserved changed by this share of reserved.
const MOVED: f64 = 1.0 / 64.0;

/// Holders are searched again if the level has fallen by this share since the last search.
const FELL: f64 = 1.0 / 16.0;

/// A device whose segments are worth reading, from [`segments_wanted`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SegmentsWanted {
    /// Which device.
    pub device: DeviceIdx,
    /// How many blocks its allocator holds; reading takes time for each.
    pub n_blocks: Option<u64>,
}

/// Whether a verdict may be new after a run: a level changed, or the run failed, was marked, or
/// contained blocks.
///
/// The host's levels change with every cell, and so does what other processes use; they do not count.
pub fn has_news(recording: &Recording, idx: RunIdx) -> bool {
    let run = recording.run(idx);
    let moved = |levels: &RunLevels| {
        let Some(after) = &levels.after else {
            return false;
        };
        let before = &levels.before;
        let own = |reading: &Reading| reading.driver.process_used.known().unwrap_or_default();
        let is_host = recording.device(levels.device).kind == DeviceKind::Host;
        let by = own(after).since(own(before)).magnitude();
        before.allocators != after.allocators || by >= HOST_NOISE || (!is_host && by > Bytes::ZERO)
    };
    let is_marked = |levels: &RunLevels| {
        let mut series = recording.samples_of(idx, levels.device);
        series.any(|(series, _)| matches!(series, Series::Marked(_)))
    };
    let mut later = recording.runs()[idx.get()..].iter();
    let is_outlived = |levels: &RunLevels| {
        let found = recording.holders(idx, levels.device);
        found.is_some_and(|found| !found.outlived.is_empty())
    };
    let has_children = |levels: &RunLevels| {
        let after = levels.after.as_ref();
        after.is_some_and(|after| !after.driver.children.is_empty())
    };
    run.status != Status::Ok
        || run
            .levels
            .iter()
            .any(|it| is_outlived(it) || has_children(it))
        || later.any(|run| run.parent == Some(idx))
        || run.levels.iter().any(|it| moved(it) || is_marked(it))
}

/// The devices whose holders are worth searching after a run.
///
/// Those are devices on which the run left more than it found, or much less than the last search did, or
/// less if `IPython` kept something, and those on which a `del`, or an error that replaces the one before, freed
/// nothing. The host is one of them if the same code made it grow twice in a row; without an accelerator also if a
/// name has had more after that code ran, and now and then.
pub fn holders_wanted(recording: &Recording, idx: RunIdx) -> Vec<DeviceIdx> {
    let Some(run) = recording.runs().get(idx.get()) else {
        return Vec::new();
    };
    let text = recording.text(run).unwrap_or_default();
    let gives_back = deletes(text) || run.status != Status::Ok;
    let least = least_host_growth(recording);
    let is_wanted = |levels: &&RunLevels| {
        rises_in_steps(recording, idx, levels.device)
            || may_have_new_holders(recording, levels, gives_back)
            || grown_again(recording, run, levels, least).is_some()
            || may_grow_unseen(recording, run, levels.device)
    };
    let wanted = run.levels.iter().filter(is_wanted);
    wanted.map(|levels| levels.device).collect()
}

/// The devices whose holders are worth searching when somebody reads the recording: a name may be idle, and may have
/// given its object to another one since the latest look.
pub fn holders_wanted_to_read(recording: &Recording) -> Vec<DeviceIdx> {
    let mut devices: Vec<DeviceIdx> = recording.devices().iter().map(|it| it.idx).collect();
    devices.retain(|it| idle::is_unseen(recording, *it, capacity(recording, *it)));
    devices
}

/// How much more a device has than before a run that goes on, if that is worth a search: a first time, or
/// twice as much as at the `latest` search in it.
pub fn holders_wanted_inside(
    recording: &Recording,
    levels: &RunLevels,
    now: &Sample,
    latest: Option<ByteDelta>,
) -> Option<ByteDelta> {
    let kind = recording.device(levels.device).kind;
    let before = Sample::from_reading(&levels.before);
    let (grown, least) = if kind.is_accelerator() {
        let capacity = levels.before.driver.capacity.known();
        let least = capacity.map_or(HOST_WORTH_A_LOOK, |it| {
            Bytes::new(it.get() / SHARE_WORTH_A_LOOK)
        });
        // What was imported since has handed out all that it has.
        let before = before.allocated.unwrap_or_default();
        (now.allocated?.since(before), least)
    } else {
        let is_all = !has_accelerator(recording);
        let grown = now.process_used?.since(before.process_used?);
        (
            Some(grown).filter(|_| is_all && kind == DeviceKind::Host)?,
            HOST_WORTH_A_LOOK,
        )
    };
    let least = latest.map_or(least.since(Bytes::ZERO), |latest| latest + latest);
    (grown >= least).then_some(grown)
}

/// The capacity of a device, as the latest run read it.
pub fn capacity(recording: &Recording, device: DeviceIdx) -> Option<Bytes> {
    let mut runs = recording.runs().iter().rev();
    runs.find_map(|run| run.levels_on(device)?.before.driver.capacity.known())
}

/// The level of a device fell in a run by about as much as this.
pub fn gave_back(recording: &Recording, idx: RunIdx, device: DeviceIdx, n_bytes: Bytes) -> bool {
    let levels = recording.run(idx).levels_on(device);
    let fall = levels.and_then(|levels| {
        let (before, after) = (
            Sample::from_reading(&levels.before),
            Sample::from_reading(levels.after.as_ref()?),
        );
        let is_host = recording.device(device).kind == DeviceKind::Host;
        let level = |it: &Sample| {
            if is_host {
                it.process_used
            } else {
                it.allocated
            }
        };
        Some(level(&before)?.saturating_sub(level(&after)?))
    });
    fall.is_some_and(|fall| fall.as_f64() >= GIVEN_BACK * n_bytes.as_f64())
}

/// The text of a run's cell lets go of a name.
pub fn lets_go(recording: &Recording, idx: RunIdx) -> bool {
    let text = recording.text(recording.run(idx)).unwrap_or_default();
    deletes(text) || text.contains("= None")
}

/// A loop accumulates, even if the run frees as much at its start.
fn rises_in_steps(recording: &Recording, run: RunIdx, device: DeviceIdx) -> bool {
    let mut series = recording.samples_of(run, device);
    series.any(|(series, points)| {
        let ends = points.first().zip(points.last());
        let rises = ends.is_some_and(|(first, last)| last.allocated > first.allocated);
        !matches!(series, Series::Sampled) && rises
    })
}

fn may_have_new_holders(recording: &Recording, levels: &RunLevels, gives_back: bool) -> bool {
    let moved = moved_since(recording, &levels.before, levels);
    let Some((seen, found)) = recording.latest_holders(levels.device) else {
        return moved == Some(Ordering::Greater);
    };
    match moved {
        Some(Ordering::Greater) => true,
        Some(Ordering::Equal) if gives_back => true,
        // What `%gpumem release` gave back, it gave back between two runs.
        Some(_) => {
            let then = recording.run(seen).levels_on(levels.device);
            let then = then.and_then(|then| then.after.as_ref());
            then.is_some_and(|then| {
                moved_since(recording, then, levels) == Some(Ordering::Less)
                    && (!found.kept.is_empty()
                        || !found.outlived.is_empty()
                        || fell_far(then, levels))
            })
        }
        None => false,
    }
}

/// By how much a run made the host's level grow, if that is much and the run of the same code before it did so, too.
pub fn host_growth(recording: &Recording, idx: RunIdx) -> Option<(DeviceIdx, Bytes)> {
    let run = recording.runs().get(idx.get())?;
    let mut levels = run.levels.iter();
    levels.find_map(|levels| {
        let grown = grown_again(recording, run, levels, MIN_HOST_CHANGE)?;
        Some((levels.device, grown.magnitude()))
    })
}

/// Beside an accelerator the host's level says little.
fn least_host_growth(recording: &Recording) -> Bytes {
    if has_accelerator(recording) {
        MIN_HOST_CHANGE
    } else {
        MIN_HOST_GROWTH
    }
}

/// The host's level changes on its own. It counts if the same code made it grow enough twice in a row.
fn grown_again(
    recording: &Recording,
    run: &Run,
    levels: &RunLevels,
    least: Bytes,
) -> Option<ByteDelta> {
    let grown = |levels: &RunLevels| {
        let ends = [Some(&levels.before), levels.after.as_ref()];
        let [before, after] =
            ends.map(|it| it.and_then(|it| Sample::from_reading(it).process_used));
        let grown = after?.since(before?);
        (grown >= least.since(Bytes::ZERO)).then_some(grown)
    };
    let is_host = recording.device(levels.device).kind == DeviceKind::Host;
    let by = grown(levels).filter(|_| is_host)?;
    let same = earlier_of_same(recording, run).next()?;
    same.levels_on(levels.device).and_then(grown).and(Some(by))
}

/// The runs of the same code before it, the latest first.
fn earlier_of_same<'a>(recording: &'a Recording, run: &'a Run) -> impl Iterator<Item = &'a Run> {
    let earlier = recording.runs()[..run.idx.get()].iter().rev();
    let earlier = earlier.take(MAX_BETWEEN);
    earlier.filter(|it| it.revision == run.revision && it.parent == run.parent)
}

/// Its level does not show all that names hold of the host, such as shared memory. Code that runs again is looked at
/// after its second run, its fourth, and so on, and after each as long as a name has more.
fn may_grow_unseen(recording: &Recording, run: &Run, device: DeviceIdx) -> bool {
    let is_host = recording.device(device).kind == DeviceKind::Host;
    let n_earlier = earlier_of_same(recording, run).count();
    if !is_host || n_earlier == 0 || has_accelerator(recording) {
        return false;
    }
    // A look may have been missed.
    let mut latest = earlier_of_same(recording, run).take(MAX_MISSED);
    let look = latest.find_map(|it| recording.holders(it.idx, device));
    let has_more = |it: &Holder| it.grown >= Some(MIN_HOST_GROWTH.since(Bytes::ZERO));
    let grew = look.is_some_and(|look| look.roots.iter().chain(&look.sharing).any(has_more));
    grew || (n_earlier + 1).is_power_of_two()
}

fn has_accelerator(recording: &Recording) -> bool {
    let mut devices = recording.devices().iter();
    devices.any(|it| it.kind.is_accelerator())
}

/// Whether the level fell so far since `then` that its names are outdated.
fn fell_far(then: &Reading, levels: &RunLevels) -> bool {
    let now = levels.after.as_ref();
    let levels = Sample::from_reading(then)
        .allocated
        .zip(now.and_then(|now| Sample::from_reading(now).allocated));
    levels.is_some_and(|(then, now)| then.saturating_sub(now).as_f64() >= then.as_f64() * FELL)
}

/// How the level of a run's device at its end compares with `before`.
///
/// The host counts only if there is no accelerator, because its level changes on its own.
fn moved_since(recording: &Recording, before: &Reading, levels: &RunLevels) -> Option<Ordering> {
    let (before, after) = (
        Sample::from_reading(before),
        Sample::from_reading(levels.after.as_ref()?),
    );
    if recording.device(levels.device).kind == DeviceKind::Host {
        let is_all = !has_accelerator(recording);
        let moved = after.process_used?.since(before.process_used?);
        let is_much = moved.magnitude() >= MIN_HOST_CHANGE;
        return is_all.then(|| {
            if is_much {
                moved.cmp(&ByteDelta::ZERO)
            } else {
                Ordering::Equal
            }
        });
    }
    let before = before.allocated.unwrap_or_default();
    Some(after.allocated?.cmp(&before))
}

/// The devices on which an ended run left enough free pieces to read the segments, unless hardly anything changed
/// since the last time.
pub fn segments_wanted(recording: &Recording, idx: RunIdx, rules: &Rules) -> Vec<SegmentsWanted> {
    let Some(run) = recording.runs().get(idx.get()) else {
        return Vec::new();
    };
    let wanted = run.levels.iter().filter_map(|levels| {
        let device = levels.device;
        let now = Fragments::after(levels)?;
        let is_wanted = is_in_pieces(now.split, now.reserved, rules)
            // What was found at the moment when memory ran out stays.
            && recording.mapped(idx, device).is_none()
            && !lies_as_before(recording, device, &now);
        is_wanted.then_some(SegmentsWanted {
            device,
            n_blocks: now.n_blocks,
        })
    });
    wanted.collect()
}

/// Hardly anything changed since the segments were last read. If reading failed, it is not tried again
/// before much has changed either.
fn lies_as_before(recording: &Recording, device: DeviceIdx, now: &Fragments) -> bool {
    let Some(last) = recording.latest_mapped(device) else {
        return false;
    };
    let of_run = || Fragments::after(recording.run(last.run).levels_on(device)?);
    let then = last.found.as_ref().map_or_else(
        |_| of_run().map(|then| (then.split, then.reserved)),
        |found| Some((found.split(), found.reserved())),
    );
    let is_near = |now_bytes: Bytes, then: Bytes| {
        let moved = now_bytes.since(then).magnitude();
        moved.as_f64() <= now.reserved.as_f64() * MOVED
    };
    then.is_some_and(|(split, reserved)| {
        is_near(now.split, split) && is_near(now.reserved, reserved)
    })
}

/// The free bytes of an allocator in partly used segments.
struct Fragments {
    split: Bytes,
    reserved: Bytes,
    n_blocks: Option<u64>,
}

impl Fragments {
    /// At a run's end, of the allocator that counts them.
    fn after(levels: &RunLevels) -> Option<Self> {
        let mut allocators = levels.after.as_ref()?.allocators.iter();
        allocators.find_map(|it| {
            Some(Self {
                split: it.inactive_split.known()?,
                reserved: it.reserved.known()?,
                n_blocks: it.n_blocks,
            })
        })
    }
}

#[cfg(test)]
mod tests;
