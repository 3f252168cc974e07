//! What the rules about a whole device look at, of each of its rows a figure or two.

use super::row::{Metric, Peak, RunRow, of_sample};
use gpumem_model::recording::{DeviceIdx, Recording, RunIdx, Sample};
use gpumem_model::units::{ByteDelta, Bytes};

/// The rows of one device, in the order of the runs, as columns.
#[derive(Debug, Clone, Default)]
pub(super) struct DeviceRows {
    /// The metric of the latest row; `None` where there is none.
    pub(super) metric: Option<Metric>,
    /// Where in the list of all rows those of the device are.
    places: Vec<u32>,
    /// The highest level in any run.
    pub(super) peak: Option<Bytes>,
    /// The level after each outermost run.
    pub(super) levels: Vec<(RunIdx, Metric, Bytes)>,
    /// What the process holds beside what its allocator reserved.
    pub(super) gaps: Vec<(RunIdx, Bytes)>,
    /// The runs in which the cache had to be flushed, and how often.
    pub(super) flushes: Vec<(RunIdx, u64)>,
}

impl DeviceRows {
    /// Of every device of the recording, at its position there.
    pub(super) fn all(recording: &Recording, rows: &[RunRow]) -> Vec<Self> {
        let mut all = vec![Self::default(); recording.devices().len()];
        for (place, row) in rows.iter().enumerate() {
            let of_device = &mut all[row.device.get()];
            of_device.see(place, row);
            of_device.take_in(recording, row);
        }
        all
    }

    /// The row at `place`, which may be of a run that goes on.
    pub(super) fn see(&mut self, place: usize, row: &RunRow) {
        let place = u32::try_from(place).expect("a recording has fewer than 2^32 rows");
        if self.places.last() < Some(&place) {
            self.places.push(place);
        }
        if self.places.last() == Some(&place) {
            self.metric = Some(row.metric);
        }
        self.peak = self.peak.max(row.peak.map(Peak::low));
    }

    /// A row that tells how its run ended; once, and most often after those of the runs before it.
    pub(super) fn take_in(&mut self, recording: &Recording, row: &RunRow) {
        let run = row.run;
        // What another run needs for a moment is no level that one leaves.
        if let Some(level) = row.after
            && row.overlap.is_none()
            && recording.run(run).parent.is_none()
        {
            put(&mut self.levels, (run, row.metric, level), |it| it.0);
        }
        if let (Some(used), Some(reserved)) = (row.process_used.1, row.reserved.1) {
            put(&mut self.gaps, (run, used.saturating_sub(reserved)), |it| {
                it.0
            });
        }
        if let Some(n) = row.n_retries.filter(|n| *n > 0) {
            put(&mut self.flushes, (run, n), |it| it.0);
        }
    }

    /// The level after this run is among those of outermost runs.
    pub(super) fn has_level_after(&self, run: RunIdx) -> bool {
        let place = self.levels.binary_search_by_key(&run, |(run, ..)| *run);
        place.is_ok()
    }

    /// The levels after the outermost runs, as far as they are of the latest row's metric.
    pub(super) fn levels_of_metric(&self) -> impl Iterator<Item = (RunIdx, Bytes)> {
        let of_metric = |(_, metric, _): &&(RunIdx, Metric, Bytes)| Some(*metric) == self.metric;
        let levels = self.levels.iter().filter(of_metric);
        levels.map(|(run, _, level)| (*run, *level))
    }
}

/// What a level must have fallen by, as a share of what was held, to say that this was let go of.
pub(super) const GIVEN_BACK: f64 = 0.9;

/// Behind all that are of earlier runs.
fn put<T>(list: &mut Vec<T>, entry: T, run: impl Fn(&T) -> RunIdx) {
    let at = match list.last() {
        Some(last) if run(last) > run(&entry) => list.partition_point(|it| run(it) < run(&entry)),
        _ => list.len(),
    };
    list.insert(at, entry);
}

/// All rows, found by their devices: who asks for those of one device does not look through those
/// of all others.
#[derive(Debug, Clone, Copy)]
pub(super) struct RowsByDevice<'a> {
    all: &'a [RunRow],
    of_devices: &'a [DeviceRows],
}

impl<'a> RowsByDevice<'a> {
    pub(super) fn new(all: &'a [RunRow], of_devices: &'a [DeviceRows]) -> Self {
        Self { all, of_devices }
    }

    /// Of each device that has rows, its columns, and where its latest row is.
    pub(super) fn of_devices(self) -> impl Iterator<Item = (&'a DeviceRows, usize)> {
        let of_devices = self.of_devices.iter();
        of_devices.filter_map(|rows| Some((rows, *rows.places.last()? as usize)))
    }

    /// Whether the device has given back most of `n_bytes` since the look after `seen`, without another look.
    pub(super) fn gave_back(
        self,
        recording: &Recording,
        seen: RunIdx,
        device: DeviceIdx,
        n_bytes: Bytes,
    ) -> bool {
        let level = |row: &RunRow| row.after.or(row.before);
        let then = self.row(seen, device);
        let now = self.for_device(device).rfind(|row| level(row).is_some());
        let fall = then
            .zip(now.filter(|row| row.run > seen))
            .filter(|(then, now)| then.metric == now.metric)
            .and_then(|(then, now)| Some(then.after?.since(level(now)?)));
        let fallen = fall.unwrap_or_default().max(ByteDelta::ZERO).magnitude();
        let fallen = fallen + self.freed_outside(recording, device);
        fallen.as_f64() >= GIVEN_BACK * n_bytes.as_f64()
    }

    /// By how much the level of a device is lower than after the latest run: what was freed outside of runs, which
    /// no look has seen.
    pub(super) fn freed_outside(self, recording: &Recording, device: DeviceIdx) -> Bytes {
        let last = self.for_device(device).next_back();
        let reading = recording.outside_reading(device);
        let fallen = last.zip(reading).and_then(|(row, reading)| {
            let now = of_sample(&Sample::from_reading(reading), row.metric)?;
            Some(row.after?.saturating_sub(now))
        });
        fallen.unwrap_or_default()
    }

    /// The columns of a device.
    pub(super) fn columns(self, device: DeviceIdx) -> &'a DeviceRows {
        &self.of_devices[device.get()]
    }

    /// The rows of a device.
    pub(super) fn for_device(
        self,
        device: DeviceIdx,
    ) -> impl DoubleEndedIterator<Item = &'a RunRow> + ExactSizeIterator {
        let places = self.columns(device).places.iter();
        places.map(move |place| &self.all[*place as usize])
    }

    /// The row of a run on a device.
    pub(super) fn row(self, run: RunIdx, device: DeviceIdx) -> Option<&'a RunRow> {
        let places = &self.columns(device).places;
        let run_of = |place: &u32| self.all[*place as usize].run;
        let idx = places.binary_search_by_key(&run, run_of).ok()?;
        Some(&self.all[places[idx] as usize])
    }

    /// The row at a place.
    pub(super) fn get(self, place: usize) -> &'a RunRow {
        &self.all[place]
    }

    /// The row at a place, and which of its run's it is.
    pub(super) fn at(self, place: usize) -> (&'a RunRow, usize) {
        let row = self.get(place);
        let first = self.all.partition_point(|it| it.run < row.run);
        (row, place - first)
    }

    /// The rows of a run, one per device.
    pub(super) fn of_run(self, run: RunIdx) -> &'a [RunRow] {
        let from = self.all.partition_point(|row| row.run < run);
        let n = self.all[from..].partition_point(|row| row.run == run);
        &self.all[from..from + n]
    }
}
