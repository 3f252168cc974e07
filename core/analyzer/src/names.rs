//! What each name has of a device's memory, look by look, and which of them have more and more.
//!
//! What runs of one cell keep is judged elsewhere. Here a name is followed, whichever cell adds to it and
//! however often that is edited. A name that is emptied begins anew: it is its **episode** that grows.

use std::collections::{BTreeMap, HashSet};

use gpumem_model::holders::{DeviceHolders, RootKind};
use gpumem_model::recording::{CellIdx, DeviceIdx, Recording, Run, RunIdx, RunKind, Status};
use gpumem_model::source_text;
use gpumem_model::units::{ByteDelta, Bytes};

/// What a name has lost, as a share of all it had gained, when it begins anew.
const EMPTIED: f64 = 0.75;

/// Where a branch gains what the rest of its object loses, but for this share, it moved.
const MOVES: f64 = 0.9;

/// A name as it is followed: [`RootKind::series_name`].
pub(super) type NameKey = (RootKind, String);

/// If branches gained this share of what their object did, they are what grows.
const NEARLY_ALL: f64 = 0.9;

/// What did not gain this share of it is no part of that.
const WORTH_NAMING: f64 = 0.1;

/// What a branch has more, and at how many looks it had more than at the one before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct BranchGain<'a> {
    pub(super) name: &'a str,
    pub(super) gained: ByteDelta,
    pub(super) n_grown: usize,
}

/// The branches that gained nearly all of what their object did, the most first; none if no few of them did. What
/// grew once does not grow: it is left out of what the object gained.
pub(super) fn main_branches(
    branches: Vec<BranchGain<'_>>,
    of_object: ByteDelta,
) -> Vec<BranchGain<'_>> {
    let gains = branches
        .into_iter()
        .filter(|it| it.gained > ByteDelta::ZERO);
    let (mut gains, once): (Vec<_>, Vec<_>) = gains.partition(|it| it.n_grown > 1);
    let sum = |gains: &[BranchGain<'_>]| gains.iter().map(|it| it.gained.as_f64()).sum::<f64>();
    let total = (of_object.as_f64() - sum(&once)).max(sum(&gains));
    gains.retain(|it| it.gained.as_f64() >= WORTH_NAMING * total);
    gains.sort_by_key(|it| std::cmp::Reverse(it.gained));
    if sum(&gains) < NEARLY_ALL * total {
        gains.clear();
    }
    gains
}

/// The part of a branch's name that is a variable's: `trainer` of `trainer.history`.
pub(super) fn trunk(name: &str) -> &str {
    name.split(['.', '[']).next().unwrap_or_default()
}

/// It is a part of what a variable names.
pub(super) fn is_branch((kind, name): &NameKey) -> bool {
    *kind == RootKind::Variable && trunk(name).len() < name.len()
}

/// What the looks of a recording say of each name.
#[derive(Debug, Default)]
pub(super) struct Names {
    of_devices: Vec<OfDevice>,
}

#[derive(Debug, Default)]
struct OfDevice {
    looks: Vec<RunIdx>,
    names: BTreeMap<NameKey, NameSeries>,
}

/// The levels of one name, where they changed.
#[derive(Debug, Default)]
struct NameSeries {
    points: Vec<Point>,
    /// The first point of the latest episode.
    first: usize,
    /// What it had before that, and what it had at most since.
    start: Bytes,
    highest: Bytes,
    /// What it once had when the cell that fills it emptied it.
    emptied_at: Bytes,
}

#[derive(Debug, Clone, Copy)]
struct Point {
    run: RunIdx,
    n_bytes: Bytes,
    n_storages: u64,
    /// More than before.
    grew: bool,
}

/// Names that have more and more, most often by runs of one cell.
#[derive(Debug)]
pub(super) struct GrowingNames {
    pub(super) device: DeviceIdx,
    /// The runs of the cells that add to them, since the first that did.
    pub(super) runs: Vec<RunIdx>,
    /// What they had before those, and after each of them.
    pub(super) start: Bytes,
    pub(super) levels: Vec<Bytes>,
    /// With what each has gained, the most first.
    pub(super) names: Vec<(NameKey, ByteDelta)>,
}

impl Names {
    pub(super) fn of(recording: &Recording) -> Self {
        let mut names = Self::default();
        names.take_in(recording, None);
        names
    }

    /// Takes in the looks that are new, and those of runs from the first on that changed.
    pub(super) fn take_in(&mut self, recording: &Recording, changed: Option<RunIdx>) {
        let n_devices = recording.devices().len();
        self.of_devices.resize_with(n_devices, OfDevice::default);
        for (device, of_device) in recording.devices().iter().zip(&mut self.of_devices) {
            let last = of_device.looks.last().copied();
            if changed.is_some_and(|run| last.is_some_and(|last| run <= last)) {
                *of_device = OfDevice::default();
            }
            let known = of_device.looks.last().copied();
            let looks = recording.looks(device.idx).rev();
            let mut new: Vec<(RunIdx, &DeviceHolders)> = looks
                .take_while(|(run, _)| known.is_none_or(|known| *run > known))
                .collect();
            while let Some((run, look)) = new.pop() {
                of_device.take_in(recording, run, look);
            }
        }
    }

    /// What a name had after a run, if it was ever followed: of many names only the largest are, and
    /// older recordings follow none.
    pub(super) fn level(&self, device: DeviceIdx, name: &NameKey, run: RunIdx) -> Option<Bytes> {
        let series = self.of_devices.get(device.get())?.names.get(name)?;
        Some(series.after(run))
    }

    /// What a name had at the look before the one after `run`, and in how many storages.
    pub(super) fn level_before(
        &self,
        device: DeviceIdx,
        name: &NameKey,
        run: RunIdx,
    ) -> Option<(Bytes, u64)> {
        let series = self.of_devices.get(device.get())?.names.get(name)?;
        let n_before = series.points.partition_point(|point| point.run < run);
        let point = series.points[..n_before].last()?;
        Some((point.n_bytes, point.n_storages))
    }

    /// What a variable gained between the looks before and after these runs, and each of its branches. If there was
    /// none before, since the first look.
    pub(super) fn gains(
        &self,
        device: DeviceIdx,
        whole: &str,
        (first, last): (RunIdx, RunIdx),
    ) -> Option<(ByteDelta, Vec<BranchGain<'_>>)> {
        let of_device = self.of_devices.get(device.get())?;
        let n_before = of_device.looks.partition_point(|run| *run < first);
        let start = *of_device.looks.get(n_before.saturating_sub(1))?;
        let gained = |series: &NameSeries| series.after(last).since(series.after(start));
        let key = (RootKind::Variable, whole.to_owned());
        let of_whole = gained(of_device.names.get(&key)?);
        let branches = of_device.branches(whole).map(|(name, series)| {
            let within = series
                .points
                .iter()
                .filter(|it| start < it.run && it.run <= last);
            BranchGain {
                name,
                gained: gained(series),
                n_grown: within.filter(|it| it.grew).count(),
            }
        });
        Some((of_whole, branches.collect()))
    }

    /// The names of a device that have more and more, by the cell that adds to each most often; or those
    /// that `only` one cell adds to, among others. Growth below `least` is none.
    pub(super) fn growing(
        &self,
        recording: &Recording,
        device: DeviceIdx,
        least: Bytes,
        only: Option<CellIdx>,
    ) -> Vec<GrowingNames> {
        let Some(of_device) = self.of_devices.get(device.get()) else {
            return Vec::new();
        };
        let branches = of_device.telling_branches(least);
        let has_branch = |whole: &str| branches.iter().any(|(_, name)| trunk(name) == whole);
        let mut by_cell: BTreeMap<CellIdx, Vec<(&NameKey, &NameSeries)>> = BTreeMap::new();
        for (name, series) in &of_device.names {
            let (kind, text) = name;
            let is_name = kind.is_named() || kind.is_ipython();
            let is_told = if is_branch(name) {
                branches.contains(&name)
            } else {
                !(*kind == RootKind::Variable && has_branch(text))
            };
            if !is_name || !is_told || !series.collects(least) {
                continue;
            }
            let adders = series.adders(recording, text);
            let most = adders.iter().max_by_key(|(_, n)| *n);
            let is_asked = only.is_none_or(|only| adders.iter().any(|(cell, _)| *cell == only));
            if let Some((cell, _)) = most.filter(|_| is_asked) {
                by_cell.entry(*cell).or_default().push((name, series));
            }
        }
        let by_cell = by_cell.values();
        let growing = by_cell.flat_map(|names| GrowingNames::each(recording, device, names));
        growing.collect()
    }
}

impl OfDevice {
    /// The branches that are told of instead of their objects: those that gained nearly all of what these did.
    /// Objects may also lose, from look to look, what they replace or drop elsewhere.
    fn telling_branches(&self, least: Bytes) -> Vec<&NameKey> {
        let tells = |(name, series): &(&NameKey, &NameSeries)| {
            if !is_branch(name) || !series.collects(least) {
                return false;
            }
            let whole = (RootKind::Variable, trunk(&name.1).to_owned());
            let Some(it) = self.names.get(&whole) else {
                return false;
            };
            let gained = self.branches(&whole.1).map(|(name, series)| BranchGain {
                name,
                gained: series.now().since(series.start),
                n_grown: series.grown().count(),
            });
            let main = main_branches(gained.collect(), it.now().since(it.start));
            let is_attribute = name.1[whole.1.len()..].starts_with('.');
            let is_main = is_attribute && main.iter().any(|it| it.name == name.1);
            (is_main || !it.grew_each_time()) && !series.was_moved_within(it)
        };
        self.names
            .iter()
            .filter(tells)
            .map(|(name, _)| name)
            .collect()
    }

    /// The branches of a variable, by their names.
    fn branches(&self, whole: &str) -> impl Iterator<Item = (&str, &NameSeries)> {
        let names = self.names.range((RootKind::Variable, whole.to_owned())..);
        let names = names.map(|((kind, name), series)| (*kind, &**name, series));
        let alike = names.take_while(move |(kind, name, _)| {
            *kind == RootKind::Variable && name.starts_with(whole)
        });
        let branches =
            alike.filter(move |(_, name, _)| trunk(name) == whole && name.len() > whole.len());
        branches.map(|(_, name, series)| (name, series))
    }

    fn take_in(&mut self, recording: &Recording, run: RunIdx, look: &DeviceHolders) {
        // What there is at the first look, nobody saw grow.
        let is_first = self.looks.is_empty();
        self.looks.push(run);
        if look.n_bytes == Bytes::ZERO {
            for series in self.names.values_mut() {
                series.push(recording, run, Bytes::ZERO, 0, false);
            }
        }
        for name in self.emptied_branches(look) {
            let series = self.names.entry(name).or_default();
            series.push(recording, run, Bytes::ZERO, 0, is_first);
        }
        for level in &look.changed {
            let key = (level.kind, level.name.clone());
            let series = self.names.entry(key).or_default();
            series.push(recording, run, level.n_bytes, level.n_storages, is_first);
        }
    }

    /// Of objects that changed: what has nothing is not listed.
    fn emptied_branches(&self, look: &DeviceHolders) -> Vec<NameKey> {
        let has = |name: &str| {
            let mut changed = look.changed.iter();
            changed.any(|it| it.kind == RootKind::Variable && it.name == name)
        };
        let names = self.names.iter();
        let left = names.filter(|(name, series)| is_branch(name) && series.now() > Bytes::ZERO);
        left.filter(|((_, name), _)| has(trunk(name)) && !has(name))
            .map(|(name, _)| name.clone())
            .collect()
    }
}

impl NameSeries {
    /// What it gained, the rest of its object lost: the last third of the looks has so much less of
    /// that than the first, in the middle of each.
    fn was_moved_within(&self, whole: &Self) -> bool {
        let points = &self.points[self.first..];
        let rest = |point: &Point| whole.after(point.run).saturating_sub(point.n_bytes);
        let middle = |points: &[Point]| {
            let mut rests: Vec<Bytes> = points.iter().map(rest).collect();
            rests.sort_unstable();
            rests.get(rests.len() / 2).map_or(0.0, |it| it.as_f64())
        };
        let n = points.len().div_ceil(3);
        // The middles of the thirds are two thirds of the course apart.
        let lost = 1.5 * (middle(&points[..n]) - middle(&points[points.len() - n..]));
        lost >= MOVES * self.now().saturating_sub(self.start).as_f64()
    }

    fn push(
        &mut self,
        recording: &Recording,
        run: RunIdx,
        n_bytes: Bytes,
        n_storages: u64,
        is_first: bool,
    ) {
        let mut before = self.now();
        let gained = self.highest.saturating_sub(self.start);
        let lost = self.highest.saturating_sub(n_bytes);
        if is_first {
            (before, self.start) = (n_bytes, n_bytes);
        } else if gained > Bytes::ZERO && lost.as_f64() >= EMPTIED * gained.as_f64() {
            if self.empties_itself(recording, run) {
                self.emptied_at = self.highest;
            }
            before = Bytes::ZERO;
            self.first = self.points.len();
            (self.start, self.highest) = (Bytes::ZERO, Bytes::ZERO);
        }
        self.highest = self.highest.max(n_bytes);
        self.points.push(Point {
            run,
            n_bytes,
            n_storages,
            grew: n_bytes > before,
        });
    }

    /// Since the look before the one after `run`, nothing ran but the cell that fills it.
    fn empties_itself(&self, recording: &Recording, run: RunIdx) -> bool {
        let since = self.points.last().map_or(run, |point| point.run);
        let cell = recording.run(run).cell;
        let mut between = recording.runs()[since.get()..=run.get()].iter();
        between.all(|run| run.parent.is_some() || run.cell == cell)
    }

    fn after(&self, run: RunIdx) -> Bytes {
        let n = self.points.partition_point(|point| point.run <= run);
        let point = n.checked_sub(1).map(|idx| self.points[idx]);
        point.map_or(Bytes::ZERO, |point| point.n_bytes)
    }

    fn now(&self) -> Bytes {
        self.points.last().map_or(Bytes::ZERO, |it| it.n_bytes)
    }

    /// Since the first look of its episode.
    fn grew_each_time(&self) -> bool {
        let mut later = self.points[self.first..].iter().skip(1);
        later.all(|point| point.grew)
    }

    fn grown(&self) -> impl Iterator<Item = &Point> {
        self.points[self.first..].iter().filter(|point| point.grew)
    }

    /// It has more than ever, in more storages than at first: something is added, and nothing is
    /// replaced by a larger one.
    fn collects(&self, least: Bytes) -> bool {
        let Some(last) = self.points.last().filter(|last| {
            let gained = last.n_bytes.saturating_sub(self.start);
            gained >= least && last.n_bytes > self.emptied_at
        }) else {
            return false;
        };
        let mut grown = self.grown();
        let first = grown.next();
        first.is_some_and(|first| last.n_storages > first.n_storages) && grown.next().is_some()
    }

    /// The cells of which more than one run added to it, and how many.
    fn adders(&self, recording: &Recording, name: &str) -> Vec<(CellIdx, usize)> {
        let mut cells: BTreeMap<CellIdx, usize> = BTreeMap::new();
        for point in self.grown() {
            let run = doer(recording, point.run, name);
            if let Some(run) = run.filter(|run| run.kind == RunKind::Cell) {
                *cells.entry(run.cell).or_default() += 1;
            }
        }
        cells.into_iter().filter(|(_, n)| *n > 1).collect()
    }
}

/// The run that changed what a look after `run` sees of a name. If others ran in its time, too, it is the only
/// one of them whose code names it.
fn doer<'a>(recording: &'a Recording, run: RunIdx, name: &str) -> Option<&'a Run> {
    let run = recording.run(recording.outermost(run));
    if run.overlaps.is_empty() {
        return Some(run);
    }
    let names = |run: &&Run| {
        let text = recording.text(run);
        text.is_some_and(|text| source_text::has_word(text, trunk(name)))
    };
    let is_known = recording.overlapping(run).count() == run.overlaps.len();
    let all = std::iter::once(run).chain(recording.overlapping(run));
    let mut naming = all.filter(names);
    let first = naming.next()?;
    (is_known && naming.next().is_none()).then_some(first)
}

impl GrowingNames {
    /// Those of which each has a good part of what all gained, one by one; all together if there are none.
    fn each(
        recording: &Recording,
        device: DeviceIdx,
        names: &[(&NameKey, &NameSeries)],
    ) -> Vec<Self> {
        let all = Self::of(recording, device, names);
        let total: f64 = all.names.iter().map(|(_, gained)| gained.as_f64()).sum();
        let is_worth = |name: &NameKey| {
            let gained = all.names.iter().find(|(it, _)| it == name);
            gained.is_some_and(|(_, gained)| gained.as_f64() >= WORTH_NAMING * total)
        };
        let worth = names.iter().filter(|(name, _)| is_worth(name));
        let each = worth.map(|name| Self::of(recording, device, std::slice::from_ref(name)));
        let each: Vec<Self> = each.collect();
        if each.is_empty() { vec![all] } else { each }
    }

    fn of(recording: &Recording, device: DeviceIdx, names: &[(&NameKey, &NameSeries)]) -> Self {
        let adders = names
            .iter()
            .flat_map(|((_, name), series)| series.adders(recording, name));
        let cells: HashSet<CellIdx> = adders.map(|(cell, _)| cell).collect();
        let is_of_them = |run: &Run| cells.contains(&run.cell) && run.parent.is_none();
        let doers = names.iter().flat_map(|((_, name), series)| {
            let grown = series.grown();
            grown.filter_map(|point| doer(recording, point.run, name))
        });
        let of_cells = doers.filter(|run| is_of_them(run));
        let first = of_cells.map(|run| run.idx).min().unwrap_or_default();
        let runs = recording.runs()[first.get()..].iter();
        let runs = runs.filter(|run| is_of_them(run));
        let sum = |run: &RunIdx| -> Bytes {
            let levels = names.iter().map(|(_, series)| series.after(*run));
            levels.sum()
        };
        // What ran out of memory has not settled.
        let mut level = Bytes::ZERO;
        let counts = |run: &&Run| {
            let before = std::mem::replace(&mut level, sum(&run.idx));
            run.status == Status::Ok || level > before
        };
        let runs: Vec<RunIdx> = runs.filter(counts).map(|run| run.idx).collect();
        let before = |series: &NameSeries| match first.0.checked_sub(1) {
            Some(before) if first > series.points[series.first].run => series.after(RunIdx(before)),
            _ => series.start,
        };
        let gained = names.iter().map(|(name, series)| {
            let gained = series.now().since(before(series));
            ((*name).clone(), gained)
        });
        let mut gained: Vec<(NameKey, ByteDelta)> = gained.collect();
        gained.sort_by_key(|(_, gained)| std::cmp::Reverse(*gained));
        Self {
            device,
            start: names.iter().map(|(_, series)| before(series)).sum(),
            levels: runs.iter().map(sum).collect(),
            runs,
            names: gained,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Play, run, session};
    use crate::{Finding, FindingKind, Rules, analyze};
    use gpumem_model::holders::NameLevel;
    use gpumem_model::recording::{Frame, HolderSnapshot};

    /// After each run, one name that has so many MiB, each in a storage of its own.
    fn followed(cells: &[(&str, &[Play])], levels_mib: &[u64]) -> Vec<Finding> {
        let (mut recording, _) = session(cells);
        let mut known = 0;
        for (run, level) in recording.runs().to_vec().iter().zip(levels_mib) {
            let n_bytes = Bytes::mib(*level);
            let level = NameLevel {
                kind: RootKind::Variable,
                name: "losses".to_owned(),
                n_bytes,
                n_storages: *level,
            };
            let changed = (n_bytes.get() != known).then_some(level);
            known = n_bytes.get();
            let look = HolderSnapshot {
                run: run.idx,
                device: DeviceIdx(0),
                inside_at: None,
                holders: DeviceHolders {
                    device: "sim:0".to_owned(),
                    n_bytes: n_bytes.max(Bytes::mib(1)),
                    changed: changed.into_iter().collect(),
                    ..DeviceHolders::default()
                },
            };
            let look = Frame::Holders(Box::new(look));
            recording.apply(look).expect("of a run");
        }
        analyze(&recording, &Rules::default()).findings
    }

    /// After each of these runs of one cell, what an object has, and one of its attributes: MiB.
    fn told_of(levels_mib: &[(u64, u64)]) -> Vec<String> {
        let runs = vec![run(1); levels_mib.len()];
        let (recording, _) = session(&[("trainer.fit()", &runs)]);
        let mut names = OfDevice::default();
        for (run, (whole, branch)) in recording.runs().iter().zip(levels_mib) {
            let level = |(name, mib): (&str, &u64)| NameLevel {
                kind: RootKind::Variable,
                name: name.to_owned(),
                n_bytes: Bytes::mib(*mib),
                n_storages: *mib / 8,
            };
            let levels = [("trainer", whole), ("trainer.history", branch)];
            let look = DeviceHolders {
                n_bytes: Bytes::mib(1),
                changed: levels.map(level).to_vec(),
                ..DeviceHolders::default()
            };
            names.take_in(&recording, run.idx, &look);
        }
        let names = Names {
            of_devices: vec![names],
        };
        let growing = names.growing(&recording, DeviceIdx(0), Bytes::mib(1), None);
        let names = growing.into_iter().flat_map(|it| it.names);
        names.map(|((_, name), _)| name).collect()
    }

    #[test]
    fn a_branch_is_told_that_grows_alone_or_where_its_object_also_loses() {
        let n = || 0..12_u64;
        let beside_noise: Vec<(u64, u64)> = n().map(|n| (8 * n + 64 * (n % 3), 8 * n)).collect();
        let alone: Vec<(u64, u64)> = n().map(|n| (96 + 8 * n, 8 * n)).collect();
        let moved: Vec<(u64, u64)> = n().map(|n| (96 - n % 2, 8 * n)).collect();
        assert_eq!(told_of(&beside_noise), ["trainer.history"]);
        assert_eq!(told_of(&alone), ["trainer.history"]);
        assert_eq!(told_of(&moved), [""; 0]);
    }

    #[test]
    fn the_branches_that_gained_nearly_all_are_what_grows() {
        let check = |gains: &[(&'static str, i64, usize)], of_object: i64, expected: &[&str]| {
            let gain = |(name, gained, n_grown): &(&'static str, i64, usize)| BranchGain {
                name,
                gained: ByteDelta::new(*gained),
                n_grown: *n_grown,
            };
            let gains = gains.iter().map(gain).collect();
            let main = main_branches(gains, ByteDelta::new(of_object));
            assert_eq!(main.iter().map(|it| it.name).collect::<Vec<_>>(), expected);
        };
        check(&[("a.w", 0, 0), ("a.logs", 100, 9)], 100, &["a.logs"]);
        check(
            &[("a.x", 30, 9), ("a.logs", 70, 9)],
            100,
            &["a.logs", "a.x"],
        );
        check(&[("a.x", 4, 9), ("a.logs", 96, 9)], 100, &["a.logs"]);
        // What grew once is no growth, and what no branch has is the object's.
        check(&[("a.x", 90, 1), ("a.logs", 70, 9)], 160, &["a.logs"]);
        check(&[("a.logs", 70, 9)], 100, &[]);
        check(&[("a.w", -60, 0), ("a.logs", 70, 9)], 10, &["a.logs"]);
    }

    fn rounds<'a>(cells: &[(&'a str, Play)], n: usize) -> Vec<(&'a str, Vec<Play>)> {
        let round = |_| cells.iter().map(|(text, play)| (*text, vec![play.clone()]));
        (0..n).flat_map(round).collect()
    }

    #[track_caller]
    fn check(cells: &[(&str, Vec<Play>)], levels_mib: &[u64], expected: &[&str]) {
        let cells: Vec<(&str, &[Play])> = cells.iter().map(|(text, it)| (*text, &**it)).collect();
        let found = followed(&cells, levels_mib);
        let grow = found.iter().filter(|it| it.kind != FindingKind::Settled);
        let shown: Vec<String> = grow.map(crate::testing::facts).collect();
        assert_eq!(shown, expected);
    }

    #[test]
    fn a_name_that_grows_in_the_noise_is_found() {
        let noise = [90, -80, 40, 60, -100, 20, -30, 80, -70, 10, 50, -60];
        let kept: Vec<Play> = noise.into_iter().map(run).collect();
        let mut cells = vec![("losses = []", vec![run(1)])];
        cells.extend(
            kept.into_iter()
                .map(|play| ("losses.append(f())", vec![play])),
        );
        let levels: Vec<u64> = (0..13).map(|n| 8 * n).collect();
        check(
            &cells,
            &levels,
            &[
                "growing: losses.append(f()) · 8 MiB a run in 12 of 12, 96 in all · full in 1899 · losses",
            ],
        );
    }

    #[test]
    fn a_name_that_is_emptied_begins_anew() {
        let fill = ("losses.append(f())", run(200));
        let empty = ("losses = []", run(-1800));
        let mut cells = vec![("import f", vec![run(1)])];
        for _ in 0..2 {
            cells.extend(rounds(std::slice::from_ref(&fill), 9));
            cells.extend(rounds(std::slice::from_ref(&empty), 1));
        }
        cells.extend(rounds(std::slice::from_ref(&fill), 9));
        let round = |_| (1..=9).map(|n| 200 * n).chain([0]);
        let levels: Vec<u64> = std::iter::once(0).chain((0..3).flat_map(round)).collect();
        let of_third =
            "leak: losses.append(f()) · 200 MiB a run in 9 of 9, 1800 in all · full in 67 · losses";
        check(&cells, &levels, &[of_third]);
    }

    #[test]
    fn what_the_cell_empties_itself_has_a_bound() {
        let mut cells = vec![("import f", vec![run(1)])];
        cells.extend(rounds(&[("window.append(f())", run(200))], 10));
        cells.extend(rounds(&[("window.append(f())", run(-1800))], 1));
        cells.extend(rounds(&[("window.append(f())", run(200))], 9));
        let levels: Vec<u64> = (0..=10).chain(1..=10).map(|n| 200 * n).collect();
        check(&cells, &levels, &[]);
    }

    #[test]
    fn a_name_that_is_replaced_by_something_larger_is_not_collecting() {
        let mut series = NameSeries::default();
        let (recording, _) = session(&[("x = f()", &[run(8), run(8), run(8)])]);
        for run in 0..3 {
            let n_bytes = Bytes::mib(8 + 8 * u64::from(run));
            series.push(&recording, RunIdx(run), n_bytes, 1, false);
        }
        assert!(!series.collects(Bytes::mib(1)));
    }
}
