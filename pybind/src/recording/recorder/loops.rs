//! Loops of the open run, and the levels where their iterations end.

use gpumem_model::downsample::{Downsampler, Spacing};
use gpumem_model::recording::{
    DeviceIdx, DriverLevels, Frame, Loop, LoopIdx, Reading, RunIdx, RunLevels, Sample, Series,
};

use super::{Recorder, SourceText};
use gpumem_machine::sources::SourceDevice;

/// The most points of one loop that are kept for one run.
const MAX_POINTS: usize = 512;

/// Fewer are no series.
const FEWEST_POINTS: usize = 3;

impl Recorder {
    /// A loop of a run, or its newer state.
    pub(crate) fn note_loop(&mut self, mut counted: Loop) {
        // Where a cell's text is not kept, neither is what its functions and files are called.
        if self.source_text != SourceText::Full {
            counted.function.clear();
            counted.file.clear();
            counted.text.clear();
        }
        self.emit(Frame::Loop(Box::new(counted)));
    }

    /// Records the levels at the end of a loop's iteration, and the number of iterations so far.
    pub(crate) fn read_in_loop(
        &mut self,
        run: RunIdx,
        idx: LoopIdx,
        n_iterations: u64,
        readings: Vec<(SourceDevice, Reading)>,
    ) {
        if !self.open.contains_key(&run) {
            return;
        }
        let at = self.clock.now();
        for (found, reading) in readings {
            let device = self.device(found);
            self.appears(run, device, &reading);
            let levels = Sample::from_reading(&reading);
            let place = (run, device, Series::Loop(idx));
            let series = self.marks.entry(place);
            let series = series.or_insert_with(|| Downsampler::new(MAX_POINTS, Spacing::Ordinal));
            let n_points = series.points().len();
            let is_downsampled = series.push_at(n_iterations, Sample { at, ..levels });
            let from = match n_points {
                _ if is_downsampled => 0,
                n if n + 1 < FEWEST_POINTS => continue,
                n if n + 1 == FEWEST_POINTS => 0,
                n => n,
            };
            let points = series.points()[from..].to_vec();
            self.emit(Frame::samples(run, device, Series::Loop(idx), points));
        }
    }
    /// A device that was not there when the open run began, as before a framework is imported, has no level
    /// before it.
    fn appears(&mut self, run: RunIdx, device: DeviceIdx, reading: &Reading) {
        let known = &self.recording.run(run).levels;
        if known.iter().any(|it| it.device == device) {
            return;
        }
        let mut run = self.recording.run(run).clone();
        run.levels.push(RunLevels {
            device,
            before: Reading {
                driver: DriverLevels {
                    capacity: reading.driver.capacity.clone(),
                    ..DriverLevels::default()
                },
                ..Reading::default()
            },
            after: None,
            peak_reset: false,
        });
        self.emit(Frame::Run(run));
    }
}
