//! What both processes of a look say to each other.
//!
//! A message is a tag, the length and a checksum of what follows, and that. The child may have been
//! torn down in the middle of one: what does not fit is refused, and never believed.

use gpumem_model::units::Bytes;

use super::process::{Link, Silence};
use crate::adapters::registered::ReportedBytes;
use crate::walk::{Answers, PoolId};

/// A longer one is not the answer of any look.
const MAX_BYTES: usize = 64 << 20;

const HEADER: usize = 16;

/// Its first four bytes.
const MAGIC: u32 = 0x6c6f_6f6b;

/// What a message is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub(super) enum Tag {
    /// The child works, and begins.
    Ready = 1,
    /// Queries that only the user's own process can answer.
    Questions = 2,
    /// The answers to them.
    Answers = 3,
    /// The result.
    Found = 4,
    /// Why there is no result.
    Failed = 5,
    /// The address at which the child needed memory that was left out of it.
    Lacks = 6,
    /// What the next copy can do without: request and response.
    Survey = 7,
}

impl Tag {
    const ALL: [Self; 7] = [
        Self::Ready,
        Self::Questions,
        Self::Answers,
        Self::Found,
        Self::Failed,
        Self::Lacks,
        Self::Survey,
    ];
}

/// What came instead of a message.
pub(super) enum Refused {
    Silence(Silence),
    Garbage,
}

pub(super) fn send(link: &Link, tag: Tag, payload: &[u8]) -> bool {
    send_by_halves(link, tag, payload, || {})
}

/// Calls `between` when half of it is sent.
pub(super) fn send_by_halves(
    link: &Link,
    tag: Tag,
    payload: &[u8],
    between: impl FnOnce(),
) -> bool {
    let mut header = [0; HEADER];
    let length = u32::try_from(payload.len()).unwrap_or(u32::MAX);
    let words = [MAGIC, tag as u32, length, checksum(payload)];
    for (place, word) in header.chunks_exact_mut(4).zip(words) {
        place.copy_from_slice(&word.to_le_bytes());
    }
    let (first, second) = payload.split_at(payload.len() / 2);
    let is_begun = link.send(&header) && link.send(first);
    between();
    is_begun && link.send(second)
}

/// `wait` returns when there may be something to receive.
pub(super) fn receive(
    link: &Link,
    wait: &mut dyn FnMut() -> Result<(), Silence>,
) -> Result<(Tag, Vec<u8>), Refused> {
    let mut header = [0; HEADER];
    link.receive(&mut header, wait).map_err(Refused::Silence)?;
    let word = |idx: usize| {
        let bytes = header[4 * idx..].first_chunk().copied();
        u32::from_le_bytes(bytes.unwrap_or_default())
    };
    let tag = Tag::ALL.into_iter().find(|tag| *tag as u32 == word(1));
    let length = word(2) as usize;
    let (Some(tag), MAGIC, ..=MAX_BYTES) = (tag, word(0), length) else {
        return Err(Refused::Garbage);
    };
    let mut payload = vec![0; length];
    link.receive(&mut payload, wait).map_err(Refused::Silence)?;
    if checksum(&payload) == word(3) {
        Ok((tag, payload))
    } else {
        Err(Refused::Garbage)
    }
}

/// FNV-1a.
fn checksum(bytes: &[u8]) -> u32 {
    let mix = |sum: u32, byte: &u8| (sum ^ u32::from(*byte)).wrapping_mul(0x0100_0193);
    bytes.iter().fold(0x811c_9dc5, mix)
}

/// What the child cannot ask itself: code of the user's, and allocators.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Questions {
    /// Objects by address, and which adapter of the user's knows them.
    pub(super) objects: Vec<(usize, u8)>,
    pub(super) pools: Vec<PoolId>,
}

impl Questions {
    pub(super) fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        number(&mut bytes, self.objects.len() as u64);
        for (address, adapter) in &self.objects {
            number(&mut bytes, *address as u64);
            number(&mut bytes, u64::from(*adapter));
        }
        number(&mut bytes, self.pools.len() as u64);
        for pool in &self.pools {
            number(&mut bytes, pool.0);
            number(&mut bytes, pool.1);
        }
        bytes
    }

    pub(super) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let mut rest = bytes;
        let mut read = || take_number(&mut rest);
        let mut questions = Self::default();
        for _ in 0..read()? {
            let (address, adapter) = (read()?, read()?);
            let address = usize::try_from(address).ok()?;
            questions
                .objects
                .push((address, u8::try_from(adapter).ok()?));
        }
        for _ in 0..read()? {
            questions.pools.push(PoolId(read()?, read()?));
        }
        rest.is_empty().then_some(questions)
    }
}

/// Plain numbers, for the line.
pub(super) fn numbers_to_bytes(numbers: &[u64]) -> Vec<u8> {
    numbers.iter().flat_map(|it| it.to_le_bytes()).collect()
}

pub(super) fn numbers_from_bytes(bytes: &[u8]) -> Option<Vec<u64>> {
    let (numbers, rest) = bytes.as_chunks();
    let numbers = numbers.iter().map(|it| u64::from_le_bytes(*it));
    rest.is_empty().then(|| numbers.collect())
}

/// The answers of the original process as a payload.
pub(super) fn answers_to_bytes(answers: &Answers) -> Vec<u8> {
    let mut bytes = Vec::new();
    for held in &answers.objects {
        number(&mut bytes, held.len() as u64);
        for held in held {
            text(&mut bytes, &held.device);
            number(&mut bytes, held.n_bytes.get());
            number(&mut bytes, u64::from(held.key.is_some()));
            number(&mut bytes, held.key.unwrap_or_default());
        }
    }
    for free in &answers.pools {
        number(&mut bytes, free.len() as u64);
        for (device, n_bytes) in free {
            text(&mut bytes, device);
            number(&mut bytes, n_bytes.get());
        }
    }
    bytes
}

/// `questions` says how many entries there are.
pub(super) fn answers_from_bytes(bytes: &[u8], questions: &Questions) -> Option<Answers> {
    let rest = &mut &*bytes;
    let mut answers = Answers::default();
    for _ in &questions.objects {
        let mut entries = Vec::new();
        for _ in 0..take_number(rest)? {
            let device = take_text(rest)?;
            let n_bytes = Bytes::new(take_number(rest)?);
            let (has_key, key) = (take_number(rest)? != 0, take_number(rest)?);
            entries.push(ReportedBytes {
                device,
                n_bytes,
                key: has_key.then_some(key),
            });
        }
        answers.objects.push(entries);
    }
    for _ in &questions.pools {
        let mut entries = Vec::new();
        for _ in 0..take_number(rest)? {
            entries.push((take_text(rest)?, Bytes::new(take_number(rest)?)));
        }
        answers.pools.push(entries);
    }
    rest.is_empty().then_some(answers)
}

fn number(bytes: &mut Vec<u8>, number: u64) {
    bytes.extend(number.to_le_bytes());
}

fn text(bytes: &mut Vec<u8>, text: &str) {
    number(bytes, text.len() as u64);
    bytes.extend(text.as_bytes());
}

fn take_number(rest: &mut &[u8]) -> Option<u64> {
    let (number, left) = rest.split_first_chunk()?;
    *rest = left;
    Some(u64::from_le_bytes(*number))
}

fn take_text(rest: &mut &[u8]) -> Option<String> {
    let n = usize::try_from(take_number(rest)?).ok()?;
    let (text, left) = rest.split_at_checked(n)?;
    *rest = left;
    String::from_utf8(text.to_vec()).ok()
}
