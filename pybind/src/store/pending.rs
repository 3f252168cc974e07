//! What is not on the disk yet, each thing once in its newest state.

use std::collections::btree_map::Entry;
use std::collections::{BTreeSet, HashMap, VecDeque};

use gpumem_core::recording::{DeviceIdx, Frame, HolderSnapshot, Missing, RunIdx};

use super::file::Changes;
use super::row::{Place, encoded};

/// A disk that takes nothing makes no more than this wait in memory, in bytes.
const MAX_WAITING: usize = 32 << 20;

/// Changes that are still to be written.
#[derive(Default)]
pub(super) struct Pending {
    changes: Changes,
    n_bytes: usize,
    /// How many frames there were in this session.
    n_frames: u64,
    /// The latest looks at each device: of earlier ones less is kept.
    looks: HashMap<DeviceIdx, VecDeque<HolderSnapshot>>,
    /// The runs after which each device's segments were kept.
    maps: HashMap<DeviceIdx, Vec<RunIdx>>,
    /// The runs that met an out-of-memory error.
    with_oom: BTreeSet<RunIdx>,
    /// Frames that found no room.
    n_dropped: u64,
}

impl Pending {
    /// Something is to be written.
    pub(super) fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }

    pub(super) fn changes(&self) -> &Changes {
        &self.changes
    }

    /// All of it is on the disk.
    pub(super) fn clear(&mut self) {
        self.changes.clear();
        self.n_bytes = 0;
    }

    /// Rows of a file that was damaged: what is newer stays.
    pub(super) fn add_older(&mut self, older: Changes) {
        for (place, bytes) in older {
            let is_replaced = place.holds_points() && {
                let newer = self.changes.range(place.from(0)..=place.clone());
                newer.count() > 0
            };
            if !is_replaced && let Entry::Vacant(vacant) = self.changes.entry(place) {
                self.n_bytes += bytes.as_ref().map_or(0, Vec::len);
                vacant.insert(bytes);
            }
        }
    }

    pub(super) fn add(&mut self, frame: Frame) {
        match &frame {
            Frame::Run(run) if run.oom.is_some() => drop(self.with_oom.insert(run.idx)),
            Frame::Holders(held) => self.keep_less_of_earlier_looks(held),
            Frame::Segments(mapped) => self.drop_earlier_maps(mapped.device, mapped.run),
            _ => {}
        }
        self.put(frame);
    }

    /// So many frames were dropped before they came here.
    pub(super) fn note_dropped(&mut self, n: u64) {
        self.n_dropped += n;
        if n > 0 {
            self.put_missing();
        }
    }

    fn put(&mut self, frame: Frame) {
        self.n_frames += 1;
        let place = Place::of(&frame, self.n_frames);
        let bytes = encoded(frame);
        if place.holds_points() {
            let replaced = self.changes.split_off(&place);
            let next = place.from(u64::MAX);
            for (other, bytes) in replaced {
                if other > next {
                    self.changes.insert(other, bytes);
                } else {
                    self.n_bytes -= bytes.map_or(0, |it| it.len());
                }
            }
        }
        self.n_bytes += bytes.len();
        let before = self.changes.insert(place, Some(bytes)).flatten();
        self.n_bytes -= before.map_or(0, |it| it.len());
        if self.n_bytes > MAX_WAITING {
            self.drop_largest();
        }
    }

    /// Points, traces and snapshots go: runs and cells are little, and say most.
    fn drop_largest(&mut self) {
        let n_before = self.changes.len();
        let is_small = |place: &Place| !(place.holds_points() || place.is_snapshot());
        self.changes.retain(|place, _| is_small(place));
        let mut n_lost = n_before - self.changes.len();
        if n_lost == 0 {
            n_lost = n_before;
            self.changes.clear();
        }
        let left = self.changes.values().flatten();
        self.n_bytes = left.map(Vec::len).sum();
        self.n_dropped += n_lost as u64;
        self.put_missing();
    }

    fn put_missing(&mut self) {
        let n = self.n_dropped;
        let words = format!("the store had no room for {n} changes of this session");
        self.changes.retain(|place, _| !place.is_missing());
        let frame = Frame::Missing(Missing { words });
        let place = Place::of(&frame, 0);
        self.changes.insert(place, Some(encoded(frame)));
    }

    /// As the recording does it: the look before keeps an outline, earlier ones what grew.
    fn keep_less_of_earlier_looks(&mut self, held: &HolderSnapshot) {
        let looks = self.looks.entry(held.device).or_default();
        if looks.front().is_some_and(|it| it.run == held.run) {
            looks.pop_front();
        }
        let mut lessened = Vec::new();
        for (n, look) in looks.iter_mut().enumerate() {
            if n == 0 {
                look.holders.keep_outline();
            } else {
                look.holders.keep_what_grew();
            }
            lessened.push(look.clone());
        }
        looks.push_front(held.clone());
        looks.truncate(2);
        for look in lessened {
            self.put(Frame::Holders(Box::new(look)));
        }
    }

    /// As the recording does it: the latest stays, and the latest of a run that met an error.
    fn drop_earlier_maps(&mut self, device: DeviceIdx, run: RunIdx) {
        let runs = self.maps.entry(device).or_default();
        runs.retain(|it| *it != run);
        let with_oom = runs.iter().chain([&run]).copied();
        let kept = with_oom.filter(|it| self.with_oom.contains(it)).max();
        let dropped: Vec<RunIdx> = runs.extract_if(.., |it| Some(*it) != kept).collect();
        runs.push(run);
        for dropped in dropped {
            self.changes.insert(Place::of_map(dropped, device), None);
        }
    }
}
