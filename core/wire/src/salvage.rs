//! What can be read of a recording that is damaged.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::{Range, RangeInclusive};

use super::budget::ListBudget;
use super::{MAX_FRAME, PREFIX, WireError, WireFault, checksum, frame_of};
use gpumem_model::recording::{
    Cell, CellIdx, Device, DeviceIdx, EntryKind, Frame, FrameError, Missing, Recording, Run,
    RunIdx, Status,
};
use gpumem_model::units::{Nanos, count};

/// At most this many lost entries of one kind are replaced; a larger gap means a damaged index.
const MAX_MADE_UP: usize = 1 << 16;

/// The most lost entries that one frame may refer to.
const MAX_ROUNDS: usize = 64;

/// What one takes in memory, with its places in the lists of a recording, which grow to twice their size.
const MADE_UP_BYTES: usize = 2 * (size_of::<Run>() + size_of::<RunIdx>());

/// The kinds of frames, of which one stands in front of every payload that is worth looking for.
const KINDS: [&str; 12] = [
    "header",
    "device",
    "cell",
    "run",
    "samples",
    "loop",
    "iterations",
    "trace",
    "holders",
    "segments",
    "missing",
    "finish",
];

/// What `MessagePack` puts before texts as long as these.
const MARKERS: RangeInclusive<u8> = 0xa3..=0xaa;

/// A recording of which a part may be missing: [`salvage`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Salvage {
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

impl Salvage {
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
/// [`WireError`] if a later gpumem wrote it.
pub fn salvage(bytes: &[u8], goes_on: &mut dyn FnMut() -> bool) -> Result<Salvage, WireError> {
    let mut salvaged = Salvage::default();
    let mut reading = LossyReader::new(bytes);
    for piece in Scan::new(bytes) {
        if !goes_on() {
            salvaged.given_up_at = Some(piece.range().start);
            break;
        }
        match piece {
            Fragment::Frame(range) => {
                if reading.fits(&range)? {
                    salvaged.n_frames += 1;
                } else {
                    salvaged.lose(range.len());
                }
            }
            Fragment::Lost(range) if range.end == bytes.len() && is_torn(&bytes[range.clone()]) => {
                salvaged.torn_at = Some(range.start);
            }
            Fragment::Lost(range) => salvaged.lose(range.len()),
        }
    }
    salvaged.recording = reading.finish();
    if let Some(words) = salvaged.damage() {
        // It refers to nothing.
        drop(salvaged.recording.apply(Frame::Missing(Missing { words })));
    }
    Ok(salvaged)
}

/// A part of bytes that may be damaged.
enum Fragment {
    /// With its prefix.
    Frame(Range<usize>),
    /// No frame that is sound.
    Lost(Range<usize>),
}

impl Fragment {
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
        if checksum::crc32(payload) != written {
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
    type Item = Fragment;

    fn next(&mut self) -> Option<Fragment> {
        let at = self.at;
        if at == self.bytes.len() {
            return None;
        }
        if let Some(end) = self.end_of_sound(at) {
            self.at = end;
            return Some(Fragment::Frame(at..end));
        }
        let next = self.next_sound();
        self.at = next.map_or(self.bytes.len(), |range| range.start);
        Some(Fragment::Lost(at..self.at))
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
struct LossyReader<'a> {
    bytes: &'a [u8],
    recording: Recording,
    budget: ListBudget,
    /// The runs that were made up, as no frame of them was read yet.
    made_up: BTreeSet<RunIdx>,
    /// The cell and the parent of every run that has a sound frame, once they are needed.
    known_runs: Option<BTreeMap<RunIdx, (CellIdx, Option<RunIdx>)>>,
}

impl<'a> LossyReader<'a> {
    fn new(bytes: &'a [u8]) -> Self {
        Self {
            bytes,
            recording: Recording::default(),
            budget: ListBudget::new(0),
            made_up: BTreeSet::new(),
            known_runs: None,
        }
    }

    /// Applies the frame that stands there, if it fits.
    fn fits(&mut self, range: &Range<usize>) -> Result<bool, WireError> {
        self.budget.earn(range.len());
        let payload = &self.bytes[range.start + PREFIX..range.end];
        // Each round makes up for another entry: its cell, its run, each of its devices.
        for _ in 0..MAX_ROUNDS {
            let mut left = self.budget;
            let frame = match frame_of(payload, range.start + PREFIX, &mut left) {
                Ok(Some(frame)) => frame,
                // Only a later gpumem knows it.
                Ok(None) => return Ok(true),
                Err(error) if matches!(error.what, WireFault::TooNew(_)) => return Err(error),
                Err(_) => return Ok(false),
            };
            let run = match &frame {
                Frame::Run(run) => Some(run.idx),
                _ => None,
            };
            match self.recording.apply(frame) {
                Ok(()) => {
                    self.budget = left;
                    run.map(|run| self.made_up.remove(&run));
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
    fn make_up(&mut self, what: EntryKind, idx: usize) -> bool {
        let n_known = match what {
            EntryKind::Device => self.recording.devices().len(),
            EntryKind::Cell => self.recording.cells().len(),
            EntryKind::Run => self.recording.runs().len(),
        };
        let missing = n_known..idx.max(n_known + 1);
        let n_bytes = missing.len() * MADE_UP_BYTES;
        if missing.len() > MAX_MADE_UP || self.budget.spend(n_bytes).is_err() {
            return false;
        }
        missing.into_iter().all(|n| match what {
            EntryKind::Device => self.put(Frame::Device(Device {
                idx: DeviceIdx(n as u32),
                ..Device::default()
            })),
            EntryKind::Cell => self.put(Frame::Cell(Cell {
                idx: CellIdx(n as u32),
                ..Cell::default()
            })),
            EntryKind::Run => self.make_up_run(RunIdx(n as u32)),
        })
    }

    /// An open run: a later frame may still say that it is one of another cell.
    fn make_up_run(&mut self, idx: RunIdx) -> bool {
        let bytes = self.bytes;
        let known = self.known_runs.get_or_insert_with(|| known_runs(bytes));
        let (cell, parent) = known.get(&idx).copied().unwrap_or_default();
        let parent = parent.filter(|parent| *parent < idx);
        let n_cells = self.recording.cells().len();
        if cell.get() >= n_cells && !self.make_up(EntryKind::Cell, cell.get() + 1) {
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

    /// Runs without a frame are not open.
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

/// The cell and the parent of every run that has a sound frame.
fn known_runs(bytes: &[u8]) -> BTreeMap<RunIdx, (CellIdx, Option<RunIdx>)> {
    let mut budget = ListBudget::new(bytes.len());
    let mut known = BTreeMap::new();
    for piece in Scan::new(bytes) {
        if let Fragment::Frame(range) = piece
            && bytes[range.start + PREFIX..].starts_with(b"\xa3run")
            && let payload = &bytes[range.start + PREFIX..range.end]
            && let Ok(Some(Frame::Run(run))) = frame_of(payload, 0, &mut budget)
        {
            known.entry(run.idx).or_insert((run.cell, run.parent));
        }
    }
    known
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{encode, encode_frames};
    use gpumem_model::recording::{Sample, Series};
    use gpumem_model::testing::{recorded, run};

    fn salvaged(bytes: &[u8]) -> Salvage {
        salvage(bytes, &mut || true).expect("it is of this version")
    }

    fn twice() -> Recording {
        recorded(&[("f()", &vec![run(40); 12]), ("g()", &vec![run(0); 3])])
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
        let recorded = twice();
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
            let samples = Frame::samples(
                RunIdx(1),
                DeviceIdx(0),
                Series::Sampled,
                vec![Sample::default()],
            );
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
        let recorded = twice();
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
        let whole = encode(&twice());
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
        assert!(matches!(scan.next(), Some(Fragment::Lost(_))));
        assert!(scan.n_left < bytes.len());
    }

    #[test]
    fn a_reader_that_gives_up_says_where() {
        let whole = encode(&twice());
        let mut n_left = 5;
        let found = salvage(&whole, &mut || {
            n_left -= 1;
            n_left > 0
        });
        let words = found.expect("it is of this version").damage();
        assert!(words.is_some_and(|words| words.contains("takes too long")));
    }
}
