//! What can be read of a recording that is damaged, or of which only both ends are at hand.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::{Range, RangeInclusive};

use super::budget::Budget;
use super::{Fault, MAX_FRAME, PREFIX, ReadError, checksum, frame_of};
use crate::recording::{
    Cell, CellIdx, Device, DeviceIdx, Frame, FrameError, Missing, Recording, Run, RunIdx, Samples,
    Status,
};
use crate::units::Nanos;
use crate::wording::count;

/// So many lost entries of one kind are made up for; more are none, but an index that is damaged.
const MAX_MADE_UP: usize = 1 << 16;

/// A frame may refer to so many entries that are lost.
const MAX_ROUNDS: usize = 64;

/// What one takes in memory, with its places in the lists of a recording, which grow to twice their size.
const MADE_UP_BYTES: usize = 2 * (size_of::<Run>() + size_of::<RunIdx>());

/// The kinds of frames, of which one stands in front of every payload that is worth looking for.
const KINDS: [&str; 10] = [
    "header", "device", "cell", "run", "samples", "trace", "holders", "segments", "missing",
    "finish",
];

/// What `MessagePack` puts before texts as long as these.
const MARKERS: RangeInclusive<u8> = 0xa3..=0xa8;

/// A recording of which a part may be missing: [`salvage`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Salvaged {
    /// What is sound.
    pub recording: Recording,
    /// How many frames are.
    pub n_frames: usize,
    /// The input ends inside a frame that begins at this byte.
    pub torn_at: Option<usize>,
    /// Bytes that are no sound frame, beside those at the end.
    pub n_lost_bytes: usize,
    /// In how many places they are.
    pub n_lost_places: usize,
    /// The reader gave up at this byte.
    pub given_up_at: Option<usize>,
}

impl Salvaged {
    /// What is missing, in one sentence; `None` if every byte was read, or only a frame at the end is cut off.
    pub fn damage(&self) -> Option<String> {
        if let Some(at) = self.given_up_at {
            return Some(format!(
                "the session's file takes too long to read: what follows byte {at} is missing"
            ));
        }
        (self.n_lost_places > 0).then(|| {
            format!(
                "the session's file was damaged: {} in {} are missing",
                count(self.n_lost_bytes, "byte"),
                count(self.n_lost_places, "place"),
            )
        })
    }

    /// That a frame at the end is cut off, in one sentence: of a session that goes on it is being written.
    pub fn cut(&self) -> Option<String> {
        let at = self.torn_at?;
        Some(format!(
            "the file ends inside the frame at byte {at}: the kernel died while it was written, or the file was cut"
        ))
    }

    fn lose(&mut self, n_bytes: usize) {
        self.n_lost_bytes += n_bytes;
        self.n_lost_places += 1;
    }
}

/// Reads every sound frame of a recording. What others refer to and is lost has an empty place, so that the
/// others are read. Reading ends early if `goes_on` says no.
///
/// # Errors
///
/// [`ReadError`] if a later gpumem wrote it.
///
/// ```
/// use gpumem_core::format::{encode_frames, salvage};
/// use gpumem_core::recording::{Cell, CellIdx, Frame};
///
/// let cell = |n| Frame::Cell(Cell { idx: CellIdx(n), ..Cell::default() });
/// let mut bytes = encode_frames([cell(0), cell(1)]);
/// bytes[9] ^= 1; // in the first frame
/// let salvaged = salvage(&bytes, &mut || true)?;
/// assert_eq!(salvaged.recording.cells().len(), 2);
/// assert!(salvaged.damage().is_some_and(|words| words.contains("was damaged")));
/// # Ok::<(), gpumem_core::format::ReadError>(())
/// ```
pub fn salvage(bytes: &[u8], goes_on: &mut dyn FnMut() -> bool) -> Result<Salvaged, ReadError> {
    let mut salvaged = Salvaged::default();
    let mut reading = Reading::new(bytes);
    let mut scan = Scan::new(bytes);
    while let Some(piece) = scan.next() {
        if !goes_on() {
            salvaged.given_up_at = Some(piece.range().start);
            break;
        }
        match piece {
            Piece::Frame(range) => {
                if reading.fits(&range)? {
                    salvaged.n_frames += 1;
                } else {
                    salvaged.lose(range.len());
                }
            }
            Piece::Lost(range) if range.end == bytes.len() && is_torn(&bytes[range.clone()]) => {
                salvaged.torn_at = Some(range.start);
            }
            Piece::Lost(range) => salvaged.lose(range.len()),
        }
    }
    salvaged.recording = reading.finish();
    if let Some(words) = salvaged.damage() {
        // It refers to nothing.
        drop(salvaged.recording.apply(Frame::Missing(Missing { words })));
    }
    Ok(salvaged)
}

/// The last run that is nested in no other, as the only run of a recording, from the first and the last bytes of
/// a session's file: of a long one there is no time to read more.
///
/// ```
/// use gpumem_core::format::{encode, last_run};
/// # mod example { include!(concat!(env!("CARGO_MANIFEST_DIR"), "/examples/recordings/leaking.rs")); }
/// # use example::leaking;
///
/// let recording = leaking();
/// let bytes = encode(&recording);
/// let last = last_run(&bytes, &[]);
/// assert_eq!(last.runs().len(), 1);
/// assert_eq!(last.runs()[0].ended, recording.runs()[11].ended);
/// ```
pub fn last_run(first: &[u8], last: &[u8]) -> Recording {
    let mut frames = Vec::new();
    for bytes in [first, last] {
        let mut budget = Budget::of(bytes.len());
        let ranges = Scan::new(bytes).filter_map(|piece| match piece {
            Piece::Frame(range) => Some(range),
            Piece::Lost(_) => None,
        });
        for range in ranges {
            let payload = &bytes[range.start + PREFIX..range.end];
            if let Ok(Some(frame)) = frame_of(payload, range.start, &mut budget) {
                frames.push(frame);
            }
        }
    }
    let outermost = frames.iter().filter_map(|frame| match frame {
        Frame::Run(run) if run.parent.is_none() => Some((run.idx, run.cell)),
        _ => None,
    });
    let of_last = outermost.max_by_key(|(idx, _)| *idx);
    let mut reading = Reading::new(&[]);
    if of_last.is_some() {
        reading.make_up("cell", 0);
    }
    for frame in frames {
        let Some(frame) = alone(frame, of_last) else {
            continue;
        };
        while let Err(FrameError::Dangling { what, idx, .. }) =
            reading.recording.apply(frame.clone())
        {
            if !reading.make_up(what, idx as usize) {
                break;
            }
        }
    }
    reading.recording
}

/// A frame of the last run and its cell, or of the whole session, renumbered: this run is the only one.
fn alone(frame: Frame, of_last: Option<(RunIdx, CellIdx)>) -> Option<Frame> {
    let is_last = |idx| of_last.is_some_and(|(run, _)| run == idx);
    Some(match frame {
        Frame::Run(run) if is_last(run.idx) => Frame::Run(Run {
            idx: RunIdx(0),
            cell: CellIdx(0),
            ..run
        }),
        Frame::Samples(samples) if is_last(samples.run) => Frame::Samples(Samples {
            run: RunIdx(0),
            ..samples
        }),
        Frame::Cell(cell) if of_last.is_some_and(|(_, of)| of == cell.idx) => Frame::Cell(Cell {
            idx: CellIdx(0),
            ..cell
        }),
        Frame::Header(_) | Frame::Device(_) | Frame::Finish(_) => frame,
        _ => return None,
    })
}

/// A part of bytes that may be damaged.
enum Piece {
    /// With its prefix.
    Frame(Range<usize>),
    /// No frame that is sound.
    Lost(Range<usize>),
}

impl Piece {
    fn range(&self) -> &Range<usize> {
        let (Self::Frame(range) | Self::Lost(range)) = self;
        range
    }
}

/// Walks from frame to frame. Behind damage it goes on where a payload begins with the name of its kind and
/// has its checksum.
struct Scan<'a> {
    bytes: &'a [u8],
    at: usize,
    /// As many bytes may still have a checksum that does not fit: lengths that lie could have each byte read
    /// thousands of times.
    n_left: usize,
}

impl<'a> Scan<'a> {
    fn new(bytes: &'a [u8]) -> Self {
        Self {
            bytes,
            at: 0,
            n_left: bytes.len().saturating_mul(4),
        }
    }

    /// The end of a sound frame that begins at `at`.
    fn end_of_sound(&mut self, at: usize) -> Option<usize> {
        let (prefix, rest) = self.bytes.get(at..)?.split_first_chunk::<PREFIX>()?;
        let [length, written] = [0, 4].map(|from| {
            let number = prefix[from..from + 4].try_into().expect("four bytes");
            u32::from_le_bytes(number)
        });
        let payload = rest.get(..length as usize)?;
        if payload.is_empty() || payload.len() > MAX_FRAME.min(self.n_left) {
            return None;
        }
        if checksum::of(payload) != written {
            self.n_left -= payload.len();
            return None;
        }
        Some(at + PREFIX + payload.len())
    }

    /// Where the next sound frame begins, and where it ends.
    fn next_sound(&mut self) -> Option<Range<usize>> {
        let (bytes, mut from) = (self.bytes, self.at + 1);
        loop {
            let payloads = bytes.get(from + PREFIX..)?;
            let at = from + payloads.iter().position(|byte| MARKERS.contains(byte))?;
            if begins_with_kind(&bytes[at + PREFIX..])
                && let Some(end) = self.end_of_sound(at)
            {
                return Some(at..end);
            }
            from = at + 1;
        }
    }
}

impl Iterator for Scan<'_> {
    type Item = Piece;

    fn next(&mut self) -> Option<Piece> {
        let at = self.at;
        if at == self.bytes.len() {
            return None;
        }
        if let Some(end) = self.end_of_sound(at) {
            self.at = end;
            return Some(Piece::Frame(at..end));
        }
        let next = self.next_sound();
        self.at = next.map_or(self.bytes.len(), |range| range.start);
        Some(Piece::Lost(at..self.at))
    }
}

/// A payload begins with the name of its kind, and the map of its fields follows.
fn begins_with_kind(payload: &[u8]) -> bool {
    let Some((marker, rest)) = payload.split_first() else {
        return false;
    };
    let named = KINDS
        .iter()
        .find(|kind| usize::from(marker ^ 0xa0) == kind.len() && rest.starts_with(kind.as_bytes()));
    let fields = named.and_then(|kind| rest.get(kind.len()));
    matches!(fields, Some(0x80..=0x8f | 0xde | 0xdf))
}

/// The end of a recording is the beginning of a frame.
fn is_torn(rest: &[u8]) -> bool {
    let Some((length, _)) = rest.split_first_chunk::<4>() else {
        return true;
    };
    let length = u32::from_le_bytes(*length) as usize;
    let payload = rest.get(PREFIX..).unwrap_or_default();
    let longest = KINDS.iter().map(|kind| kind.len() + 2).max();
    let is_known = payload.len() < longest.unwrap_or_default() || begins_with_kind(payload);
    is_known && length <= MAX_FRAME && payload.len() < length
}

/// A recording that is read from bytes of which a part is missing.
struct Reading<'a> {
    bytes: &'a [u8],
    recording: Recording,
    budget: Budget,
    /// The runs that were made up: nothing has told of them.
    made_up: BTreeSet<RunIdx>,
    /// Of every run that a sound frame tells of, where it stands.
    told: Option<BTreeMap<RunIdx, (CellIdx, Option<RunIdx>)>>,
}

impl<'a> Reading<'a> {
    fn new(bytes: &'a [u8]) -> Self {
        Self {
            bytes,
            recording: Recording::default(),
            budget: Budget::of(0),
            made_up: BTreeSet::new(),
            told: None,
        }
    }

    /// Applies the frame that stands there, if it fits.
    fn fits(&mut self, range: &Range<usize>) -> Result<bool, ReadError> {
        self.budget.earn(range.len());
        let payload = &self.bytes[range.start + PREFIX..range.end];
        // Each round makes up for another entry: its cell, its run, each of its devices.
        for _ in 0..MAX_ROUNDS {
            let mut left = self.budget;
            let frame = match frame_of(payload, range.start + PREFIX, &mut left) {
                Ok(Some(frame)) => frame,
                // Only a later gpumem knows it.
                Ok(None) => return Ok(true),
                Err(error) if matches!(error.what, Fault::TooNew(_)) => return Err(error),
                Err(_) => return Ok(false),
            };
            let told = match &frame {
                Frame::Run(run) => Some(run.idx),
                _ => None,
            };
            match self.recording.apply(frame) {
                Ok(()) => {
                    self.budget = left;
                    told.map(|run| self.made_up.remove(&run));
                    return Ok(true);
                }
                Err(FrameError::Dangling { what, idx, .. }) => {
                    if !self.make_up(what, idx as usize) {
                        return Ok(false);
                    }
                }
                Err(_) => return Ok(false),
            }
        }
        Ok(false)
    }

    /// Puts empty entries in the places up to `idx`; at an index that skips that is the one before it.
    fn make_up(&mut self, what: &str, idx: usize) -> bool {
        let n_known = match what {
            "device" => self.recording.devices().len(),
            "cell" => self.recording.cells().len(),
            _ => self.recording.runs().len(),
        };
        let missing = n_known..idx.max(n_known + 1);
        let n_bytes = missing.len() * MADE_UP_BYTES;
        if missing.len() > MAX_MADE_UP || self.budget.spend(n_bytes).is_err() {
            return false;
        }
        missing.into_iter().all(|n| match what {
            "device" => self.put(Frame::Device(Device {
                idx: DeviceIdx(n as u32),
                ..Device::default()
            })),
            "cell" => self.put(Frame::Cell(Cell {
                idx: CellIdx(n as u32),
                ..Cell::default()
            })),
            _ => self.make_up_run(RunIdx(n as u32)),
        })
    }

    /// An open run: what tells of it later may still say that it is one of another cell.
    fn make_up_run(&mut self, idx: RunIdx) -> bool {
        let bytes = self.bytes;
        let told = self.told.get_or_insert_with(|| told_of(bytes));
        let (cell, parent) = told.get(&idx).copied().unwrap_or_default();
        let parent = parent.filter(|parent| *parent < idx);
        let n_cells = self.recording.cells().len();
        if cell.get() >= n_cells && !self.make_up("cell", cell.get() + 1) {
            return false;
        }
        self.made_up.insert(idx);
        self.put(Frame::Run(Run {
            idx,
            cell,
            parent,
            ..Run::default()
        }))
    }

    fn put(&mut self, frame: Frame) -> bool {
        self.recording.apply(frame).is_ok()
    }

    /// Runs that nothing has told of are no open ones.
    fn finish(mut self) -> Recording {
        for idx in std::mem::take(&mut self.made_up) {
            self.put(Frame::Run(Run {
                ended: Some(Nanos::ZERO),
                status: Status::Interrupted,
                ..self.recording.run(idx).clone()
            }));
        }
        self.recording
    }
}

/// Of every run that a sound frame tells of, its cell and the run around it.
fn told_of(bytes: &[u8]) -> BTreeMap<RunIdx, (CellIdx, Option<RunIdx>)> {
    let mut budget = Budget::of(bytes.len());
    let mut told = BTreeMap::new();
    for piece in Scan::new(bytes) {
        if let Piece::Frame(range) = piece
            && bytes[range.start + PREFIX..].starts_with(b"\xa3run")
            && let payload = &bytes[range.start + PREFIX..range.end]
            && let Ok(Some(Frame::Run(run))) = frame_of(payload, 0, &mut budget)
        {
            told.entry(run.idx).or_insert((run.cell, run.parent));
        }
    }
    told
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::{encode, encode_frames};
    use crate::recording::{Sample, Series};
    use crate::testing::{run, session};

    fn salvaged(bytes: &[u8]) -> Salvaged {
        salvage(bytes, &mut || true).expect("it is of this version")
    }

    fn recorded() -> Recording {
        session(&[("f()", &vec![run(40); 12]), ("g()", &vec![run(0); 3])]).0
    }

    /// Where each frame of a recording ends.
    fn ends(bytes: &[u8]) -> Vec<usize> {
        Scan::new(bytes).map(|piece| piece.range().end).collect()
    }

    #[test]
    fn an_index_far_beyond_the_others_is_damaged() {
        let far = Run {
            idx: RunIdx(60_000),
            ..Run::default()
        };
        let found = salvaged(&encode_frames([Frame::Run(far)]));
        assert_eq!(found.recording.runs().len(), 0);
        assert_eq!(found.n_lost_places, 1);
    }

    /// Of a session's frames each is damaged once: what is left is read, and no byte more is lost.
    #[test]
    fn whatever_is_lost_the_rest_is_read() {
        let recorded = recorded();
        let whole = encode(&recorded);
        let mut start = 0;
        for end in ends(&whole) {
            for at in [start, start + 3, start + 5, start + PREFIX, end - 1] {
                let mut bytes = whole.clone();
                bytes[at] ^= 0x10;
                let found = salvaged(&bytes);
                let n_runs = found.recording.runs().len();
                assert!(n_runs >= 14, "byte {at}");
                assert_eq!(
                    found.n_lost_bytes + found.torn_at.map_or(0, |at| bytes.len() - at),
                    end - start,
                    "byte {at}"
                );
            }
            start = end;
        }
        assert_eq!(salvaged(&whole).recording, recorded);
    }

    /// What tells of a nested run comes before the frame that says in which run it is.
    #[test]
    fn a_run_whose_beginning_is_lost_gets_its_end() {
        let frames = |from: usize| {
            let cells = (0..2).map(|n| {
                Frame::Cell(Cell {
                    idx: CellIdx(n),
                    ..Cell::default()
                })
            });
            let outer = Run {
                cell: CellIdx(1),
                ..Run::default()
            };
            let inner = Run {
                idx: RunIdx(1),
                parent: Some(RunIdx(0)),
                ..outer.clone()
            };
            let ended = |run: &Run| {
                Frame::Run(Run {
                    ended: Some(Nanos::millis(3)),
                    ..run.clone()
                })
            };
            let samples = Frame::Samples(Samples {
                run: RunIdx(1),
                device: DeviceIdx(0),
                series: Series::Sampled,
                points: vec![Sample::default()].into(),
            });
            let frames = [
                Frame::Device(Device::default()),
                Frame::Run(outer.clone()),
                Frame::Run(inner.clone()),
                samples,
                ended(&inner),
                ended(&outer),
            ];
            encode_frames(cells.chain(frames).skip(from))
        };
        let whole = salvaged(&frames(0)).recording;
        for n_lost in 3..=5 {
            let found = salvaged(&frames(n_lost));
            assert_eq!(found.damage(), None);
            assert_eq!(
                found.recording.runs(),
                whole.runs(),
                "{n_lost} frames are lost"
            );
        }
    }

    #[test]
    fn bytes_that_are_no_frames_may_stand_anywhere() {
        let recorded = recorded();
        let whole = encode(&recorded);
        let foreign: [&[u8]; 3] = [
            &[0; 4096],
            &[0xa6; 100],
            b"\xff\xff\xff\x03\0\0\0\0\xa6header\x80",
        ];
        for junk in foreign {
            for at in ends(&whole) {
                let bytes = [&whole[..at], junk, &whole[at..]].concat();
                let found = salvaged(&bytes);
                assert_eq!(found.recording.runs(), recorded.runs(), "byte {at}");
                assert!(found.torn_at.is_some() || found.n_lost_bytes == junk.len());
            }
        }
    }

    #[test]
    fn a_file_that_was_cut_is_read_up_to_there() {
        let whole = encode(&recorded());
        let ends = ends(&whole);
        for length in 0..whole.len() {
            let found = salvaged(&whole[..length]);
            let start = ends.iter().rev().find(|end| **end <= length).copied();
            let is_whole = start.unwrap_or(0) == length;
            assert_eq!(found.torn_at, (!is_whole).then_some(start.unwrap_or(0)));
            assert_eq!(found.n_lost_places, 0, "{length} bytes");
        }
    }

    #[test]
    fn lengths_that_lie_cost_no_more_than_a_few_reads() {
        // Each of these says that half of all is its payload.
        let one = b"\xf0\xff\x07\0\x01\x02\x03\x04\xa3run\x80";
        let bytes = one.repeat((1 << 20) / one.len());
        let mut scan = Scan::new(&bytes);
        assert!(matches!(scan.next(), Some(Piece::Lost(_))));
        assert!(scan.n_left < bytes.len());
    }

    #[test]
    fn a_reader_that_gives_up_says_where() {
        let whole = encode(&recorded());
        let mut n_left = 5;
        let found = salvage(&whole, &mut || {
            n_left -= 1;
            n_left > 0
        });
        let words = found.expect("it is of this version").damage();
        assert!(words.is_some_and(|words| words.contains("takes too long")));
    }

    #[test]
    fn the_last_run_is_read_from_both_ends() {
        let recorded = recorded();
        let whole = encode(&recorded);
        let ends = ends(&whole);
        let first_run = recorded
            .frames()
            .take_while(|it| it.run().is_none())
            .count();
        let (first, last) = (ends[first_run], ends[ends.len() - 8]);
        let found = last_run(&whole[..first], &whole[last - 5..]);
        let run = &found.runs()[0];
        let expected = recorded.runs().last().expect("it has runs");
        assert_eq!(run.started, expected.started);
        assert_eq!(found.devices(), recorded.devices());
    }
}
