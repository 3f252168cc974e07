//! Repairs the almost-JSON that some profilers write.

use std::io::{self, Read};

/// Replaces bare `nan` and `inf` by 0, control characters in strings and NUL bytes by spaces, and backslashes
/// that begin no escape by slashes. Each byte gives one byte, so offsets stay valid.
pub(super) struct RepairedReader<R> {
    inner: R,
    state: JsonState,
    /// Bytes that were read ahead, to see what a word or a backslash is.
    ahead: Vec<u8>,
    /// How many of them are repaired.
    n_ready: usize,
    /// How many of these were returned.
    n_given: usize,
    is_at_end: bool,
}

#[derive(Clone, Copy, PartialEq)]
enum JsonState {
    Outside,
    InString,
    Escaped,
}

/// How much is read at once.
const CHUNK: usize = 1 << 15;

/// The longest word that is replaced, and the longest escape.
const LONGEST: usize = b"-Infinity".len();

const WORDS: [&[u8]; 8] = [
    b"-Infinity",
    b"-inf",
    b"-nan",
    b"-NaN",
    b"Infinity",
    b"inf",
    b"nan",
    b"NaN",
];

impl<R: Read> RepairedReader<R> {
    pub(super) fn new(inner: R) -> Self {
        Self {
            inner,
            state: JsonState::Outside,
            ahead: Vec::new(),
            n_ready: 0,
            n_given: 0,
            is_at_end: false,
        }
    }

    /// Reads until the longest word fits into `ahead`, or the file ends.
    fn fill(&mut self) -> io::Result<()> {
        self.ahead.drain(..self.n_given);
        (self.n_given, self.n_ready) = (0, 0);
        while !self.is_at_end && self.ahead.len() <= LONGEST {
            let n_before = self.ahead.len();
            self.ahead.resize(n_before + CHUNK, 0);
            let n_read = self
                .inner
                .read(self.ahead.get_mut(n_before..).unwrap_or_default());
            self.ahead
                .truncate(n_before + n_read.as_ref().map_or(0, |n_read| *n_read));
            self.is_at_end = n_read? == 0;
        }
        Ok(())
    }

    /// Repairs what is ahead; the last bytes wait for what follows them. Returns how many are ready.
    fn repair(&mut self) -> usize {
        let waiting = if self.is_at_end { 0 } else { LONGEST };
        let end = self.ahead.len().saturating_sub(waiting);
        let mut at = 0;
        while at < end {
            let (state, n_taken) = self.step(at);
            self.state = state;
            at += n_taken;
        }
        at
    }

    fn step(&mut self, at: usize) -> (JsonState, usize) {
        let rest = self.ahead.get_mut(at..).unwrap_or_default();
        let is_escape = begins_escape(rest);
        let Some(byte) = rest.first_mut() else {
            return (self.state, 1);
        };
        match (self.state, *byte) {
            (JsonState::Outside, b'"') => (JsonState::InString, 1),
            (JsonState::Outside, b'-' | b'I' | b'i' | b'n' | b'N') => {
                let word = WORDS.iter().find(|word| rest.starts_with(word));
                let Some(word) = word else {
                    return (JsonState::Outside, 1);
                };
                let word = rest.get_mut(..word.len()).unwrap_or_default();
                word.fill(b' ');
                word.iter_mut().take(1).for_each(|first| *first = b'0');
                (JsonState::Outside, word.len())
            }
            (JsonState::Outside, 0) => {
                *byte = b' ';
                (JsonState::Outside, 1)
            }
            (JsonState::Outside, _) | (JsonState::InString, b'"') => (JsonState::Outside, 1),
            (JsonState::InString, b'\\') if is_escape => (JsonState::Escaped, 1),
            (JsonState::InString, b'\\') => {
                *byte = b'/';
                (JsonState::InString, 1)
            }
            (JsonState::InString, 0..=31) => {
                *byte = b' ';
                (JsonState::InString, 1)
            }
            (JsonState::InString | JsonState::Escaped, _) => (JsonState::InString, 1),
        }
    }
}

fn begins_escape(text: &[u8]) -> bool {
    match text {
        [
            _,
            b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't',
            ..,
        ] => true,
        [_, b'u', a, b, c, d, ..] => [a, b, c, d].iter().all(|digit| digit.is_ascii_hexdigit()),
        _ => false,
    }
}

impl<R: Read> Read for RepairedReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.n_given == self.n_ready {
            self.fill()?;
            self.n_ready = self.repair();
        }
        let ready = self.ahead.get(self.n_given..self.n_ready);
        let n_read = ready.unwrap_or_default().read(buffer)?;
        self.n_given += n_read;
        Ok(n_read)
    }
}
