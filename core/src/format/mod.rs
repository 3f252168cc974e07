//! Bytes to and from a [`Recording`].
//!
//! A recording is a sequence of self-delimited frames. Each is
//!
//! | field | size | what |
//! |---|---|---|
//! | length | 4 bytes, little-endian | of the payload, at most [`MAX_FRAME`] |
//! | checksum | 4 bytes, little-endian | CRC-32 (IEEE) of the payload |
//! | payload | length | `MessagePack`: a string, which kind of frame it is, then a map of its fields |
//!
//! The first frame is a header, which states the version. Unknown fields and
//! unknown kinds of frames are skipped, missing fields have their defaults. One
//! file per version; the newest is all that the rest of the program sees.

mod checksum;
mod found;
mod messagepack;
mod record;
mod v1;

pub use found::{decode_found, encode_found};

use serde::Serialize;
use thiserror::Error;

use messagepack::Reader;
use record::Place;

use crate::recording::{Frame, FrameError, Header, Recording};

/// The longest payload of a frame that is written or read, in bytes.
pub const MAX_FRAME: usize = 64 << 20;

const PREFIX: usize = 8;

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
    /// No header in front.
    #[error("not a gpumem recording: it begins with {0}, not with a header")]
    NotARecording(String),
    /// The input ends inside a frame.
    #[error("the recording ends inside a frame: {n_missing} bytes are missing")]
    Truncated {
        /// How many bytes more the frame needs.
        n_missing: usize,
    },
    /// A length that no writer writes.
    #[error("a frame of {0} bytes, more than the {MAX_FRAME} that a frame may have")]
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

impl Fault {
    fn at(self, offset: usize) -> ReadError {
        ReadError { offset, what: self }
    }
}

/// The bytes of one frame.
pub fn encode_frame(frame: &Frame) -> Vec<u8> {
    match frame {
        Frame::Header(header) => framed("header", &v1::WireHeader::from(header)),
        Frame::Device(device) => framed("device", &v1::WireDevice::from(device)),
        Frame::Cell(cell) => framed("cell", &v1::WireCell::from(cell)),
        Frame::Run(run) => framed("run", &v1::WireRun::from(run)),
        Frame::Samples(samples) => framed("samples", &v1::WireSamples::from(samples)),
        Frame::Trace(trace) => framed("trace", &v1::WireTrace::from(&**trace)),
        Frame::Holders(held) => framed("holders", &v1::WireHolders::from(&**held)),
        Frame::Segments(mapped) => framed("segments", &v1::WireSegments::from(&**mapped)),
        Frame::Finish(finish) => framed("finish", &v1::WireFinish::from(finish)),
    }
}

/// The bytes of a whole recording.
pub fn encode(recording: &Recording) -> Vec<u8> {
    encode_frames(recording.frames())
}

/// The bytes of these frames: of a live update, which `apply` takes in.
pub fn encode_frames(frames: impl IntoIterator<Item = Frame>) -> Vec<u8> {
    frames
        .into_iter()
        .flat_map(|frame| encode_frame(&frame))
        .collect()
}

/// Reads a whole recording.
pub fn decode(bytes: &[u8]) -> Result<Recording, ReadError> {
    let kind = first_kind(bytes)?;
    if kind != "header" {
        return Err(Fault::NotARecording(format!("a {kind} frame")).at(0));
    }
    let mut recording = Recording::new(Header::default());
    apply(&mut recording, bytes)?;
    Ok(recording)
}

/// Reads frames into a recording that is there already: a live update.
///
/// On an error the frames before the faulty one have been taken in.
pub fn apply(recording: &mut Recording, bytes: &[u8]) -> Result<(), ReadError> {
    let mut offset = 0;
    while offset < bytes.len() {
        let payload = payload_at(bytes, offset)?;
        if let Some(frame) = frame_of(payload, offset + PREFIX)? {
            recording
                .apply(frame)
                .map_err(|error| Fault::from(error).at(offset))?;
        }
        offset += PREFIX + payload.len();
    }
    Ok(())
}

/// The kind of the first frame, with a clear word for input that is none at all.
fn first_kind(bytes: &[u8]) -> Result<String, ReadError> {
    if bytes.is_empty() {
        return Err(Fault::NotARecording("nothing".to_owned()).at(0));
    }
    let foreign = |_| {
        let shown = String::from_utf8_lossy(&bytes[..bytes.len().min(8)]).into_owned();
        Fault::NotARecording(format!("{shown:?}")).at(0)
    };
    // A damaged or cut header is still a recording's: only what cannot be one is foreign.
    match payload_at(bytes, 0) {
        Ok(payload) => read(&mut Reader::new(payload), PREFIX + payload.len()).map_err(foreign),
        Err(error) => match error.what {
            Fault::Truncated { .. } | Fault::Checksum { .. } if looks_like_header(bytes) => {
                Err(error)
            }
            _ => Err(foreign(error)),
        },
    }
}

fn looks_like_header(bytes: &[u8]) -> bool {
    // 0xa6 opens a MessagePack string of six bytes.
    let opening = b"\xa6header";
    let payload = bytes.get(PREFIX..).unwrap_or_default();
    let n = payload.len().min(opening.len());
    payload[..n] == opening[..n]
}

fn framed(kind: &str, body: &impl Serialize) -> Vec<u8> {
    let mut frame = vec![0; PREFIX];
    for written in [
        rmp_serde::encode::write_named(&mut frame, kind),
        rmp_serde::encode::write_named(&mut frame, body),
    ] {
        written.expect("wire types serialise into memory");
    }
    let length = u32::try_from(frame.len() - PREFIX).expect("a frame is bounded by its writer");
    let checksum = checksum::of(&frame[PREFIX..]);
    frame[..4].copy_from_slice(&length.to_le_bytes());
    frame[4..PREFIX].copy_from_slice(&checksum.to_le_bytes());
    frame
}

fn payload_at(bytes: &[u8], offset: usize) -> Result<&[u8], ReadError> {
    let rest = &bytes[offset..];
    let truncated = |n_needed: usize| {
        Fault::Truncated {
            n_missing: n_needed - rest.len(),
        }
        .at(bytes.len())
    };
    let number = |bytes: &[u8; 4]| u32::from_le_bytes(*bytes);
    let Some((length, rest_of_frame)) = rest.split_first_chunk::<4>() else {
        return Err(truncated(PREFIX));
    };
    let Some((written, rest_of_frame)) = rest_of_frame.split_first_chunk::<4>() else {
        return Err(truncated(PREFIX));
    };
    let (length, written) = (number(length) as usize, number(written));
    if length > MAX_FRAME {
        return Err(Fault::TooLong(length).at(offset));
    }
    let payload = rest_of_frame
        .get(..length)
        .ok_or_else(|| truncated(PREFIX + length))?;
    checksum::compare(payload, written).map_err(|fault| fault.at(offset))?;
    Ok(payload)
}

/// The frame of a payload; `None` for a kind that this version does not know.
fn frame_of(payload: &[u8], offset: usize) -> Result<Option<Frame>, ReadError> {
    let mut input = Reader::new(payload);
    let end = offset + payload.len();
    let misfit = |words| Fault::Payload(words).at(offset);
    let kind: String = read(&mut input, end)?;
    Ok(Some(match kind.as_str() {
        "header" => {
            let header = read::<v1::FoundHeader>(&mut input, end)?;
            Frame::Header(header.known().map_err(|fault| fault.at(offset))?)
        }
        "device" => Frame::Device(read(&mut input, end)?),
        "cell" => Frame::Cell(read(&mut input, end)?),
        "run" => Frame::Run(read(&mut input, end)?),
        "samples" => {
            let samples = read::<v1::FoundSamples>(&mut input, end)?;
            samples.frame().map_err(misfit)?
        }
        "trace" => {
            let trace = read::<v1::FoundTrace>(&mut input, end)?;
            trace.frame().map_err(misfit)?
        }
        "holders" => Frame::Holders(read(&mut input, end)?),
        "segments" => {
            let segments = read::<v1::WireSegments>(&mut input, end)?;
            segments.frame().map_err(misfit)?
        }
        "finish" => Frame::Finish(read(&mut input, end)?),
        _ => return Ok(None),
    }))
}

/// Reads one value; an error names the offset at which reading stopped.
fn read<T: Place + Default>(input: &mut Reader<'_>, end: usize) -> Result<T, ReadError> {
    let mut value = T::default();
    match value.fill(input) {
        Ok(()) => Ok(value),
        Err(refused) => Err(Fault::Payload(refused.0).at(end - input.n_left())),
    }
}

#[cfg(test)]
mod tests;
