//! What would have been enough, and what to do.

use super::Case;
use crate::holders::RootKind;
use crate::recording::{AllocatorLevels, DeviceKind, Framework, Source, Status};
use crate::units::{ByteDelta, Bytes};

/// One thing that would have helped.
pub(super) struct Cause {
    /// For the line after the cell.
    pub(super) words: Option<String>,
    /// What to do.
    pub(super) advice: String,
}

impl Cause {
    /// The most decisive first; never none.
    pub(super) fn all(case: &Case<'_>) -> Vec<Self> {
        let mut causes: Vec<Self> = [
            too_large(case),
            limited(case),
            fragmented(case),
            cached_elsewhere(case),
            other_processes(case),
            old_copy(case),
            earlier_error(case),
            outputs(case),
        ]
        .into_iter()
        .flatten()
        .collect();
        if causes.is_empty() {
            causes.push(Self {
                words: None,
                advice: "make the step smaller: a smaller batch (with gradient accumulation where \
                         its size matters), shorter sequences, lower precision, or no graph where \
                         no backward pass follows"
                    .to_owned(),
            });
        }
        causes.extend(traceback(case));
        causes.extend(unread(case));
        causes
    }

    fn new(words: String, advice: String) -> Self {
        Self {
            words: Some(words),
            advice,
        }
    }
}

/// No freeing helps: the device never has so much.
fn too_large(case: &Case<'_>) -> Option<Cause> {
    let (wanted, room) = (case.figures().wanted?, case.room()?);
    (wanted > room).then(|| {
        Cause::new(
            format!("more than the whole {room}"),
            format!(
                "{wanted} in one piece never fits into {room}: compute in smaller pieces, or look \
                 whether the shape is what you meant"
            ),
        )
    })
}

/// The device had room, the framework was not allowed to take it.
fn limited(case: &Case<'_>) -> Option<Cause> {
    let (wanted, limit) = (case.figures().wanted?, case.figures().limit?);
    let is_below_total = case.figures().total.is_none_or(|total| limit < total);
    let is_enough = case.free().is_none_or(|free| free >= wanted);
    (is_below_total && is_enough && wanted <= limit).then(|| {
        Cause::new(
            format!("limited to {limit}"),
            format!(
                "the framework may take {limit} only, as its memory fraction or limit says: raise \
                 it where nobody else needs the rest"
            ),
        )
    })
}

/// Enough was free, but in pieces.
fn fragmented(case: &Case<'_>) -> Option<Cause> {
    let (wanted, unallocated) = (case.figures().wanted?, case.unallocated()?);
    let largest = case.figures().largest_free;
    if unallocated < wanted || largest.is_some_and(|largest| largest >= wanted) {
        return None;
    }
    let piece = largest.map_or_else(String::new, |largest| {
        format!(", the largest piece {largest}")
    });
    let order = "allocate what lives long before what lives short, and keep sizes alike, so that \
                 free pieces fit again";
    let is_torch = matches!(case.oom.framework, None | Some(Framework::Torch));
    let advice = if is_torch && case.recording.device(case.device).kind == DeviceKind::Gpu {
        format!(
            "before the kernel starts, set `PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True`: \
             pieces then join; or {order}"
        )
    } else {
        order.to_owned()
    };
    Some(Cause::new(
        format!("{unallocated} were free in the cache in pieces{piece}"),
        advice,
    ))
}

/// Another framework of this process keeps what it does not use.
fn cached_elsewhere(case: &Case<'_>) -> Option<Cause> {
    let missing = case.missing()?;
    let asked = case.oom.framework.map(Framework::name);
    let unused = |levels: &AllocatorLevels| {
        let (reserved, allocated) = (levels.reserved.known()?, levels.allocated.known()?);
        Some(reserved.saturating_sub(allocated))
    };
    let can_release = |source: Source| matches!(source, Source::Torch | Source::Cupy | Source::Sim);
    let after = case.levels?.after.as_ref()?;
    let (source, cached) = after
        .allocators
        .iter()
        .filter(|levels| can_release(levels.source) && Some(levels.source.name()) != asked)
        .filter_map(|levels| Some((levels.source, unused(levels)?)))
        .max_by_key(|(_, cached)| *cached)?;
    (missing > Bytes::ZERO && cached >= missing).then(|| {
        let name = source.name();
        Cause::new(
            format!("{name} keeps {cached} that it does not use: `%gpumem release cache`"),
            format!(
                "`%gpumem release cache` gives back the {cached} that {name} keeps in its cache"
            ),
        )
    })
}

/// Without the others there would have been room.
fn other_processes(case: &Case<'_>) -> Option<Cause> {
    let (missing, (others, who)) = (case.missing()?, case.others());
    let others = others?;
    (missing > Bytes::ZERO && others >= missing).then(|| {
        let which = match who.as_slice() {
            [] => String::new(),
            who => {
                let pids: Vec<String> = who.iter().map(|it| it.pid.to_string()).collect();
                format!(" (process {})", pids.join(", "))
            }
        };
        Cause::new(
            format!("other processes hold {others}: `%gpumem who`"),
            format!(
                "other processes hold {others}{which}: `%gpumem who` tells which they are; end \
                 what nobody needs"
            ),
        )
    })
}

/// What an earlier run of this very cell kept was still there while it made it anew.
fn old_copy(case: &Case<'_>) -> Option<Cause> {
    let run = case.outermost;
    let missing = case.missing()?;
    let earlier = case.rows.of(case.device).rev().filter(|row| {
        let other = case.recording.run(row.run);
        row.run < run.idx && other.revision == run.revision
    });
    let kept = earlier
        .filter(|row| case.recording.run(row.run).status == Status::Ok)
        .filter_map(|row| row.kept)
        .filter(|kept| *kept > ByteDelta::ZERO)
        .map(ByteDelta::magnitude)
        .next()?;
    let is_still_there = case.row()?.before? >= kept;
    let text = case.recording.text(run);
    let name = text.and_then(assigned_in)?;
    (is_still_there && missing > Bytes::ZERO && kept >= missing).then(|| {
        Cause::new(
            format!("the {kept} of an earlier run were still held: `del {name}` first"),
            format!(
                "give the old copy up first: `del {name}` at the top of the cell; until the new one \
                 is ready the name holds the old one"
            ),
        )
    })
}

/// What an error before this one still kept alive.
fn earlier_error(case: &Case<'_>) -> Option<Cause> {
    let missing = case.missing()?;
    let runs = &case.recording.runs()[..case.outermost.idx.get()];
    let mut outermost = runs.iter().rev().filter(|run| run.parent.is_none());
    let failed = outermost.find(|run| is_error(run.status))?;
    let row = case.rows.row(failed.idx, case.device)?;
    let kept = row.kept.filter(|kept| *kept > ByteDelta::ZERO)?.magnitude();
    let is_still_there = case.row()?.before? >= row.after?;
    (is_still_there && missing > Bytes::ZERO && kept >= missing).then(|| {
        let which = match failed.execution_count {
            Some(n) => format!("the error of In [{n}]"),
            None => "the error before it".to_owned(),
        };
        Cause::new(
            format!("{which} still held up to {kept}: `%gpumem release traceback`"),
            format!(
                "`%gpumem release traceback`: {which} kept up to {kept} alive through its frames"
            ),
        )
    })
}

/// What the error itself keeps alive from now on.
fn traceback(case: &Case<'_>) -> Option<Cause> {
    if case.survived() {
        return None;
    }
    let later = &case.recording.runs()[case.outermost.idx.get() + 1..];
    if later.iter().any(|run| is_error(run.status)) {
        // Another one has taken its place.
        return None;
    }
    if let Some(held) = case.held_as(RootKind::Traceback) {
        return (held > Bytes::ZERO).then(|| keeps(&held.to_string()));
    }
    let kept = case.row().and_then(|row| row.kept);
    match kept {
        Some(kept) if kept > ByteDelta::ZERO => Some(keeps(&format!("up to {}", kept.magnitude()))),
        Some(_) => None,
        None => Some(Cause {
            words: None,
            ..keeps("the tensors of its frames")
        }),
    }
}

/// Nobody knows how the device stood.
fn unread(case: &Case<'_>) -> Option<Cause> {
    case.elsewhere.then(|| Cause {
        words: None,
        advice: "`%gpumem status` says which devices are read, and why not the others".to_owned(),
    })
}

fn keeps(what: &str) -> Cause {
    Cause::new(
        format!("the traceback keeps {what}: `%gpumem release traceback`"),
        format!(
            "`%gpumem release traceback`: the error keeps {what} alive through its frames, until \
             another error takes its place"
        ),
    )
}

/// Results that were shown hold enough.
fn outputs(case: &Case<'_>) -> Option<Cause> {
    let (missing, held) = (case.missing()?, case.held_as(RootKind::OutputHistory)?);
    (missing > Bytes::ZERO && held >= missing).then(|| {
        Cause::new(
            format!("displayed results hold {held}: `%gpumem release outputs`"),
            format!(
                "`%gpumem release outputs` lets go of the {held} that `Out` and `_` hold; a `;` at \
                 the end of a cell's last line keeps a result out of them"
            ),
        )
    })
}

fn is_error(status: Status) -> bool {
    matches!(status, Status::Error | Status::OutOfMemory)
}

/// The name that the source's last plain assignment at its left margin binds.
fn assigned_in(source: &str) -> Option<&str> {
    source.lines().rev().find_map(|line| {
        let (name, value) = line.split_once('=')?;
        let name = name.trim_end();
        let is_name = name.chars().all(|c| c.is_alphanumeric() || c == '_')
            && name.starts_with(|c: char| c.is_alphabetic() || c == '_');
        (is_name && !value.starts_with('=')).then_some(name)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(source: &str, expected: Option<&str>) {
        assert_eq!(assigned_in(source), expected);
    }

    #[test]
    fn the_name_is_what_the_cell_binds_last() {
        check("model = build()", Some("model"));
        check("a = 1\nb=2\nfor x in b:\n    c = 3", Some("b"));
        check("a == 1", None);
        check("a.b = 1", None);
        check("a += 1", None);
        check("f(x=1)", None);
    }
}
