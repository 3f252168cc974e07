//! The attributes and entries of a name that grew, in the place of their object.

use super::{Course, Looks, MIN_ENTRIES};
use crate::context::Context;
use crate::names::{self, BranchGain};
use gpumem_model::holders::{
    DeviceHolders, GrowsIn, Holder, Keeper, NameLevel, RootKind, Traits, variable_of,
};
use gpumem_model::recording::{DeviceIdx, Recording, RunIdx};
use gpumem_model::units::{ByteDelta, Bytes};

/// The attributes that gained nearly all of what an object did, with what they do; or the object, by their path.
pub(super) fn branches_that_grew(
    context: Context<'_>,
    (runs, device, n_steps): (&[RunIdx], DeviceIdx, Option<usize>),
    looks: Looks,
    object: &Holder,
    course: Course,
) -> Vec<(Holder, Course)> {
    let recording = context.recording;
    let ends = runs.first().zip(runs.last());
    // What has a bound is known by it, and not by what it keeps its items in.
    let may_be_part = object.kind == RootKind::Variable && object.traits.bound.is_none();
    let Some((first, last)) = ends.filter(|_| may_be_part) else {
        return Vec::new();
    };
    let ends = (recording.outermost(*first), recording.outermost(*last));
    let inside = || {
        let inside = recording.holders_inside(ends.1, device).rev();
        inside.map(|(_, look)| look)
    };
    let after = || recording.looks(device).rev().map(|(_, look)| look);
    let main = if let Some(n_steps) = n_steps {
        let look = match looks {
            Looks::AfterRuns => recording.holders(ends.1, device),
            Looks::InsideRuns => inside().next(),
        };
        let look = look.map(|look| (ends.1, look));
        branches_of_loop(
            context,
            device,
            look,
            object,
            enough_entries(n_steps, looks),
        )
    } else {
        let gains = context.names.gains(device, &object.name, ends);
        let (gained, branches) = gains.unwrap_or_default();
        names::main_branches(branches, gained)
    };
    let sum = main.iter().map(|it| it.gained.as_f64()).sum::<f64>();
    let grown = object.grown.unwrap_or_default();
    let found = main.into_iter().filter_map(|gain| {
        let holder = match looks {
            Looks::AfterRuns => branch_of(object, gain.name, after().chain(inside())),
            Looks::InsideRuns => branch_of(object, gain.name, inside().chain(after())),
        };
        let holder = Holder {
            grown: Some(match n_steps {
                // The looks compared may have been inside of the run.
                Some(_) => ByteDelta::from_f64(grown.as_f64() * gain.gained.as_f64() / sum),
                None => gain.gained,
            }),
            ..holder?
        };
        let course = Course {
            n_grown: match n_steps {
                Some(_) => course.n_grown,
                None => gain.n_grown.min(course.n_grown),
            },
            ..course
        };
        Some((holder, course))
    });
    let found: Vec<(Holder, Course)> = found.collect();
    match found.first() {
        Some((first, _)) if !found.iter().all(|(it, _)| is_nameable(recording, it)) => {
            vec![(with_path_of(object, first, found.len() == 1), course)]
        }
        _ => found,
    }
}

/// An attribute of the user's, also of a class, and nothing of hooks, caches and the like, for which their object is
/// known.
fn is_nameable(recording: &Recording, branch: &Holder) -> bool {
    names::is_attribute(&branch.name)
        && !names::is_private(recording, &branch.name)
        && matches!(branch.traits.keeper, None | Some(Keeper::Class))
}

/// The object by what grew in it, which may be all that did.
fn with_path_of(object: &Holder, branch: &Holder, is_all: bool) -> Holder {
    let itself = || GrowsIn {
        path: branch.name.clone(),
        is_all,
        bound: branch.traits.bound,
        n_bytes: branch.retained,
    };
    let within = branch.traits.grows_in.clone().unwrap_or_else(itself);
    Holder {
        path: branch.path.clone(),
        traits: Traits {
            grows_in: Some(GrowsIn {
                is_all: within.is_all && is_all,
                ..within
            }),
            type_name: object.traits.type_name.clone(),
            n_tensors: object.traits.n_tensors,
            is_shared: object.traits.is_shared,
            ..branch.traits.clone()
        },
        ..object.clone()
    }
}

/// A name that collects in a loop has an entry from at least every second step, or from the first steps if the look
/// was during the loop.
pub(super) fn enough_entries(n_steps: usize, looks: Looks) -> u64 {
    match looks {
        Looks::AfterRuns => (n_steps as u64).div_ceil(2),
        Looks::InsideRuns => MIN_ENTRIES,
    }
}

/// The same of a loop, by the look at its end. What it collects is in many storages. Since a look
/// that was taken while it went on, several may have grown; else much that is made once was made in the run.
fn branches_of_loop<'a>(
    context: Context<'a>,
    device: DeviceIdx,
    look: Option<(RunIdx, &'a DeviceHolders)>,
    object: &Holder,
    enough: u64,
) -> Vec<BranchGain<'a>> {
    let Some((run, end)) = look else {
        return Vec::new();
    };
    let levels = |look: &'a DeviceHolders| {
        let named = look
            .changed
            .iter()
            .filter(|it| it.kind == RootKind::Variable);
        let of_object = named.filter(|it| variable_of(&it.name) == object.name);
        of_object.collect::<Vec<&NameLevel>>()
    };
    let end_levels = levels(end);
    let inside = context.recording.holders_inside(run, device);
    let mut inside = inside
        .map(|(_, look)| look)
        .filter(|look| !std::ptr::eq(*look, end));
    let first = inside.find_map(|look| Some(levels(look)).filter(|it| !it.is_empty()));
    let before = |level: &NameLevel| {
        if let Some(first) = &first {
            let known = first.iter().find(|it| it.name == level.name);
            known.map_or((Bytes::ZERO, 0), |it| (it.n_bytes, it.n_storages))
        } else {
            let key = (level.kind, level.name.clone());
            let known = context.names.level_before(device, &key, run);
            known.unwrap_or_default()
        }
    };
    let gain = |level: &&'a NameLevel| {
        let (n_bytes, n_storages) = before(level);
        let n_new = level.n_storages.saturating_sub(n_storages);
        BranchGain {
            name: &level.name,
            gained: level.n_bytes.since(n_bytes),
            n_grown: if n_new >= enough { 2 } else { 1 },
        }
    };
    let gains = end_levels.iter().map(gain);
    let (of_object, branches): (Vec<_>, Vec<_>) = gains.partition(|it| it.name == object.name);
    let of_object = of_object.first().map_or(ByteDelta::ZERO, |it| it.gained);
    let mut main = names::main_branches(branches, of_object);
    if main.is_empty() || of_object <= ByteDelta::ZERO {
        // It lets go of what it collected before.
        let fresh = end.growing_branches.iter();
        let fresh = fresh.filter(|it| variable_of(&it.name) == object.name);
        let fresh = fresh.map(|it| BranchGain {
            name: &it.name,
            gained: it.fresh.unwrap_or_default().since(Bytes::ZERO),
            n_grown: if it.traits.n_tensors >= enough { 2 } else { 1 },
        });
        main = names::main_branches(fresh.collect(), object.grown.unwrap_or_default());
        if main.len() > 1 {
            main.clear();
        }
    }
    if first.is_none() && main.len() > 1 {
        main.clear();
    }
    main
}

/// The branch of that name: what it has by its object, its path by the latest of these looks at which it grew.
pub(super) fn branch_of<'a>(
    object: &Holder,
    name: &str,
    looks: impl Iterator<Item = &'a DeviceHolders>,
) -> Option<Holder> {
    let part = part_of(object, name)?;
    let mut grown = looks.flat_map(|look| &look.growing_branches);
    let Some(grown) = grown.find(|it| it.name == name) else {
        return Some(part);
    };
    let is_listed = part.retained > Bytes::ZERO;
    let now = if is_listed { &part } else { grown };
    Some(Holder {
        retained: now.retained,
        what: now.what.clone(),
        branches: now.branches.clone(),
        more: now.more,
        ..grown.clone()
    })
}

/// What the look at an object has of a branch.
fn part_of(object: &Holder, name: &str) -> Option<Holder> {
    let step = name.strip_prefix(&*object.name)?;
    let mut branches = object.branches.iter();
    let Some(branch) = branches.find(|branch| branch.step == step) else {
        return Some(Holder {
            path: name.to_owned(),
            what: format!("part of {}", object.traits.type_name),
            ..Holder::new(object.kind, name, Bytes::ZERO)
        });
    };
    // The rest is known of the largest object alone.
    let is_largest = object.path.starts_with(name);
    Some(Holder {
        path: if is_largest { &object.path } else { name }.to_owned(),
        what: branch.what.clone(),
        traits: if is_largest {
            object.traits.clone()
        } else {
            Traits::default()
        },
        branches: branch.branches.clone(),
        more: branch.more,
        ..Holder::new(object.kind, name, branch.n_bytes)
    })
}
