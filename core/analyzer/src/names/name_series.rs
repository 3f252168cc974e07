//! The levels of one name, look by look, in episodes: one that is emptied begins anew.

use std::collections::BTreeMap;

use gpumem_model::holders::variable_of;
use gpumem_model::recording::{CellIdx, Recording, Run, RunIdx, RunKind};
use gpumem_model::source_text;
use gpumem_model::units::Bytes;

/// What a name has lost, as a share of all it had gained, when it begins anew.
pub(super) const EMPTIED: f64 = 0.75;

/// Where a branch gains what the rest of its object loses, but for this share, it moved.
const MOVES: f64 = 0.9;

/// A name of this share of what runs of a cell kept, which grew in as many of them, explains their growth.
const EXPLAINS: f64 = 0.5;

/// The levels of one name, where they changed.
#[derive(Debug, Default)]
pub(super) struct NameSeries {
    pub(super) points: Vec<NamePoint>,
    /// The first point of the latest episode.
    pub(super) first: usize,
    /// What it had before that, and what it had at most since.
    pub(super) start: Bytes,
    pub(super) highest: Bytes,
    /// What it once had when the cell that fills it emptied it.
    pub(super) emptied_at: Bytes,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct NamePoint {
    pub(super) run: RunIdx,
    pub(super) n_bytes: Bytes,
    pub(super) n_storages: u64,
    /// More than before.
    pub(super) grew: bool,
}

impl NameSeries {
    /// Whether the rest of its object lost what it gained: compares the medians of the first and of the last third of
    /// the looks.
    pub(super) fn was_moved_within(&self, whole: &Self) -> bool {
        let points = &self.points[self.first..];
        let rest = |point: &NamePoint| whole.after(point.run).saturating_sub(point.n_bytes);
        let middle = |points: &[NamePoint]| {
            let mut rests: Vec<Bytes> = points.iter().map(rest).collect();
            rests.sort_unstable();
            rests.get(rests.len() / 2).map_or(0.0, |it| it.as_f64())
        };
        let n = points.len().div_ceil(3);
        // The middles of the thirds are two thirds of the course apart.
        let lost = 1.5 * (middle(&points[..n]) - middle(&points[points.len() - n..]));
        lost >= MOVES * self.now().saturating_sub(self.start).as_f64()
    }

    /// Whether it explains what these runs of one cell kept: it has most of that and grew in most of them.
    pub(super) fn explains(&self, runs: &[RunIdx], kept: Bytes) -> bool {
        let (Some(first), Some(last)) = (runs.first(), runs.last()) else {
            return false;
        };
        let from = self.points.partition_point(|point| point.run < *first);
        let to = self.points.partition_point(|point| point.run <= *last);
        let points = &self.points[from..to.max(from)];
        let grew = points.iter().filter(|it| it.grew);
        let n_grown = grew
            .filter(|it| runs.binary_search(&it.run).is_ok())
            .count();
        let before = from.checked_sub(1).map(|idx| self.points[idx].n_bytes);
        let gained = self.after(*last).saturating_sub(before.unwrap_or_default());
        n_grown as f64 >= EXPLAINS * runs.len() as f64
            && gained.as_f64() >= EXPLAINS * kept.as_f64()
    }

    /// Takes in what it has after a run; whether it begins anew, as its cell has not emptied it.
    pub(super) fn push(
        &mut self,
        recording: &Recording,
        run: RunIdx,
        (n_bytes, n_storages): (Bytes, u64),
        is_first: bool,
    ) -> bool {
        let mut before = self.now();
        let mut begins_anew = false;
        let gained = self.highest.saturating_sub(self.start);
        let lost = self.highest.saturating_sub(n_bytes);
        if is_first {
            (before, self.start) = (n_bytes, n_bytes);
        } else if gained > Bytes::ZERO && lost.as_f64() >= EMPTIED * gained.as_f64() {
            if self.empties_itself(recording, run) {
                self.emptied_at = self.highest;
            } else {
                begins_anew = true;
            }
            before = Bytes::ZERO;
            self.first = self.points.len();
            (self.start, self.highest) = (Bytes::ZERO, Bytes::ZERO);
        }
        self.highest = self.highest.max(n_bytes);
        self.points.push(NamePoint {
            run,
            n_bytes,
            n_storages,
            grew: n_bytes > before,
        });
        begins_anew
    }

    /// Since the look before the one after `run`, nothing ran but the cell that fills it, recorded or not.
    fn empties_itself(&self, recording: &Recording, run: RunIdx) -> bool {
        let since = self.points.last().map_or(run, |point| point.run);
        let cell = recording.run(run).cell;
        let between = recording.runs()[since.get()..=run.get()].iter();
        let between: Vec<&Run> = between.filter(|run| run.parent.is_none()).collect();
        // Jupyter counts what runs.
        let follows = |pair: &[&Run]| {
            let counts = pair[0].execution_count.zip(pair[1].execution_count);
            counts.is_none_or(|(one, next)| next <= one + 1)
        };
        between.iter().all(|run| run.cell == cell) && between.windows(2).all(follows)
    }

    pub(super) fn after(&self, run: RunIdx) -> Bytes {
        let n = self.points.partition_point(|point| point.run <= run);
        let point = n.checked_sub(1).map(|idx| self.points[idx]);
        point.map_or(Bytes::ZERO, |point| point.n_bytes)
    }

    pub(super) fn now(&self) -> Bytes {
        self.points.last().map_or(Bytes::ZERO, |it| it.n_bytes)
    }

    /// Since the first look of its episode.
    pub(super) fn grew_each_time(&self) -> bool {
        let mut later = self.points[self.first..].iter().skip(1);
        later.all(|point| point.grew)
    }

    pub(super) fn grown(&self) -> impl Iterator<Item = &NamePoint> {
        self.points[self.first..].iter().filter(|point| point.grew)
    }

    /// It has more than ever, in more storages than at first: something is added, and nothing is
    /// replaced by a larger one.
    pub(super) fn collects(&self, least: Bytes) -> bool {
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

    /// At each look it has a storage more, or several, for each run of that cell since the look before.
    pub(super) fn is_steady(&self, recording: &Recording, adder: CellIdx) -> bool {
        let points = &self.points[self.first..];
        let gains = |pair: &[NamePoint]| {
            let between = &recording.runs()[pair[0].run.get() + 1..=pair[1].run.get()];
            let is_of_it = |run: &&Run| run.parent.is_none() && run.cell == adder;
            let n_runs = between.iter().filter(is_of_it).count() as u64;
            pair[1].grew && pair[1].n_storages >= pair[0].n_storages + n_runs.max(1)
        };
        points.windows(2).all(gains)
    }

    /// The cells of which more than one run added to it, and how many.
    pub(super) fn adders(&self, recording: &Recording, name: &str) -> Vec<(CellIdx, usize)> {
        let mut cells: BTreeMap<CellIdx, usize> = BTreeMap::new();
        for run in self.doers(recording, name) {
            if run.kind == RunKind::Cell {
                *cells.entry(run.cell).or_default() += 1;
            }
        }
        cells.into_iter().filter(|(_, n)| *n > 1).collect()
    }

    /// The runs that added to it. If a run has no look, a later one's shows what it did: of those since the point
    /// before, it is the last whose code names it.
    pub(super) fn doers<'a>(
        &'a self,
        recording: &'a Recording,
        name: &'a str,
    ) -> impl Iterator<Item = &'a Run> {
        let names = |run: &&Run| {
            let text = recording.text(run);
            run.parent.is_none()
                && text.is_some_and(|text| source_text::has_word(text, variable_of(name)))
        };
        let grown = (self.first..self.points.len()).filter(|idx| self.points[*idx].grew);
        grown.filter_map(move |idx| {
            let run = doer(recording, self.points[idx].run, name)?;
            let before = idx
                .checked_sub(1)
                .map_or(run.idx, |before| self.points[before].run);
            let between = recording.runs().get(before.get() + 1..run.idx.get());
            let earlier = || between.unwrap_or_default().iter().rfind(names);
            let is_own = run.parent.is_some() || names(&run);
            Some(if is_own {
                run
            } else {
                earlier().unwrap_or(run)
            })
        })
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
        text.is_some_and(|text| source_text::has_word(text, variable_of(name)))
    };
    let is_known = recording.overlapping(run).count() == run.overlaps.len();
    let all = std::iter::once(run).chain(recording.overlapping(run));
    let mut naming = all.filter(names);
    let first = naming.next()?;
    (is_known && naming.next().is_none()).then_some(first)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{run, session};

    #[test]
    fn a_run_without_a_look_is_known_by_its_text() {
        let cell = ("kept.append(f(x))", &[run(1)][..]);
        let other = ("y = g()", &[run(1)][..]);
        let (recording, _) = session(&[cell, other, cell, other, cell, other]);
        let mut series = NameSeries::default();
        // The looks are those after the other cell.
        for (run, n) in [(1, 1), (3, 2), (5, 3)] {
            series.push(&recording, RunIdx(run), (Bytes::mib(n), n), false);
        }
        let doers = series.doers(&recording, "kept").map(|run| run.idx.0);
        // Of the first nobody knows what was there before.
        assert_eq!(doers.collect::<Vec<_>>(), [1, 2, 4]);
    }

    #[test]
    fn a_replacement_by_something_larger_is_not_collecting() {
        let mut series = NameSeries::default();
        let (recording, _) = session(&[("x = f()", &[run(8), run(8), run(8)])]);
        for run in 0..3 {
            let n_bytes = Bytes::mib(8 + 8 * u64::from(run));
            series.push(&recording, RunIdx(run), (n_bytes, 1), false);
        }
        assert!(!series.collects(Bytes::mib(1)));
    }
}
