//! The tiles of the holder map: the memory of each holder, and a run's change of it.

use std::cmp::Reverse;

use super::super::{ChartView, Moment};
use gpumem_model::holders::{
    DeviceHolders, Holder, HolderBranch, Remainder, RootKind, SharedMemory, StorageUse,
};
use gpumem_model::recording::{Recording, RunIdx};
use gpumem_model::units::{ByteDelta, Bytes, Units};

/// The names that are not listed one by one.
const FURTHER: &str = "further names";

/// Part of what is held.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Tile {
    /// The name, or the steps that lead to it from the field around it.
    pub name: String,
    /// What kind of name it is; `None` where it is no single name.
    pub kind: Option<RootKind>,
    /// What it is, in words.
    pub what: String,
    /// The Python expression for it, or for the largest object in it; empty if there is none.
    pub path: String,
    /// How large the field is: what is held, or by how much that changed.
    pub n_bytes: Bytes,
    /// The change since the search before, if the map shows that.
    pub change: Option<ByteDelta>,
    /// What most of its bytes are for.
    pub part: Option<StorageUse>,
    /// What it holds in turn, the most first.
    pub fields: Vec<Tile>,
}

/// Who held memory of a device at a run's end, or inside one field of that.
#[derive(Debug, Clone, PartialEq)]
pub struct Map {
    /// The run after which the holders were searched.
    pub run: RunIdx,
    /// The run after which they were searched before, if that search is kept.
    pub before: Option<RunIdx>,
    /// What it shows: the requested moment, or what is known of it.
    pub moment: Moment,
    /// The fields that it is zoomed into, outermost first.
    pub inside: Vec<Tile>,
    /// The fields that it shows, the largest first.
    pub fields: Vec<Tile>,
    /// The search stopped at a limit: there is more than this.
    pub is_cut: bool,
}

/// The map of who holds the view's device: after the latest of the selected runs with a search, else
/// after the latest of all; `None` if the holders were never searched.
///
/// Of an older search only the growth is kept.
pub fn holder_map(recording: &Recording, view: &ChartView) -> Option<Map> {
    let (latest, _) = recording.latest_holders(view.device)?;
    let (run, look) = look(recording, view)?;
    let is_latest = run == latest;
    let before = recording.holders_before(run, view.device);
    let before = before.filter(|_| is_latest);
    let moment = match (view.moment, &before) {
        _ if !is_latest => Moment::Change,
        (_, None) => Moment::After,
        (moment, Some(_)) => moment,
    };
    let mut fields = match (moment, &before) {
        (Moment::Before, Some((_, before))) => held(before),
        (Moment::Change, Some((_, before))) => {
            let mut fields = changed(held(look), held(before));
            for field in &mut fields {
                field.fields = changed_inside(field, look, before);
            }
            fields
        }
        (Moment::Change, None) => grown(look),
        (Moment::Before | Moment::After, _) => held(look),
    };
    sort(&mut fields);
    fields.iter_mut().for_each(settle);
    let mut map = Map {
        run,
        before: before.map(|(run, _)| run),
        moment,
        inside: Vec::new(),
        fields,
        is_cut: look.is_cut,
    };
    for name in &view.inside {
        map.enter(name);
    }
    Some(map)
}

fn look<'a>(recording: &'a Recording, view: &ChartView) -> Option<(RunIdx, &'a DeviceHolders)> {
    let of_selected = view.selected.iter().rev().filter_map(|run| {
        let run = recording.outermost(*run);
        Some((run, recording.holders(run, view.device)?))
    });
    let mut telling = of_selected.filter(|(_, look)| !look.roots.is_empty());
    let found = telling.next();
    found.or_else(|| recording.latest_holders(view.device))
}

impl Tile {
    /// `1.2 GiB`, or by how much it changed: `+420 MiB`.
    pub fn figure(&self, units: Units) -> String {
        match self.change {
            Some(change) => units.change(change),
            None => units.size(self.n_bytes),
        }
    }
}

impl Map {
    /// All that the fields hold together.
    pub fn n_bytes(&self) -> Bytes {
        self.fields.iter().map(|field| field.n_bytes).sum()
    }

    /// The same in words; of a change what is more or less in all.
    pub fn total(&self, units: Units) -> String {
        let changes = self.fields.iter().filter_map(|field| field.change);
        match self.moment {
            Moment::Change => {
                units.change(changes.fold(ByteDelta::ZERO, |sum, change| sum + change))
            }
            _ => units.size(self.n_bytes()),
        }
    }

    /// Goes into the field of that name; stays where there is none, or nothing in it.
    fn enter(&mut self, name: &str) {
        let mut fields = self.fields.iter_mut();
        let field = fields.find(|field| field.name == name && !field.fields.is_empty());
        if let Some(field) = field {
            let inner = std::mem::take(&mut field.fields);
            self.inside.push(field.clone());
            self.fields = inner;
        }
    }
}

/// Every byte of a look in one field.
fn held(look: &DeviceHolders) -> Vec<Tile> {
    let further = Remainder {
        n: look.more.n + look.more_shared.n,
        n_bytes: look.more.n_bytes + look.more_shared.n_bytes,
    };
    let names = look.roots.iter().map(Tile::from);
    let shared = look.shared.iter().map(of_shared);
    names.chain(shared).chain(rest(FURTHER, further)).collect()
}

/// What each has more or less than before.
fn changed(now: Vec<Tile>, mut before: Vec<Tile>) -> Vec<Tile> {
    let mut fields = Vec::new();
    for field in now {
        let is_it = |other: &Tile| (&other.name, other.kind) == (&field.name, field.kind);
        let was = before.iter().position(is_it);
        let was = was.map_or(Bytes::ZERO, |idx| before.swap_remove(idx).n_bytes);
        let is = field.n_bytes;
        fields.push(differing(field, was, is));
    }
    let gone = before.into_iter().map(|field| {
        let was = field.n_bytes;
        let field = Tile {
            what: "gone".to_owned(),
            ..field
        };
        differing(field, was, Bytes::ZERO)
    });
    fields.extend(gone);
    fields
}

/// What changed inside of a name, as far as both looks tell what it holds.
fn changed_inside(field: &Tile, now: &DeviceHolders, before: &DeviceHolders) -> Vec<Tile> {
    let is_it = |holder: &&Holder| (&holder.name, Some(holder.kind)) == (&field.name, field.kind);
    let now = now.roots.iter().find(is_it);
    let Some((now, before)) = now.zip(before.roots.iter().find(is_it)) else {
        return Vec::new();
    };
    let whole = Tile::from(now);
    inside(
        whole.fields,
        (&now.branches, now.more),
        (&before.branches, before.more),
    )
}

/// `fields` are of what is held now. Where one of the looks sums up what is small, what the other
/// tells by itself may be in that sum: it is held against the sum as a whole.
fn inside(
    fields: Vec<Tile>,
    (now, more_now): (&[HolderBranch], Remainder),
    (before, more_before): (&[HolderBranch], Remainder),
) -> Vec<Tile> {
    if now.is_empty() || before.is_empty() {
        return Vec::new();
    }
    let (mut is_more, mut was_more) = (more_now.n_bytes, more_before.n_bytes);
    let mut changes = Vec::new();
    for (field, branch) in fields.into_iter().zip(now) {
        let then = before.iter().find(|then| place(then) == place(branch));
        match then {
            None if more_before.n > 0 => is_more += branch.n_bytes,
            then => {
                let (below, deeper) = then.map_or((&[][..], Remainder::default()), |then| {
                    (then.branches.as_slice(), then.more)
                });
                let was = then.map_or(Bytes::ZERO, |then| then.n_bytes);
                let fields = inside(
                    field.fields.clone(),
                    (&branch.branches, branch.more),
                    (below, deeper),
                );
                changes.push(Tile {
                    fields,
                    ..differing(field, was, branch.n_bytes)
                });
            }
        }
    }
    let is_gone = |then: &&HolderBranch| now.iter().all(|branch| place(branch) != place(then));
    for then in before.iter().filter(is_gone) {
        if more_now.n > 0 {
            was_more += then.n_bytes;
        } else {
            changes.push(differing(gone(then), then.n_bytes, Bytes::ZERO));
        }
    }
    let further = rest(
        "and more",
        Remainder {
            n: more_now.n.max(more_before.n),
            n_bytes: is_more.max(was_more),
        },
    );
    changes.extend(further.map(|field| differing(field, was_more, is_more)));
    changes
}

/// Where a branch is: of several alike, where the first is, for there may be more of them later.
fn place(branch: &HolderBranch) -> &str {
    let step = branch.step.as_str();
    if branch.n == 1 {
        return step;
    }
    let first = step.split_once(" … ").or_else(|| step.split_once(", "));
    first.map_or(step, |(first, _)| first)
}

fn gone(branch: &HolderBranch) -> Tile {
    Tile {
        name: branch.step.clone(),
        what: "gone".to_owned(),
        n_bytes: branch.n_bytes,
        ..Tile::default()
    }
}

/// By how much it differs, and nothing of what is in it.
fn differing(field: Tile, was: Bytes, is: Bytes) -> Tile {
    let change = is.since(was);
    Tile {
        n_bytes: change.magnitude(),
        change: Some(change),
        fields: Vec::new(),
        ..field
    }
}

/// The growth of each, if the look before is not kept.
fn grown(look: &DeviceHolders) -> Vec<Tile> {
    let field = |holder: &Holder| {
        let change = holder.grown.filter(|grown| *grown > ByteDelta::ZERO)?;
        Some(Tile {
            n_bytes: change.magnitude(),
            change: Some(change),
            fields: Vec::new(),
            ..Tile::from(holder)
        })
    };
    look.roots.iter().filter_map(field).collect()
}

/// The largest first; nothing without a size.
fn sort(fields: &mut Vec<Tile>) {
    fields.retain(|field| field.n_bytes > Bytes::ZERO);
    fields.sort_by_key(|field| Reverse(field.n_bytes));
    for field in fields {
        sort(&mut field.fields);
    }
}

/// A field that would only say the same again is left out.
fn settle(field: &mut Tile) {
    field.fields.iter_mut().for_each(settle);
    if let [only] = &field.fields[..]
        && only.fields.is_empty()
    {
        field.fields.clear();
    }
}

impl From<&Holder> for Tile {
    /// The name with all that is known below it.
    fn from(holder: &Holder) -> Self {
        let part = holder.traits.part;
        // What is behind another kind of name has no expression that begins with it.
        let is_expression = holder.kind.is_named() || holder.kind == RootKind::OutputHistory;
        let prefix = is_expression.then_some(&*holder.name);
        Self {
            name: holder.name.clone(),
            kind: Some(holder.kind),
            what: holder.what.clone(),
            path: holder.path.clone(),
            n_bytes: holder.retained,
            part,
            fields: of_branches(&holder.branches, holder.more, prefix, part),
            ..Self::default()
        }
    }
}

fn of_shared(shared: &SharedMemory) -> Tile {
    let others = if shared.and_others { ", …" } else { "" };
    Tile {
        name: format!("{}{others}", shared.names.join(", ")),
        what: format!("{}, held by each of them", shared.what),
        path: shared.path.clone(),
        n_bytes: shared.n_bytes,
        part: shared.part,
        ..Tile::default()
    }
}

fn of_branches(
    branches: &[HolderBranch],
    more: Remainder,
    prefix: Option<&str>,
    part: Option<StorageUse>,
) -> Vec<Tile> {
    let field = |branch: &HolderBranch| {
        // What has no expression in Python, and what stands for several, leads nowhere.
        let is_expression = branch.n == 1 && !branch.step.contains('<');
        let path = prefix.filter(|_| is_expression);
        let path = path.map(|prefix| format!("{prefix}{}", branch.step));
        Tile {
            name: branch.step.clone(),
            what: branch.what.clone(),
            fields: of_branches(&branch.branches, branch.more, path.as_deref(), part),
            path: path.unwrap_or_default(),
            n_bytes: branch.n_bytes,
            part,
            ..Tile::default()
        }
    };
    let rest = rest("and more", more).map(|rest| Tile { part, ..rest });
    branches.iter().map(field).chain(rest).collect()
}

fn rest(name: &str, rest: Remainder) -> Option<Tile> {
    (rest.n_bytes > Bytes::ZERO).then(|| Tile {
        name: name.to_owned(),
        what: format!("{} of them", rest.n),
        n_bytes: rest.n_bytes,
        ..Tile::default()
    })
}
