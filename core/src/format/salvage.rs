//! What can be read of a recording of which frames are lost.

use super::budget::Budget;
use super::{Fault, apply_within};
use crate::recording::{
    Cell, CellIdx, Device, DeviceIdx, Frame, FrameError, Header, Missing, Recording, Run, RunIdx,
    Status,
};

/// So many lost entries of one kind are made up for; more are none, but an index that is damaged.
const MAX_MADE_UP: usize = 1 << 16;

/// What one takes in memory, with its places in the lists of a recording, which grow to twice their size.
const MADE_UP_BYTES: usize = 2 * (size_of::<Run>() + size_of::<RunIdx>());

/// Reads frames, each by itself, of which some are lost; `n_lost` is known already. What others refer
/// to and is lost has an empty place, so that the others are read.
pub fn salvage<'a>(rows: impl Iterator<Item = &'a [u8]>, mut n_lost: usize) -> Recording {
    let mut recording = Recording::new(Header::default());
    let mut budget = Budget::of(0);
    for row in rows {
        budget.earn(row.len());
        if !fits(&mut recording, row, &mut budget) {
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

fn fits(recording: &mut Recording, row: &[u8], budget: &mut Budget) -> bool {
    // Each round makes up for another kind of entry.
    for _ in 0..4 {
        let mut left = *budget;
        match apply_within(recording, row, &mut left) {
            Ok(()) => {
                *budget = left;
                return true;
            }
            Err(error) => match error.what {
                Fault::Frame(FrameError::Dangling { what, idx, .. }) => {
                    if !make_up(recording, what, idx as usize, budget) {
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
fn make_up(recording: &mut Recording, what: &str, idx: usize, budget: &mut Budget) -> bool {
    let n_known = match what {
        "device" => recording.devices().len(),
        "cell" => recording.cells().len(),
        _ => recording.runs().len(),
    };
    let missing = n_known..idx.max(n_known + 1);
    if missing.len() > MAX_MADE_UP || budget.spend(missing.len() * MADE_UP_BYTES).is_err() {
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
                    make_up(recording, "cell", 0, budget);
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

    #[test]
    fn an_index_far_beyond_the_others_is_damaged() {
        let far = Run {
            idx: RunIdx(60_000),
            ..Run::default()
        };
        let recording = salvage([&*encode_frames([Frame::Run(far)])].into_iter(), 0);
        assert_eq!(recording.runs().len(), 0);
        assert_eq!(recording.missing().count(), 1);
    }

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
