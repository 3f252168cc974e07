//! JSON files as other programs write them: packed with gzip or not, read as a stream.
//!
//! Files of profilers are large and often not quite JSON: bare `nan` and `inf`, control characters and
//! backslashes in strings. A file that is refused is read once more, with these replaced.
//!
//! A gzip file may hold a thousand times its size. Reading it takes at most 20 times its size of memory.
//!
//! ```
//! use gpumem_readers::json_file::{JsonFault, read};
//! use std::marker::PhantomData;
//!
//! assert_eq!(read(b"[1, 2]", || PhantomData::<Vec<u8>>)?, [1, 2]);
//! let cut = read(b"[1, 2", || PhantomData::<Vec<u8>>).unwrap_err();
//! assert_eq!((cut.offset, cut.what), (5, JsonFault::Cut));
//! # Ok::<(), gpumem_readers::json_file::JsonError>(())
//! ```

mod fault;
mod repaired;
mod scalar;
#[cfg(test)]
mod tests;
mod unpacked;

use std::io::{BufReader, Read};

use serde::de::DeserializeSeed;
use serde_json::Deserializer;
use serde_json::de::{IoRead, SliceRead};

pub use fault::{JsonError, JsonFault};
use repaired::Repaired;
pub use scalar::{Scalar, TextInto};
use unpacked::Unpacked;

use super::container::is_gzip;

/// Lets a visitor be its own seed.
macro_rules! own_seed {
    ($visitor:ty, $deserialize:ident) => {
        impl<'de> serde::de::DeserializeSeed<'de> for $visitor {
            type Value = <Self as serde::de::Visitor<'de>>::Value;

            fn deserialize<D: serde::de::Deserializer<'de>>(
                self,
                deserializer: D,
            ) -> Result<Self::Value, D::Error> {
                deserializer.$deserialize(self)
            }
        }
    };
}
pub(super) use own_seed;

/// How much of a packed file is unpacked to see what it holds.
const HEAD: u64 = 4096;

/// How much of a packed file is unpacked at once.
const BUFFER: usize = 1 << 16;

/// What reading a file may take of memory for each of its bytes, packed or not, …
pub(super) const LARGEST_RATIO: usize = 20;

/// … and what a small file may take in any case.
const FREE: usize = 1 << 20;

/// What a file may take of memory while it is read.
pub(super) const fn max_memory(file_size: usize) -> usize {
    file_size.saturating_mul(LARGEST_RATIO).saturating_add(FREE)
}

const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// The first bytes of a file, unpacked if it is a gzip file.
pub fn head(bytes: &[u8]) -> Vec<u8> {
    let mut head = Vec::new();
    // What is damaged shows when it is read whole.
    drop(Unpacked::of(bytes).take(HEAD).read_to_end(&mut head));
    head
}

/// Reads a file's one value; a seed is made for each attempt.
///
/// # Errors
///
/// [`JsonError`] if the file is damaged, or if the seed refuses it.
pub fn read<'a, S: DeserializeSeed<'a>>(
    bytes: &'a [u8],
    mut seed: impl FnMut() -> S,
) -> Result<S::Value, JsonError> {
    let plain = bytes.strip_prefix(BYTE_ORDER_MARK).unwrap_or(bytes);
    let is_packed = is_gzip(bytes);
    let read = if is_packed {
        attempt(
            IoRead::new(BufReader::with_capacity(BUFFER, Unpacked::of(bytes))),
            seed(),
        )
    } else {
        attempt(SliceRead::new(plain), seed())
    };
    let n_skipped = bytes.len() - plain.len();
    let read = match read {
        Err(error) if error.is_syntax() => {
            let repaired = Repaired::of(Unpacked::of(plain));
            attempt(
                IoRead::new(BufReader::with_capacity(BUFFER, repaired)),
                seed(),
            )
        }
        read => read,
    };
    read.map_err(|error| JsonError::of(&error, Unpacked::of(plain), n_skipped, is_packed))
}

fn attempt<'a, R, S>(reader: R, seed: S) -> serde_json::Result<S::Value>
where
    R: serde_json::de::Read<'a>,
    S: DeserializeSeed<'a>,
{
    let mut deserializer = Deserializer::new(reader);
    let value = seed.deserialize(&mut deserializer)?;
    deserializer.end()?;
    Ok(value)
}
