//! What can be read of a recording of which frames are lost.

use super::{Fault, apply};
use crate::recording::{
    Cell, CellIdx, Device, DeviceIdx, Frame, FrameError, Header, Missing, Recording, Run, RunIdx,
    Status,
};

/// So many lost entries of one kind are made up for; more are none, but an index that is damaged.
const MAX_MADE_UP: usize = 1 << 16;

/// Reads frames, each by itself, of which some are lost; `n_lost` is known already. What others refer
/// to and is lost has an empty place, so that the others are read.
///
/// ```
/// use gpumem_core::format::{encode_frames, salvage};
/// use gpumem_core::recording::{Cell, CellIdx, Frame};
///
/// let second = Frame::Cell(Cell { idx: CellIdx(1), ..Cell::default() });
/// let rows = [encode_frames([second])]; // the first one is lost
/// let recording = salvage(rows.iter().map(Vec::as_slice), 1);
/// assert_eq!(recording.cells().len(), 2);
/// assert_eq!(recording.missing().next(), Some("the session's file was damaged: 1 row is missing"));
/// ```
pub fn salvage<'a>(rows: impl Iterator<Item = &'a [u8]>, mut n_lost: usize) -> Recording {
    let mut recording = Recording::new(Header::default());
    for row in rows {
        if !fits(&mut recording, row) {
            n_lost += 1;
        }
    }
    if n_lost > 0 {
        let n = if n_lost == 1 {
            "1 row is".to_owned()
        } else {
            format!("{n_lost} rows are")
        };
        let words = format!("the session's file was damaged: {n} missing");
        // It refers to nothing.
        drop(recording.apply(Frame::Missing(Missing { words })));
    }
    recording
}

fn fits(recording: &mut Recording, row: &[u8]) -> bool {
    // Each round makes up for another kind of entry.
    for _ in 0..4 {
        match apply(recording, row) {
            Ok(()) => return true,
            Err(error) => match error.what {
                Fault::Frame(FrameError::Dangling { what, idx, .. }) => {
                    if !make_up(recording, what, idx as usize) {
                        return false;
                    }
                }
                _ => return false,
            },
        }
    }
    false
}

/// Puts empty entries in the places up to `idx`; at an index that skips that is the one before it.
fn make_up(recording: &mut Recording, what: &str, idx: usize) -> bool {
    let n_known = match what {
        "device" => recording.devices().len(),
        "cell" => recording.cells().len(),
        _ => recording.runs().len(),
    };
    let missing = n_known..idx.max(n_known + 1);
    if missing.len() > MAX_MADE_UP {
        return false;
    }
    for n in missing {
        let n = n as u32;
        let frame = match what {
            "device" => Frame::Device(Device {
                idx: DeviceIdx(n),
                ..Device::default()
            }),
            "cell" => Frame::Cell(Cell {
                idx: CellIdx(n),
                ..Cell::default()
            }),
            _ => {
                if recording.cells().is_empty() {
                    make_up(recording, "cell", 0);
                }
                Frame::Run(Run {
                    idx: RunIdx(n),
                    ended: Some(crate::units::Nanos::ZERO),
                    status: Status::Interrupted,
                    ..Run::default()
                })
            }
        };
        if recording.apply(frame).is_err() {
            return false;
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::encode_frames;
    use crate::testing::{run, session};

    /// Of a session's frames each is lost once: what is left is read.
    #[test]
    fn whatever_is_lost_the_rest_is_read() {
        let (recording, _) = session(&[("f()", &vec![run(40); 12]), ("g()", &vec![run(0); 3])]);
        let rows: Vec<Vec<u8>> = recording.frames().map(|it| encode_frames([it])).collect();
        for lost in 0..rows.len() {
            let left = rows.iter().enumerate().filter(|(idx, _)| *idx != lost);
            let found = salvage(left.map(|(_, row)| row.as_slice()), 1);
            assert_eq!(
                found.missing().next(),
                Some("the session's file was damaged: 1 row is missing"),
                "frame {lost}"
            );
            assert!(found.runs().len() >= 14, "frame {lost}");
        }
        let whole = salvage(rows.iter().map(Vec::as_slice), 0);
        assert_eq!(whole, recording);
    }
}
