//! What would have avoided an out-of-memory error.

use std::collections::BTreeSet;

use super::super::oom_cause::{HeldByError, OomCause};
use super::super::suggest;
use super::Case;
use crate::idle;
use crate::name_reads::{LastUse, NameReads};
use crate::row::RunRow;
use gpumem_heap::is_data;
use gpumem_model::holders::{DeviceHolders, Holder, RootKind};
use gpumem_model::recording::{AllocatorLevels, DeviceKind, Framework, OomHolder, Source, Status};
use gpumem_model::source_text::{self, is_name_letter};
use gpumem_model::units::{ByteDelta, Bytes};

/// torch's expandable segments map and unmap this much of the large pool at once: a free piece that is
/// smaller stays where it is.
const EXPANDABLE_PAGE: Bytes = Bytes::mib(20);

/// Pieces of the cache that come to less than this share of the device are as usual.
const MUCH_IN_PIECES: f64 = 0.1;

/// Where optimizers of torch, and most others, keep what they have for a parameter.
const STATE: &str = ".state[";

/// An optimizer whose state is new by this share has taken its first step.
const NEW: f64 = 0.8;

/// From this many tensors on, a function's variable collects rather than computes.
const MANY: u64 = 8;

/// Queues of Python, which threads fill ahead.
const QUEUES: [&str; 4] = ["Queue", "LifoQueue", "PriorityQueue", "SimpleQueue"];

/// Code with one of these may run a backward pass; …
const TRAINS: [&str; 3] = ["backward", "train", "fit"];
/// … what calls a library may, too, unless it says that it does something else.
const EVALUATES: [&str; 10] = [
    "eval", "valid", "val_", "test", "predict", "infer", "generate", "score", "embed", "encode",
];

/// The most decisive first; none only where the cell went on, and nothing is known that it could do better.
pub(super) fn of_case(case: &Case<'_>) -> Vec<OomCause> {
    let is_enough = |it: &OomCause| short(case).is_some_and(|missing| it.frees() >= Some(missing));
    let mut causes: Vec<OomCause> = [
        too_large(case),
        limited(case),
        fragmented(case),
        cached_elsewhere(case).filter(is_enough),
        other_processes(case).filter(is_enough),
        collected(case),
        old_copy(case),
        earlier_error(case),
        outputs(case).filter(is_enough),
        optimizer_state(case),
        no_backward(case),
    ]
    .into_iter()
    .flatten()
    .collect();
    // What is unused may still be wanted, and pieces may be as usual: last.
    let never_fits =
        |it: &OomCause| matches!(it, OomCause::TooLarge { .. } | OomCause::Limited { .. });
    if !causes.iter().any(never_fits) {
        causes.extend(unused(case));
    }
    if causes.is_empty() {
        causes.extend(in_pieces(case));
    }
    if causes.is_empty() {
        causes.extend(together(case));
    }
    if causes.is_empty() && !case.survived() {
        causes.push(OomCause::SmallerStep);
    }
    causes.extend(traceback(case));
    causes.extend(case.elsewhere.then_some(OomCause::Unread));
    causes
}

fn too_large(case: &Case<'_>) -> Option<OomCause> {
    let (wanted, room) = (case.figures().wanted?, case.room()?);
    (wanted > room).then_some(OomCause::TooLarge { room })
}

fn limited(case: &Case<'_>) -> Option<OomCause> {
    let (wanted, limit) = (case.figures().wanted?, case.limit()?);
    let is_enough = case.free().is_none_or(|free| free >= wanted);
    (is_enough && wanted <= limit).then_some(OomCause::Limited { limit })
}

/// The cache alone had enough.
fn fragmented(case: &Case<'_>) -> Option<OomCause> {
    let wanted = case.figures().wanted?;
    pieces(case).filter(|_| case.unallocated().is_some_and(|it| it >= wanted))
}

/// The cache had enough together with what was free beside it, and takes a good part of the device.
fn in_pieces(case: &Case<'_>) -> Option<OomCause> {
    let (missing, room, unallocated) = (case.missing()?, case.room()?, case.unallocated()?);
    let is_much = unallocated.as_f64() >= MUCH_IN_PIECES * room.as_f64();
    pieces(case).filter(|_| is_much && missing > Bytes::ZERO && unallocated >= missing)
}

fn pieces(case: &Case<'_>) -> Option<OomCause> {
    let (wanted, unallocated) = (case.figures().wanted?, case.unallocated()?);
    let largest = case.figures().largest_free;
    if largest.is_some_and(|largest| largest >= wanted) {
        return None;
    }
    let is_torch = matches!(case.oom.framework, None | Some(Framework::Torch));
    let is_movable = largest.is_none_or(|largest| largest >= EXPANDABLE_PAGE);
    Some(OomCause::Fragmented {
        unallocated,
        largest,
        can_expand: is_torch
            && is_movable
            && case.recording.device(case.device).kind == DeviceKind::Gpu,
    })
}

/// What is enough only together, the cheapest first: of what costs nothing up to what somebody may need.
fn together(case: &Case<'_>) -> Vec<OomCause> {
    let Some(missing) = short(case) else {
        return Vec::new();
    };
    let cheap = cached_elsewhere(case).into_iter().chain(outputs(case));
    let mut found: Vec<OomCause> = cheap
        .chain(idle(case))
        .chain(other_processes(case))
        .collect();
    let size = |it: &OomCause| it.frees().unwrap_or_default();
    let mut sum: Bytes = found.iter().map(size).sum();
    if sum < missing {
        return Vec::new();
    }
    // The dearest first, what is not needed is left out.
    for idx in (0..found.len()).rev() {
        let without = sum.saturating_sub(size(&found[idx]));
        if without >= missing {
            found.remove(idx);
            sum = without;
        }
    }
    found
}

fn cached_elsewhere(case: &Case<'_>) -> Option<OomCause> {
    if case.is_limited() {
        return None;
    }
    let requester = case.oom.framework.map(Framework::name);
    let unused = |levels: &AllocatorLevels| {
        let (reserved, allocated) = (levels.reserved.known()?, levels.allocated.known()?);
        Some(reserved.saturating_sub(allocated))
    };
    let can_release = |source: Source| matches!(source, Source::Torch | Source::Cupy | Source::Sim);
    let after = case.levels?.after.as_ref()?;
    let (source, cached) = after
        .allocators
        .iter()
        .filter(|levels| can_release(levels.source) && Some(levels.source.name()) != requester)
        .filter_map(|levels| Some((levels.source, unused(levels)?)))
        .max_by_key(|(_, cached)| *cached)?;
    Some(OomCause::CachedElsewhere { source, cached })
}

fn other_processes(case: &Case<'_>) -> Option<OomCause> {
    let (used, who) = case.others();
    let used = used.filter(|_| !case.is_limited())?;
    Some(OomCause::OtherProcesses {
        used,
        pids: who.iter().map(|it| it.pid).collect(),
    })
}

fn collected(case: &Case<'_>) -> Option<OomCause> {
    let of_name = collecting_holder(case).map(|holder| OomCause::Collected {
        kept: holder.grown.unwrap_or_default().magnitude(),
        name: holder.name.clone(),
    });
    of_name.or_else(|| collected_in_function(case))
}

/// What a local variable of a function that failed has, no variable of the notebook's does: it came about in
/// this very run.
fn collected_in_function(case: &Case<'_>) -> Option<OomCause> {
    let least = case
        .missing()
        .max(case.figures().wanted)?
        .max(half_of_kept(case));
    let is_local = |it: &&OomHolder| {
        let is_of_frame = matches!(it.kind, RootKind::ThreadFrame | RootKind::Traceback);
        is_of_frame && it.name.contains(" in ")
    };
    let holder = case.oom.holders.iter().find(is_local)?;
    (holder.n_storages >= MANY && holder.used >= least).then(|| OomCause::Collected {
        kept: holder.used,
        name: holder.name.clone(),
    })
}

fn half_of_kept(case: &Case<'_>) -> Bytes {
    let kept = case.row().and_then(RunRow::kept_alone);
    Bytes::new(kept.unwrap_or_default().magnitude().get() / 2)
}

/// The name that collected most of what the run kept, if that is as much as was missing.
pub(super) fn collecting_holder<'a>(case: &Case<'a>) -> Option<&'a Holder> {
    let least = short(case)?.max(half_of_kept(case));
    let look = case.recording.holders(case.outermost.idx, case.device)?;
    let grown = |holder: &Holder| holder.grown.unwrap_or_default();
    let is_one = |holder: &&Holder| {
        let traits = &holder.traits;
        let collects = is_data(holder) || QUEUES.contains(&&*traits.type_name);
        collects && traits.n_tensors > 1 && grown(holder) >= least.since(Bytes::ZERO)
    };
    look.roots.iter().filter(is_one).max_by_key(|it| grown(it))
}

fn old_copy(case: &Case<'_>) -> Option<OomCause> {
    let run = case.outermost;
    let missing = case.missing()?;
    let earlier = case.rows.for_device(case.device).rev().filter(|row| {
        let other = case.recording.run(row.run);
        row.run < run.idx && other.revision == run.revision
    });
    let kept = earlier
        .filter(|row| case.recording.run(row.run).status == Status::Ok)
        .filter_map(RunRow::kept_alone)
        .filter(|kept| *kept > ByteDelta::ZERO)
        .map(ByteDelta::magnitude)
        .next()?;
    let is_still_there = case.row()?.before? >= kept;
    let text = case.recording.text(run);
    let names = assigned_in(text?);
    let held = |name: &&str| {
        let mut holders = case.oom.holders.iter();
        holders.find(|it| it.name == **name).map(|it| it.used)
    };
    let most = names.iter().max_by_key(|name| held(name));
    let name = most.filter(|_| case.oom.holders.is_empty() || most.and_then(held) >= Some(kept));
    let name = *name?;
    (is_still_there && missing > Bytes::ZERO && kept >= missing).then(|| OomCause::OldCopy {
        kept,
        name: name.to_owned(),
    })
}

fn earlier_error(case: &Case<'_>) -> Option<OomCause> {
    let missing = case.missing()?;
    let runs = &case.recording.runs()[..case.outermost.idx.get()];
    let mut outermost = runs.iter().rev().filter(|run| run.parent.is_none());
    let failed = outermost.find(|run| is_error(run.status))?;
    let row = case.rows.row(failed.idx, case.device)?;
    let kept = row.kept_alone();
    let kept = kept.filter(|kept| *kept > ByteDelta::ZERO)?.magnitude();
    let is_still_there = case.row()?.before? >= row.after?;
    (is_still_there && missing > Bytes::ZERO && kept >= missing).then_some(OomCause::EarlierError {
        execution_count: failed.execution_count,
        kept,
    })
}

fn traceback(case: &Case<'_>) -> Option<OomCause> {
    if case.survived() {
        return None;
    }
    let later = &case.recording.runs()[case.outermost.idx.get() + 1..];
    if later.iter().any(|run| is_error(run.status)) {
        // Another one has taken its place.
        return None;
    }
    let kept = match case.held_as(RootKind::Traceback) {
        Some(held) if held > Bytes::ZERO => HeldByError::Exactly(held),
        Some(_) => return None,
        None => match case
            .row()
            .filter(|row| row.overlap.is_none())
            .and_then(|row| row.kept)
        {
            Some(kept) if kept > ByteDelta::ZERO => HeldByError::UpTo(kept.magnitude()),
            Some(_) => return None,
            None => HeldByError::Unknown,
        },
    };
    Some(OomCause::Traceback { kept })
}

fn outputs(case: &Case<'_>) -> Option<OomCause> {
    let held = case.held_as(RootKind::OutputHistory)?;
    Some(OomCause::Outputs { held })
}

fn optimizer_state(case: &Case<'_>) -> Option<OomCause> {
    let missing = short(case)?;
    let (run, device) = (case.outermost.idx, case.device);
    let (name, now) = largest_state(case.recording.holders(run, device)?)?;
    let before = case.recording.holders_before(run, device);
    let before = before.and_then(|(_, look)| largest_state(look));
    let before = before.map_or(Bytes::ZERO, |(_, size)| size);
    let kept = now.saturating_sub(before);
    (kept >= missing && kept.as_f64() >= NEW * now.as_f64()).then(|| OomCause::OptimizerState {
        kept,
        name: name.to_owned(),
    })
}

/// The optimizer with the largest state, and the size of that: of names that have little else.
fn largest_state(look: &DeviceHolders) -> Option<(&str, Bytes)> {
    let alone = look
        .roots
        .iter()
        .map(|it| (&it.name, &it.path, it.retained));
    let shared = look.shared.iter();
    let shared = shared.filter_map(|it| Some((it.names.first()?, &it.path, it.n_bytes)));
    let states = alone.chain(shared).filter_map(|(name, path, size)| {
        let (optimizer, _) = path.split_once(STATE)?;
        (optimizer == name).then_some((optimizer, size))
    });
    states.max_by_key(|(_, size)| *size)
}

fn no_backward(case: &Case<'_>) -> Option<OomCause> {
    let missing = short(case)?;
    let look = case.recording.holders(case.outermost.idx, case.device)?;
    // A graph of an earlier run is not this one's.
    let made = |it: &Holder| {
        let grown = it.grown.unwrap_or_default().max(ByteDelta::ZERO);
        it.traits.graph.min(grown.magnitude())
    };
    let kept = look.roots.iter().map(made).max()?;
    let recording = case.recording;
    let code = source_text::called(recording.text(case.outermost)?, recording.latest_texts());
    let has = |words: &[&str]| {
        code.iter()
            .any(|it| words.iter().any(|word| it.contains(word)))
    };
    (kept >= missing && has(&EVALUATES) && !has(&TRAINS)).then(|| OomCause::NoBackward {
        kept,
        framework: suggest::framework(recording, case.device),
    })
}

/// Of the variables that would be enough, the one that is unused for longest, data first: neither this run's
/// cell nor the one before uses it.
fn unused(case: &Case<'_>) -> Option<OomCause> {
    let missing = short(case)?;
    let look = case.recording.holders(case.outermost.idx, case.device)?;
    let reads = NameReads::new(case.recording)?;
    let unused = idle::groups(look).into_iter().filter_map(|(names, kept)| {
        let uses = names
            .iter()
            .map(|it| reads.last_use(it, case.outermost.idx));
        let uses: Option<Vec<LastUse>> = uses.collect();
        let last_use = uses?.into_iter().max_by_key(|it| it.run)?;
        (kept >= missing && last_use.n_runs_since > 1).then_some((last_use.run, names, kept))
    });
    let is_of_data = |names: &[&str]| {
        let mut roots = look.roots.iter();
        roots.any(|it| names.contains(&&*it.name) && is_data(it))
    };
    let longest = unused.min_by_key(|(run, names, kept)| (*run, !is_of_data(names), *kept));
    let (run, names, kept) = longest?;
    Some(OomCause::Unused {
        kept,
        twin: idle::twin(look, &names).cloned(),
        name: names.join(", "),
        execution_count: case.recording.run(run).execution_count,
    })
}

/// What no cell had read for a while when the run failed, the longest unread first; of two twins, one.
fn idle(case: &Case<'_>) -> Vec<OomCause> {
    let run = case.outermost.idx;
    let look = case.recording.holders(run, case.device);
    let Some((look, capacity)) = look.zip(case.room()) else {
        return Vec::new();
    };
    let mut idle = idle::idle_until(case.recording, (case.device, capacity), look, run);
    idle.sort_by_key(|it| it.last_use.run);
    let mut taken = BTreeSet::new();
    idle.retain(|it| {
        let is_left = it
            .twin
            .as_ref()
            .is_none_or(|twin| !taken.contains(&twin.other));
        if is_left {
            taken.extend(it.names.iter().cloned());
        }
        is_left
    });
    let cause = |it: idle::IdleMemory| OomCause::Unused {
        kept: it.n_bytes,
        name: it.names.join(", "),
        execution_count: case.recording.run(it.last_use.run).execution_count,
        twin: it.twin,
    };
    idle.into_iter().map(cause).collect()
}

/// By how much the device was too small, if it was.
fn short(case: &Case<'_>) -> Option<Bytes> {
    case.missing().filter(|it| *it > Bytes::ZERO)
}

fn is_error(status: Status) -> bool {
    matches!(status, Status::Error | Status::OutOfMemory)
}

/// The names that the source's plain assignments at its left margin bind.
fn assigned_in(source: &str) -> Vec<&str> {
    let assigned = source.lines().filter_map(|line| {
        let (name, value) = line.split_once('=')?;
        let name = name.trim_end();
        let is_name = name.chars().all(is_name_letter);
        let starts_as_one = name.starts_with(|c: char| !c.is_ascii_digit());
        (is_name && starts_as_one && !value.starts_with('=')).then_some(name)
    });
    assigned.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(source: &str, expected: &[&str]) {
        assert_eq!(assigned_in(source), expected);
    }

    #[test]
    fn names_are_what_the_cell_binds_at_its_margin() {
        check("model = build()", &["model"]);
        check("a = 1\nb=2\nfor x in b:\n    c = 3", &["a", "b"]);
        check("größe_2 = 1", &["größe_2"]);
        check("2 = 1", &[]);
        check("a == 1", &[]);
        check("a.b = 1", &[]);
        check("a += 1", &[]);
        check("f(x=1)", &[]);
    }
}
