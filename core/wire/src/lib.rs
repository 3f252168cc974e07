//! Bytes to and from a [`Recording`].
//!
//! A recording is a sequence of self-delimited frames:
//!
//! | field | size | what |
//! |---|---|---|
//! | length | 4 bytes, little-endian | of the payload, at most [`MAX_FRAME`] |
//! | checksum | 4 bytes, little-endian | CRC-32 (IEEE) of the payload |
//! | payload | length | `MessagePack`: a string that names the kind of frame, then a map of its fields |
//!
//! Lists may take 12 bytes of memory for each byte of the input, and 256 KiB in any case; healthy ones take
//! less than 4. A list beyond that is damage like any other.
//!
//! The first frame is a header, which states the version. Readers skip unknown fields and unknown kinds
//! of frames, and missing fields have defaults, so old and new versions read each other's files. Each
//! version has its own file here; the rest of the program sees only the newest.
//!
//! ```
//! use gpumem_wire as wire;
//! use gpumem_model::recording::{Finish, Frame, Header, Recording};
//! use gpumem_model::units::Nanos;
//!
//! let mut page = wire::decode(&wire::encode(&Recording::new(Header::default())))?;
//! let update = wire::encode_frames([Frame::Finish(Finish { at: Nanos::millis(9) })]);
//! wire::apply(&mut page, &update)?;
//! assert_eq!(page.finish().map(|finish| finish.at), Some(Nanos::millis(9)));
//! # Ok::<(), wire::WireError>(())
//! ```
#![forbid(unsafe_code)]

mod budget;
mod checksum;
mod found;
mod messagepack;
mod record;
mod refused;
mod salvage;
mod v1;
mod values;

pub use found::{decode_found, encode_found};
pub use salvage::{Salvage, salvage};

use serde::Serialize;
use thiserror::Error;

use budget::ListBudget;
use messagepack::Reader;
use record::{Decode, Written};

use gpumem_model::printable::printable;
pub use gpumem_model::recording::MAX_FRAME;
use gpumem_model::recording::{
    Cell, Device, Frame, FrameError, Header, Loop, Missing, Recording, Revision, Run, Series, Trace,
};

/// A text that is longer is cut when it is written: a frame has room for the few that it holds.
const MAX_TEXT: usize = MAX_FRAME / 4;

const PREFIX: usize = 8;

/// Bytes that are not a recording, and where.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("byte {offset}: {what}")]
pub struct WireError {
    /// Offset of the first byte that does not fit, from the start of the input.
    pub offset: usize,
    /// What is wrong with it.
    pub what: WireFault,
}

/// What is wrong with the bytes: [`WireError::what`]. The message is for users.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum WireFault {
    /// The input does not begin with a header.
    #[error("not a gpumem recording: it begins with {0}, not with a header")]
    NotARecording(String),
    /// The input ends inside a frame.
    #[error("the recording ends inside a frame: {n_missing} bytes are missing")]
    Truncated {
        /// How many bytes more the frame needs.
        n_missing: usize,
    },
    /// A length beyond [`MAX_FRAME`], in bytes.
    #[error("a frame of {0} bytes, more than the {MAX_FRAME} that a frame may have")]
    TooLong(usize),
    /// The length was changed after it was written.
    #[error("the frame is damaged: its length is {found}, its checksum is that of {written} bytes")]
    Length {
        /// As the frame states it.
        found: usize,
        /// What it was before.
        written: usize,
    },
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

impl WireFault {
    fn at(self, offset: usize) -> WireError {
        WireError { offset, what: self }
    }
}

/// The bytes of one frame, which [`apply`] can always read.
///
/// If a frame is too long, only what others refer to is written, and a note that the rest is missing.
fn encode_frame(frame: &Frame) -> Vec<u8> {
    let bytes = encode_whole(frame);
    let n_bytes = bytes.len() - PREFIX;
    if n_bytes <= MAX_FRAME {
        return bytes;
    }
    let mut bytes = shortened(frame).map_or_else(Vec::new, |short| encode_whole(&short));
    let words = format!(
        "a {} frame was too long to be written whole: {n_bytes} bytes, and it may have {MAX_FRAME}",
        kind_of(frame),
    );
    bytes.extend(encode_whole(&Frame::Missing(Missing { words })));
    bytes
}

fn encode_whole(frame: &Frame) -> Vec<u8> {
    let kind = kind_of(frame);
    match frame {
        Frame::Header(header) => framed(kind, &Written(header)),
        Frame::Device(device) => framed(kind, &Written(device)),
        Frame::Cell(cell) => framed(kind, &Written(&*v1::fitting(cell))),
        Frame::Run(run) => framed(kind, &Written(run)),
        Frame::Loop(of_run) => framed(kind, &Written(&**of_run)),
        Frame::Samples(samples) => framed(kind, &Written(samples)),
        Frame::Trace(trace) => framed(kind, &Written(trace)),
        Frame::Holders(held) => framed(kind, &Written(&v1::bounded((**held).clone()))),
        Frame::Segments(mapped) => framed(kind, &Written(mapped)),
        Frame::Missing(missing) => framed(kind, &Written(missing)),
        Frame::Finish(finish) => framed(kind, &Written(finish)),
    }
}

const fn kind_of(frame: &Frame) -> &'static str {
    match frame {
        Frame::Header(_) => "header",
        Frame::Device(_) => "device",
        Frame::Cell(_) => "cell",
        Frame::Run(_) => "run",
        Frame::Loop(_) => "loop",
        // A reader that knows no loops would take their points for the sampler's.
        Frame::Samples(samples) => match samples.series {
            Series::Loop(_) => "iterations",
            Series::Sampled | Series::Marked(_) => "samples",
        },
        Frame::Trace(_) => "trace",
        Frame::Holders(_) => "holders",
        Frame::Segments(_) => "segments",
        Frame::Missing(_) => "missing",
        Frame::Finish(_) => "finish",
    }
}

/// What later frames refer to of a frame that is too long; `None` of one that no other refers to.
fn shortened(frame: &Frame) -> Option<Frame> {
    Some(match frame {
        Frame::Header(header) => Frame::Header(Header {
            session: header.session.clone(),
            wall_anchor: header.wall_anchor,
            rules: header.rules,
            ..Header::default()
        }),
        Frame::Device(device) => Frame::Device(Device {
            name: String::new(),
            outside: None,
            ..device.clone()
        }),
        Frame::Cell(cell) => Frame::Cell(Cell {
            revisions: cell.revisions.iter().map(without_text).collect(),
            ..cell.clone()
        }),
        Frame::Run(run) => Frame::Run(Run {
            levels: Vec::new(),
            oom: None,
            overlaps: Vec::new(),
            ..run.clone()
        }),
        _ => return None,
    })
}

fn without_text(revision: &Revision) -> Revision {
    Revision {
        hash: revision.hash,
        ..Revision::default()
    }
}

/// The bytes of a whole recording, as [`decode`] reads them.
pub fn encode(recording: &Recording) -> Vec<u8> {
    encode_frames(recording.frames())
}

/// The bytes of these frames: a live update, which [`apply`] reads.
pub fn encode_frames(frames: impl IntoIterator<Item = Frame>) -> Vec<u8> {
    let mut bytes = Vec::new();
    for frame in frames {
        bytes.extend(encode_frame(&frame));
    }
    bytes
}

/// Reads a recording.
///
/// A recording that was cut off inside a frame is read up to there, because a killed kernel leaves such
/// a file; [`Recording::missing`] then says so.
///
/// # Errors
///
/// [`WireError`] if the bytes are not a recording, are damaged, or are of a newer format.
pub fn decode(bytes: &[u8]) -> Result<Recording, WireError> {
    let kind = first_kind(bytes)?;
    if kind != "header" {
        return Err(WireFault::NotARecording(format!("a {kind} frame")).at(0));
    }
    let mut recording = Recording::new(Header::default());
    let read = apply(&mut recording, bytes);
    if let Err(error) = read {
        let words = match error.what {
            WireFault::Truncated { .. } => {
                format!(
                    "the file was cut at byte {}: the rest is missing",
                    error.offset
                )
            }
            _ => return Err(error),
        };
        let missing = Frame::Missing(Missing { words });
        let fits = recording.apply(missing);
        fits.map_err(|error| WireFault::from(error).at(bytes.len()))?;
    }
    Ok(recording)
}

/// Reads frames into an existing recording: a live update.
///
/// # Errors
///
/// [`WireError`] at the first faulty frame; the frames before it have been applied.
pub fn apply(recording: &mut Recording, bytes: &[u8]) -> Result<(), WireError> {
    apply_within(recording, bytes, &mut ListBudget::new(bytes.len()))
}

fn apply_within(
    recording: &mut Recording,
    bytes: &[u8],
    budget: &mut ListBudget,
) -> Result<(), WireError> {
    let mut offset = 0;
    while offset < bytes.len() {
        let payload = payload_at(bytes, offset)?;
        if let Some(frame) = frame_of(payload, offset + PREFIX, budget)? {
            recording
                .apply(frame)
                .map_err(|error| WireFault::from(error).at(offset))?;
        }
        offset += PREFIX + payload.len();
    }
    Ok(())
}

/// The header at the beginning of a recording, which may be cut behind it; `None` if no whole one is there.
pub fn decode_header(bytes: &[u8]) -> Option<Header> {
    let payload = payload_at(bytes, 0).ok()?;
    match frame_of(payload, PREFIX, &mut ListBudget::new(payload.len())) {
        Ok(Some(Frame::Header(header))) => Some(header),
        _ => None,
    }
}

/// The kind of the first frame, with a clear word for input that is none at all.
fn first_kind(bytes: &[u8]) -> Result<String, WireError> {
    if bytes.is_empty() {
        return Err(WireFault::NotARecording("nothing".to_owned()).at(0));
    }
    let foreign = |_| {
        let shown = String::from_utf8_lossy(&bytes[..bytes.len().min(8)]).into_owned();
        WireFault::NotARecording(format!("\"{}\"", printable(&shown))).at(0)
    };
    // A damaged or cut header is still a recording's: only what cannot be one is foreign.
    match payload_at(bytes, 0) {
        Ok(payload) => read(&mut Reader::alone(payload), PREFIX + payload.len()).map_err(foreign),
        Err(error) => match error.what {
            WireFault::Truncated { .. } | WireFault::Checksum { .. }
                if looks_like_header(bytes) =>
            {
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
    n > 0 && payload[..n] == opening[..n]
}

fn framed(kind: &str, body: &impl Serialize) -> Vec<u8> {
    let mut frame = vec![0; PREFIX];
    for written in [
        rmp_serde::encode::write_named(&mut frame, kind),
        rmp_serde::encode::write_named(&mut frame, body),
    ] {
        written.expect("wire types serialise into memory");
    }
    // One that is too long is not written.
    let length = u32::try_from(frame.len() - PREFIX).unwrap_or(u32::MAX);
    let checksum = checksum::crc32(&frame[PREFIX..]);
    frame[..4].copy_from_slice(&length.to_le_bytes());
    frame[4..PREFIX].copy_from_slice(&checksum.to_le_bytes());
    frame
}

fn payload_at(bytes: &[u8], offset: usize) -> Result<&[u8], WireError> {
    let rest = &bytes[offset..];
    let truncated = |n_needed: usize| {
        WireFault::Truncated {
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
        return Err(WireFault::TooLong(length).at(offset));
    }
    let Some(payload) = rest_of_frame.get(..length) else {
        // Where the length was changed nothing was cut.
        checksum::compare_length(rest_of_frame, length, written)
            .map_err(|fault| fault.at(offset))?;
        return Err(truncated(PREFIX + length));
    };
    checksum::compare(payload, written).map_err(|fault| fault.at(offset))?;
    Ok(payload)
}

/// The frame of a payload; `None` for a kind that this version does not know.
fn frame_of(
    payload: &[u8],
    offset: usize,
    budget: &mut ListBudget,
) -> Result<Option<Frame>, WireError> {
    let mut input = Reader::new(payload, *budget);
    let end = offset + payload.len();
    let misfit = |words| WireFault::Payload(words).at(offset);
    let kind: String = read(&mut input, end)?;
    let frame = match kind.as_str() {
        "header" => {
            let header = read::<v1::WireHeader<Header>>(&mut input, end)?;
            Frame::Header(header.known().map_err(|fault| fault.at(offset))?)
        }
        "device" => Frame::Device(read(&mut input, end)?),
        "cell" => Frame::Cell(read(&mut input, end)?),
        "run" => Frame::Run(read(&mut input, end)?),
        "loop" => read::<v1::WireLoop<Loop>>(&mut input, end)?.frame(),
        "samples" | "iterations" => {
            let samples = read::<v1::WireSamples>(&mut input, end)?;
            samples.frame().map_err(misfit)?
        }
        "trace" => {
            let trace = read::<v1::WireTrace<Trace>>(&mut input, end)?;
            trace.frame(&mut input.budget).map_err(misfit)?
        }
        "holders" => Frame::Holders(read(&mut input, end)?),
        "segments" => {
            let segments = read::<v1::WireSegments>(&mut input, end)?;
            segments.frame(&mut input.budget).map_err(misfit)?
        }
        "missing" => Frame::Missing(read(&mut input, end)?),
        "finish" => Frame::Finish(read(&mut input, end)?),
        _ => return Ok(None),
    };
    let counted = input.budget.frame();
    counted.map_err(|refused| misfit(refused.0))?;
    *budget = input.budget;
    Ok(Some(frame))
}

/// Reads one value; an error names the offset at which reading stopped.
fn read<T: Decode + Default>(input: &mut Reader<'_>, end: usize) -> Result<T, WireError> {
    let mut value = T::default();
    match value.fill(input) {
        Ok(()) => Ok(value),
        Err(refused) => Err(WireFault::Payload(refused.0).at(end - input.n_left())),
    }
}

#[cfg(test)]
mod tests;
