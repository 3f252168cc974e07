//! JSON files as other programs write them: packed with gzip or not, read as a stream.
//!
//! Files of profilers are large and often not quite JSON: bare `nan` and `inf`, control characters and
//! backslashes in strings. If the parser refuses a file, it is read once more with these replaced.
//!
//! A gzip file may unpack to a thousand times its size. Reading it takes at most 20 times its size of memory.
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
use repaired::RepairedReader;
pub(crate) use scalar::next_key;
pub use scalar::{Scalar, TextInto};
use unpacked::UnpackedReader;

use super::container::{BYTE_ORDER_MARK, LOOKED_AT, is_gzip};

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

/// What a visitor expects, for the message about anything else.
macro_rules! expecting {
    ($words:literal) => {
        fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str($words)
        }
    };
}
pub(super) use expecting;

/// How much of a packed file is unpacked at once.
const BUFFER: usize = 1 << 16;

/// Bytes of memory that reading may take for each byte of a file, packed or not, …
pub(super) const LARGEST_RATIO: usize = 20;

/// … and for a small file in any case.
const FREE: usize = 1 << 20;

/// The memory that reading a file may take.
pub(super) const fn max_memory(file_size: usize) -> usize {
    file_size.saturating_mul(LARGEST_RATIO).saturating_add(FREE)
}

/// The first bytes of a file, unpacked if it is a gzip file.
pub fn head(bytes: &[u8]) -> Vec<u8> {
    let mut head = Vec::new();
    let mut unpacked = UnpackedReader::new(bytes).take(LOOKED_AT as u64);
    // The full read reports damage.
    drop(unpacked.read_to_end(&mut head));
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
            IoRead::new(BufReader::with_capacity(BUFFER, UnpackedReader::new(bytes))),
            seed(),
        )
    } else {
        attempt(SliceRead::new(plain), seed())
    };
    let n_skipped = bytes.len() - plain.len();
    let read = match read {
        Err(error) if error.is_syntax() => {
            let repaired = RepairedReader::new(UnpackedReader::new(plain));
            attempt(
                IoRead::new(BufReader::with_capacity(BUFFER, repaired)),
                seed(),
            )
        }
        read => read,
    };
    read.map_err(|error| JsonError::new(&error, UnpackedReader::new(plain), n_skipped, is_packed))
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
