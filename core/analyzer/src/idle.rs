//! What names hold that no cell has read for a while: good to know, and no alarm. A cell that is yet to run may
//! need it.

use std::collections::BTreeSet;

use gpumem_model::holders::{DeviceHolders, RootKind, Twin};
use gpumem_model::recording::{DeviceIdx, Recording, RunIdx, RunKind};
use gpumem_model::source_text::is_name_letter;
use gpumem_model::units::Bytes;

use super::Analysis;
use super::levels::DeviceSummary;
use super::name_reads::{LastUse, NameReads, may_be_unread};

/// A name that holds less than this part of a device is not worth a word.
const WORTH_SAYING: f64 = 0.05;

/// For a while: at least this many runs since, …
const MIN_RUNS: usize = 5;

/// … of this many cells, …
const MIN_CELLS: usize = 3;

/// … or this many runs of any cell.
const MANY_RUNS: usize = 8;

/// Memory that no cell has read for a while. [`Analysis::idle`] lists them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IdleMemory {
    /// Of which device.
    pub device: DeviceIdx,
    /// The variable that holds it; several if only together they do.
    pub names: Vec<String>,
    /// Freed if they are deleted.
    pub n_bytes: Bytes,
    /// The last run that read one of them, or bound it.
    pub last_use: LastUse,
    /// Another variable holds the same.
    pub twin: Option<Twin>,
}

impl IdleMemory {
    /// The statement that frees it: `del checkpoint`.
    pub fn release(&self) -> String {
        format!("del {}", self.names.join(", "))
    }
}

/// What is idle on each device, by the latest look at it.
pub(super) fn all(recording: &Recording, devices: &[DeviceSummary]) -> Vec<IdleMemory> {
    let devices = devices.iter();
    let idle = devices.flat_map(|it| idle_by_latest_look(recording, it.device, it.capacity));
    idle.filter(|(_, is_known)| *is_known)
        .map(|(it, _)| it)
        .collect()
}

/// A look at a device now may tell that something is idle: the latest one is too old for that.
pub(super) fn is_unseen(recording: &Recording, device: DeviceIdx, capacity: Option<Bytes>) -> bool {
    let idle = idle_by_latest_look(recording, device, capacity);
    idle.iter().any(|(_, is_known)| !is_known)
}

/// What is idle by the latest look at a device, and whether that look is as late as its last use.
fn idle_by_latest_look(
    recording: &Recording,
    device: DeviceIdx,
    capacity: Option<Bytes>,
) -> Vec<(IdleMemory, bool)> {
    let Some(((run, held), capacity)) = recording.latest_holders(device).zip(capacity) else {
        return Vec::new();
    };
    let looked_after = recording.outermost(run);
    let idle = idle_memory(recording, (device, capacity), held).into_iter();
    idle.map(|it| {
        let is_known = looked_after >= it.last_use.run;
        (it, is_known)
    })
    .collect()
}

/// What is idle on a device of that capacity by a look that is taken now.
///
/// A name counts if it alone keeps 5 % of the device or more, and no cell has read it in the latest 8 runs, or in 5
/// of at least 3 cells.
pub fn idle_memory(
    recording: &Recording,
    (device, capacity): (DeviceIdx, Bytes),
    held: &DeviceHolders,
) -> Vec<IdleMemory> {
    let mut runs = recording.runs().iter().rev();
    let now = runs.find(|run| run.parent.is_none() && run.kind == RunKind::Cell);
    now.map_or_else(Vec::new, |now| {
        idle_until(recording, (device, capacity), held, now.idx)
    })
}

/// The same of a look after an earlier run, by what cells had read until then.
pub(super) fn idle_until(
    recording: &Recording,
    (device, capacity): (DeviceIdx, Bytes),
    held: &DeviceHolders,
    now: RunIdx,
) -> Vec<IdleMemory> {
    let worth_saying = |n_bytes: Bytes| n_bytes.as_f64() >= WORTH_SAYING * capacity.as_f64();
    let mut groups = groups(held);
    groups.retain(|(names, n_bytes)| {
        worth_saying(*n_bytes)
            && names
                .iter()
                .all(|it| may_be_unread(recording, it, MIN_RUNS))
    });
    if groups.is_empty() || held.is_cut {
        return Vec::new();
    }
    let Some(reads) = NameReads::new(recording) else {
        return Vec::new();
    };
    let of_group = |(names, n_bytes): (Vec<&str>, Bytes)| {
        let uses = names.iter().map(|it| reads.last_use(it, now));
        let uses: Option<Vec<LastUse>> = uses.collect();
        let last_use = uses?.into_iter().max_by_key(|it| (it.run, it.is_read))?;
        let is_for_a_while = last_use.n_runs_since >= MANY_RUNS
            || last_use.n_runs_since >= MIN_RUNS && last_use.n_cells_since >= MIN_CELLS;
        is_for_a_while.then(|| IdleMemory {
            device,
            twin: twin(held, &names).cloned(),
            names: names.into_iter().map(str::to_owned).collect(),
            n_bytes,
            last_use,
        })
    };
    let mut idle: Vec<IdleMemory> = groups.into_iter().filter_map(of_group).collect();
    idle.sort_by_key(|it| std::cmp::Reverse(it.n_bytes));
    let mut listed: BTreeSet<String> = BTreeSet::new();
    idle.retain(|it| {
        let is_new = !it.names.iter().any(|name| listed.contains(name));
        listed.extend(it.names.iter().cloned());
        is_new
    });
    idle
}

/// What another variable than these holds, too.
pub(super) fn twin<'a>(held: &'a DeviceHolders, names: &[&str]) -> Option<&'a Twin> {
    let is_in = |name: &String| names.contains(&&**name);
    let mut twins = held.twins.iter();
    twins.find(|it| is_in(&it.name) && !is_in(&it.other))
}

/// Variables, each with what it alone holds; and those that hold something together, with what all of them do.
pub(super) fn groups(held: &DeviceHolders) -> Vec<(Vec<&str>, Bytes)> {
    let is_variable = |name: &str| {
        let starts = !name.starts_with(|it: char| it.is_ascii_digit());
        starts && !name.is_empty() && name.chars().all(is_name_letter)
    };
    let variables = || held.roots.iter().filter(|it| it.kind == RootKind::Variable);
    let whole = held.shared.iter().filter(|it| !it.and_others);
    let whole = whole.filter(|it| it.names.iter().all(|name| is_variable(name)));
    let together = whole.map(|shared| {
        let names: Vec<&str> = shared.names.iter().map(String::as_str).collect();
        let alone = variables().filter(|it| names.contains(&&*it.name));
        let alone: Bytes = alone.map(|it| it.retained).sum();
        (names, shared.n_bytes + alone)
    });
    let singles = variables().filter(|it| is_variable(&it.name));
    let singles = singles.map(|it| (vec![&*it.name], it.retained));
    together.chain(singles).collect()
}

impl Analysis {
    /// What is idle on one device.
    pub fn idle_on(&self, device: DeviceIdx) -> impl Iterator<Item = &IdleMemory> {
        self.idle.iter().filter(move |it| it.device == device)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Play, run, session};
    use crate::{Rules, analyze};
    use gpumem_model::holders::{Holder, SharedMemory};
    use gpumem_model::recording::{Frame, HolderSnapshot};

    /// `checkpoint` holds this many MiB of 16 GiB, and `model` 2000.
    fn held(checkpoint_mib: u64) -> DeviceHolders {
        let holder = |name, n_mib| Holder::new(RootKind::Variable, name, Bytes::mib(n_mib));
        DeviceHolders {
            device: "sim:0".to_owned(),
            roots: vec![holder("model", 2000), holder("checkpoint", checkpoint_mib)],
            twins: vec![Twin {
                name: "checkpoint".to_owned(),
                other: "model".to_owned(),
                n_alike: 9,
                n_all: 9,
                by_shape: true,
            }],
            ..DeviceHolders::default()
        }
    }

    /// What is idle after these cells, each run so often, with a look after one of the runs.
    #[track_caller]
    fn check(cells: &[(&str, usize)], look: (u32, DeviceHolders), expected: &[&str]) {
        let plays: Vec<(&str, Vec<Play>)> = cells
            .iter()
            .map(|(cell, n)| (*cell, vec![run(0); *n]))
            .collect();
        let plays: Vec<_> = plays
            .iter()
            .map(|(cell, runs)| (*cell, runs.as_slice()))
            .collect();
        let (mut recording, _) = session(&plays);
        let frame = HolderSnapshot {
            run: RunIdx(look.0),
            device: DeviceIdx(0),
            inside_at: None,
            holders: look.1,
        };
        let frame = Frame::Holders(Box::new(frame));
        recording.apply(frame).expect("of a run that is there");
        let found = analyze(&recording, &Rules::default()).idle;
        let found: Vec<String> = found
            .iter()
            .map(|it| {
                let twin = it.twin.as_ref().map_or("", |it| &it.other);
                let since = (it.last_use.run.0, it.last_use.n_runs_since);
                format!("{} {since:?} {twin}", it.release())
            })
            .collect();
        assert_eq!(found, expected);
    }

    const LOAD: (&str, usize) = ("checkpoint = torch.load(f)", 1);
    const MODEL: (&str, usize) = ("model = Model()\nmodel.load_state_dict(checkpoint)", 1);
    const TRAIN: (&str, usize) = ("train(model)", 4);
    const SCORE: (&str, usize) = ("score(model)", 1);
    const PLOT: (&str, usize) = ("plot(model)", 1);

    #[test]
    fn what_no_cell_reads_for_a_while_is_idle() {
        let idle = ["del checkpoint (1, 6) model"];
        let cells = [LOAD, MODEL, TRAIN, SCORE, PLOT];
        check(&cells, (1, held(2000)), &idle);
        check(&cells, (5, held(2000)), &idle);
        check(&cells, (1, held(700)), &[]);
        // The look does not know what came of it since.
        check(&cells, (0, held(2000)), &[]);
        check(&[LOAD, MODEL, ("train(model)", 7)], (1, held(2000)), &[]);
        let many = ["del checkpoint (1, 8) model"];
        check(&[LOAD, MODEL, ("train(model)", 8)], (1, held(2000)), &many);
    }

    #[test]
    fn what_is_used_is_not_idle() {
        for cell in ["test(checkpoint)", "checkpoint = None", "del checkpoint"] {
            let cells = [LOAD, MODEL, TRAIN, (cell, 1), SCORE, PLOT];
            check(&cells, (1, held(2000)), &[]);
        }
        let train = ("def train(m):\n    return distill(m, checkpoint)", 1);
        check(
            &[LOAD, MODEL, train, TRAIN, SCORE, PLOT, TRAIN],
            (1, held(2000)),
            &[],
        );
    }

    #[test]
    fn names_of_one_object_are_idle_together() {
        let shared = SharedMemory {
            names: vec!["checkpoint".to_owned(), "state".to_owned()],
            n_bytes: Bytes::mib(2000),
            ..SharedMemory::default()
        };
        let held = |shared: &SharedMemory| DeviceHolders {
            shared: vec![shared.clone()],
            ..held(0)
        };
        let state = ("state = checkpoint", 1);
        let cells = [LOAD, MODEL, state, TRAIN, SCORE, PLOT];
        check(
            &cells,
            (2, held(&shared)),
            &["del checkpoint, state (2, 6) model"],
        );
        let with_others = SharedMemory {
            and_others: true,
            ..shared.clone()
        };
        check(&cells, (2, held(&with_others)), &[]);
        check(
            &[LOAD, MODEL, state, TRAIN, SCORE, PLOT, ("f(state)", 1)],
            (2, held(&shared)),
            &[],
        );
    }
}
