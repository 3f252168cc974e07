//! One row of a session's file: a frame, where it belongs, and the checksum of both.

use gpumem_core::format;
use gpumem_core::recording::{DeviceIdx, Frame, RunIdx, Series};

/// What a row holds; rows are read in this order, so that each frame follows those that it names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub(super) enum Kind {
    Header,
    Device,
    Cell,
    Run,
    Samples,
    Trace,
    Holders,
    Segments,
    Missing,
    Finish,
    Loop,
}

/// Where a frame belongs: a newer frame takes the place of an older one.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place {
    pub(super) kind: u8,
    /// The run; of a cell or a device its own index.
    pub(super) run: u32,
    pub(super) device: u32,
    /// The label of marks with a colon before it, or the number of a loop; empty for what the sampler
    /// read.
    pub(super) series: String,
    /// The first instant of points, in nanoseconds; a number that counts texts of cells and gaps.
    pub(super) since: u64,
}

impl Place {
    /// Of a frame that is the `n`th of its session.
    pub(super) fn of(frame: &Frame, n: u64) -> Self {
        let (kind, run, device) = match frame {
            Frame::Header(_) => (Kind::Header, 0, 0),
            Frame::Device(device) => (Kind::Device, device.idx.0, 0),
            Frame::Cell(cell) => (Kind::Cell, cell.idx.0, 0),
            Frame::Run(run) => (Kind::Run, run.idx.0, 0),
            Frame::Samples(samples) => (Kind::Samples, samples.run.0, samples.device.0),
            Frame::Loop(counted) => (Kind::Loop, counted.run.0, 0),
            Frame::Trace(trace) => (Kind::Trace, trace.run.0, trace.device.0),
            Frame::Holders(held) => (Kind::Holders, held.run.0, held.device.0),
            Frame::Segments(mapped) => (Kind::Segments, mapped.run.0, mapped.device.0),
            Frame::Missing(_) => (Kind::Missing, 0, 0),
            Frame::Finish(_) => (Kind::Finish, 0, 0),
        };
        let (series, since) = match frame {
            Frame::Samples(samples) => {
                let first = samples.points.at().first();
                let since = first.map_or(0, |at| at.get());
                (label(&samples.series), since)
            }
            Frame::Loop(counted) => (format!("loop {}", counted.idx.0), 0),
            Frame::Cell(_) | Frame::Missing(_) => (String::new(), n),
            _ => (String::new(), 0),
        };
        Self {
            kind: kind as u8,
            run,
            device,
            series,
            since,
        }
    }

    /// It holds points, which replace all of their series from their first instant on.
    pub(super) fn holds_points(&self) -> bool {
        self.kind == Kind::Samples as u8
    }

    /// Of a device's segments after a run.
    pub(super) fn of_map(run: RunIdx, device: DeviceIdx) -> Self {
        Self {
            kind: Kind::Segments as u8,
            run: run.0,
            device: device.0,
            series: String::new(),
            since: 0,
        }
    }

    /// It holds a trace, or what was found at one instant.
    pub(super) fn is_snapshot(&self) -> bool {
        let kinds = [Kind::Trace, Kind::Holders, Kind::Segments];
        kinds.iter().any(|kind| *kind as u8 == self.kind)
    }

    /// It says what is missing.
    pub(super) fn is_missing(&self) -> bool {
        self.kind == Kind::Missing as u8
    }

    /// The same series of points from another instant on.
    pub(super) fn from(&self, since: u64) -> Self {
        Self {
            since,
            ..self.clone()
        }
    }
}

fn label(series: &Series) -> String {
    match series {
        Series::Sampled => String::new(),
        Series::Marked(label) => format!(":{label}"),
        Series::Loop(idx) => format!("loop {}", idx.0),
    }
}

/// What a row holds of a frame.
pub(super) fn encoded(frame: Frame) -> Vec<u8> {
    format::encode_frames([frame])
}

/// Of everything that a row holds.
pub(super) fn checksum(id: i64, place: &Place, bytes: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&id.to_le_bytes());
    hasher.update(&[place.kind]);
    hasher.update(&place.run.to_le_bytes());
    hasher.update(&place.device.to_le_bytes());
    hasher.update(place.series.as_bytes());
    hasher.update(&place.since.to_le_bytes());
    hasher.update(bytes);
    hasher.finalize()
}
