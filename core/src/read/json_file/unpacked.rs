//! A file's content, unpacked while it is read.

use std::io::{self, Read};

use flate2::read::MultiGzDecoder;

use crate::read::file_kind::FileKind;

/// Traces of profilers are packed 10 to 40 times; a gzip file can hold a thousand times its size.
const LARGEST_RATIO: usize = 200;

/// What a small file may hold in any case.
const FREE: usize = 1 << 20;

/// The bytes of a file, or what a gzip file holds.
pub(super) enum Unpacked<'a> {
    Plain(&'a [u8]),
    Gzip {
        decoder: MultiGzDecoder<&'a [u8]>,
        n_left: usize,
    },
}

impl<'a> Unpacked<'a> {
    pub(super) fn of(bytes: &'a [u8]) -> Self {
        if FileKind::of(bytes) == FileKind::Gzip {
            Self::Gzip {
                decoder: MultiGzDecoder::new(bytes),
                n_left: bytes
                    .len()
                    .saturating_mul(LARGEST_RATIO)
                    .saturating_add(FREE),
            }
        } else {
            Self::Plain(bytes)
        }
    }
}

impl Read for Unpacked<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Plain(bytes) => bytes.read(buffer),
            Self::Gzip { decoder, n_left } => {
                let n_read = decoder.read(buffer)?;
                *n_left = n_left.checked_sub(n_read).ok_or_else(|| {
                    io::Error::other(format!("it holds more than {LARGEST_RATIO} times its size"))
                })?;
                Ok(n_read)
            }
        }
    }
}
