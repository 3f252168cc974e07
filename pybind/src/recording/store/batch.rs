//! Frames that are written together, without those that others of them replace.

use gpumem_model::recording::{Frame, Sample, Samples};

/// The same frames in an order in which each follows those that it names. Of a run that began and ended in the
/// meantime only the end is left, and points of one series are one frame.
pub(super) fn coalesced(mut frames: Vec<Frame>) -> Vec<Frame> {
    frames.sort_by_key(rank);
    let mut coalesced: Vec<Frame> = Vec::with_capacity(frames.len());
    let mut samples = Vec::new();
    for frame in frames {
        match frame {
            Frame::Samples(points) => samples.push(points),
            Frame::Run(run) => {
                let before = coalesced.last();
                if matches!(before, Some(Frame::Run(before)) if before.idx == run.idx) {
                    coalesced.pop();
                }
                coalesced.push(Frame::Run(run));
            }
            frame => {
                coalesced.extend(joined(&mut samples));
                coalesced.push(frame);
            }
        }
    }
    coalesced.extend(joined(&mut samples));
    coalesced
}

/// The order in which a recording lists its frames.
fn rank(frame: &Frame) -> u8 {
    match frame {
        Frame::Header(_) => 0,
        Frame::Device(_) => 1,
        Frame::Cell(_) => 2,
        Frame::Run(_) => 3,
        Frame::Samples(_) => 4,
        Frame::Loop(_) => 5,
        Frame::Trace(_) => 6,
        Frame::Holders(_) => 7,
        Frame::Segments(_) => 8,
        Frame::Missing(_) => 9,
        Frame::Finish(_) => 10,
    }
}

/// One frame for each series: later points replace all from their first instant on.
fn joined(samples: &mut Vec<Samples>) -> Vec<Frame> {
    let key = |it: &Samples| (it.run, it.device, it.series.clone());
    samples.sort_by_cached_key(key);
    let mut frames: Vec<Frame> = Vec::new();
    for series in samples.chunk_by(|a, b| key(a) == key(b)) {
        let mut points: Vec<Sample> = Vec::new();
        for later in series {
            if let Some(first) = later.points.at().first() {
                points.truncate(points.partition_point(|point| point.at < *first));
                points.extend(later.points.iter());
            }
        }
        frames.push(Frame::Samples(Samples {
            points: points.into(),
            ..series[0].clone()
        }));
    }
    samples.clear();
    frames
}
