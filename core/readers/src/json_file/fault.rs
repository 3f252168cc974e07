//! Why a file was not read, and where.

use std::io::{self, Read};

use serde_json::error::Category;
use thiserror::Error;

use super::BUFFER;

/// A file that was not read.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("byte {offset}{}: {what}", if *.is_packed { " of what is packed" } else { "" })]
pub struct JsonError {
    /// Offset at which reading stopped; in a gzip file, of its unpacked content.
    pub offset: usize,
    /// Whether the file is a gzip file.
    pub is_packed: bool,
    /// What is wrong with it.
    pub what: JsonFault,
}

/// What is wrong: [`JsonError::what`]. The message is for users.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum JsonFault {
    /// The end is missing.
    #[error("the file ends inside the JSON: it was cut, or is still being written")]
    Cut,
    /// Not JSON, even after repairs.
    #[error("damaged JSON: {0}")]
    Damaged(String),
    /// The gzip data are damaged or cut, or hold far more than a profiler packs.
    #[error("damaged gzip data: {0}")]
    Gzip(String),
    /// JSON of something else.
    #[error("{0}")]
    Other(String),
}

impl JsonError {
    /// Reads `content` once more to find the error's offset.
    pub(super) fn new(
        error: &serde_json::Error,
        content: impl Read,
        n_skipped: usize,
        is_packed: bool,
    ) -> Self {
        let words = error.to_string();
        let without_place = words
            .rsplit_once(" at line ")
            .map_or(&*words, |(words, _)| words);
        let (end, failed) = place(content, error);
        let what = match (error.classify(), failed) {
            (_, Some(failed)) => JsonFault::Gzip(failed),
            (Category::Eof, _) => JsonFault::Cut,
            (Category::Data, _) => JsonFault::Other(without_place.to_owned()),
            _ => JsonFault::Damaged(without_place.to_owned()),
        };
        Self {
            offset: n_skipped + end,
            is_packed,
            what,
        }
    }
}

/// The error's offset in the content, and why unpacking ended before it.
fn place(mut content: impl Read, error: &serde_json::Error) -> (usize, Option<String>) {
    let is_at_end = matches!(error.classify(), Category::Eof | Category::Io);
    let mut lines_left = error.line().saturating_sub(1);
    let mut buffer = vec![0; BUFFER];
    let mut n_before = 0;
    let mut n_bytes = 0;
    while is_at_end || lines_left > 0 {
        let n_read = match content.read(&mut buffer) {
            Ok(0) => return (n_bytes, None),
            Ok(n_read) => n_read,
            Err(failed) if failed.kind() == io::ErrorKind::Interrupted => continue,
            Err(failed) => return (n_bytes, Some(failed.to_string())),
        };
        let read = buffer.get(..n_read).unwrap_or_default();
        let mut newlines = read.iter().enumerate().filter(|(_, byte)| **byte == b'\n');
        while lines_left > 0 {
            let Some((at, _)) = newlines.next() else {
                break;
            };
            lines_left -= 1;
            n_before = n_bytes + at + 1;
        }
        n_bytes += n_read;
    }
    (n_before + error.column().saturating_sub(1), None)
}
