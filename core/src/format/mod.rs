//! Bytes to and from a [`Recording`].
//!
//! A recording is a sequence of self-delimited frames. Each is
//!
//! | field | size | what |
//! |---|---|---|
//! | length | 4 bytes, little-endian | of the payload, at most [`MAX_FRAME`] |
//! | checksum | 4 bytes, little-endian | CRC-32 of the payload |
//! | payload | length | `MessagePack`: a map whose `kind` says which frame it is |
//!
//! The first frame is a header, which states the version. Unknown fields and
//! unknown kinds of frames are skipped, missing fields have their defaults. One
//! file per version; the newest is all that the rest of the program sees.

use thiserror::Error;

use crate::recording::{Frame, FrameError, Recording};

/// The longest payload of a frame that is written or read, in bytes.
pub const MAX_FRAME: usize = 64 << 20;

/// Bytes that are not a recording, and where.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("byte {offset}: {what}")]
pub struct ReadError {
    /// Offset of the first byte that does not fit, from the start of the input.
    pub offset: usize,
    /// What is wrong with it.
    pub what: Fault,
}

/// What is wrong with the bytes.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Fault {
    /// Nothing, or no header in front.
    #[error("not a gpumem recording: {0}")]
    NotARecording(String),
    /// The input ends inside a frame.
    #[error("the recording ends inside a frame: {needed} bytes are missing")]
    Truncated {
        /// How many bytes more the frame needs.
        needed: usize,
    },
    /// A length that no writer writes.
    #[error("a frame of {0} bytes: more than the {MAX_FRAME} that a frame may have")]
    TooLong(usize),
    /// The payload was changed after it was written.
    #[error("the frame is damaged: its checksum is {found:08x}, written was {written:08x}")]
    Checksum {
        /// Of the payload as it is.
        found: u32,
        /// As the frame states it.
        written: u32,
    },
    /// The payload is not what a frame holds.
    #[error("{0}")]
    Payload(String),
    /// Written by a later gpumem.
    #[error("recording of format {0}, newer than this gpumem reads\nhint: upgrade jupyter-gpumem")]
    TooNew(u32),
    /// The frame does not fit what came before it.
    #[error("{0}")]
    Frame(#[from] FrameError),
}

/// The bytes of one frame.
pub fn encode_frame(frame: &Frame) -> Vec<u8> {
    let _ = frame;
    unimplemented!("format")
}

/// The bytes of a whole recording.
pub fn encode(recording: &Recording) -> Vec<u8> {
    recording
        .frames()
        .flat_map(|frame| encode_frame(&frame))
        .collect()
}

/// Reads a whole recording.
pub fn decode(bytes: &[u8]) -> Result<Recording, ReadError> {
    let _ = bytes;
    unimplemented!("format")
}

/// Reads frames into a recording that is there already: a live update.
///
/// On an error the frames before the faulty one have been taken in.
pub fn apply(recording: &mut Recording, bytes: &[u8]) -> Result<(), ReadError> {
    let _ = (recording, bytes);
    unimplemented!("format")
}
