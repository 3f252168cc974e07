//! A file's content, unpacked while it is read.

use std::io::{self, Read};

use flate2::read::MultiGzDecoder;

use super::{FREE, LARGEST_RATIO, max_memory};
use crate::container::is_gzip;

/// Traces of profilers are packed 10 to 40 times.
const LARGEST_UNPACKED: usize = 200;

/// The bytes of a file, or what a gzip file holds.
pub(super) enum UnpackedReader<'a> {
    Plain(&'a [u8]),
    Gzip {
        decoder: Box<MultiGzDecoder<&'a [u8]>>,
        n_left: usize,
        text: QuotedText,
    },
}

impl<'a> UnpackedReader<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        if is_gzip(bytes) {
            Self::Gzip {
                decoder: Box::new(MultiGzDecoder::new(bytes)),
                n_left: bytes
                    .len()
                    .saturating_mul(LARGEST_UNPACKED)
                    .saturating_add(FREE),
                text: QuotedText::new(max_memory(bytes.len())),
            }
        } else {
            Self::Plain(bytes)
        }
    }
}

impl Read for UnpackedReader<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Plain(bytes) => bytes.read(buffer),
            Self::Gzip {
                decoder,
                n_left,
                text,
            } => {
                let n_read = decoder.read(buffer)?;
                *n_left = n_left.checked_sub(n_read).ok_or_else(|| {
                    io::Error::other(format!(
                        "it holds more than {LARGEST_UNPACKED} times its size"
                    ))
                })?;
                text.read(buffer.get(..n_read).unwrap_or_default())?;
                Ok(n_read)
            }
        }
    }
}

/// The text in quotes that is being read: the parser holds it in one piece.
pub(super) struct QuotedText {
    is_open: bool,
    is_escaped: bool,
    n_bytes: usize,
    n_most: usize,
}

impl QuotedText {
    const fn new(n_most: usize) -> Self {
        Self {
            is_open: false,
            is_escaped: false,
            n_bytes: 0,
            n_most,
        }
    }

    fn read(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            let is_end = |byte: &u8| *byte == b'"' || self.is_open && *byte == b'\\';
            let at = if self.is_escaped {
                Some(0)
            } else {
                bytes.iter().position(is_end)
            };
            let n_passed = at.map_or(bytes.len(), |at| at + 1);
            if self.is_open {
                self.n_bytes += n_passed;
            }
            if self.n_bytes > self.n_most {
                return Err(io::Error::other(format!(
                    "it holds a text of more than {LARGEST_RATIO} times its size"
                )));
            }
            match at.and_then(|at| bytes.get(at)) {
                _ if self.is_escaped => self.is_escaped = false,
                Some(b'"') => (self.is_open, self.n_bytes) = (!self.is_open, 0),
                Some(_) => self.is_escaped = true,
                None => {}
            }
            bytes = bytes.get(n_passed..).unwrap_or_default();
        }
        Ok(())
    }
}
