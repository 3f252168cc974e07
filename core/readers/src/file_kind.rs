//! Which program wrote a file, by its content.
//!
//! ```
//! use gpumem_readers::file_kind::FileKind;
//!
//! assert_eq!(FileKind::of(b"\x80\x04}."), FileKind::Pickle);
//! assert_eq!(FileKind::of(b"PK\x03\x04"), FileKind::Zip);
//! assert_eq!(FileKind::of(b"{\"traceEvents\": []}"), FileKind::Json);
//! ```

use super::{nsight, nvidia_smi, stormlog};

/// A page of processes begins with these bytes.
pub const PROCESSES_BEGIN: &[u8] = b"\x93gpumem processes 1\n";

/// What a file's first bytes look like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileKind {
    /// A recording of gpumem.
    Recording,
    /// What a page of processes is made from.
    Processes,
    /// A pickle, which may be a memory snapshot of PyTorch.
    Pickle,
    /// A ZIP archive, which may be a checkpoint of PyTorch.
    Zip,
    /// A gzip file.
    Gzip,
    /// An `SQLite` database.
    Sqlite,
    /// A report of Nsight Systems, which has to be exported first.
    NsightReport,
    /// A capture of memray.
    Memray,
    /// An export of stormlog, as JSON or CSV.
    Stormlog,
    /// JSON.
    Json,
    /// A page.
    Html,
    /// A log of nvidia-smi.
    NvidiaSmi,
    /// Rows of numbers without a header: a log of nvidia-smi, or anything else.
    Numbers,
    /// Some other text.
    Text,
    /// Nothing.
    Empty,
    /// Other bytes.
    Unknown,
}

/// Where a header's kind stands in a recording: behind length, checksum and two bytes of `MessagePack`.
const HEADER: &[u8] = b"header";

/// How many bytes of a file are looked at.
pub const LOOKED_AT: usize = 4096;

impl FileKind {
    /// What `bytes` look like. A damaged file may look like what it was.
    pub fn of(bytes: &[u8]) -> Self {
        let head = bytes.get(..LOOKED_AT).unwrap_or(bytes);
        if head.is_empty() {
            return Self::Empty;
        }
        if head
            .get(8..16)
            .is_some_and(|kind| kind.windows(HEADER.len()).any(|at| at == HEADER))
        {
            return Self::Recording;
        }
        let starts = [
            (PROCESSES_BEGIN, Self::Processes),
            (b"PK\x03\x04", Self::Zip),
            (b"\x1f\x8b", Self::Gzip),
            (b"SQLite format 3\0", Self::Sqlite),
            (nsight::REPORT_BEGINS, Self::NsightReport),
            (b"memray\0", Self::Memray),
        ];
        if let Some((_, kind)) = starts.iter().find(|(start, _)| head.starts_with(start)) {
            return *kind;
        }
        if is_pickle(head) {
            return Self::Pickle;
        }
        if is_packed_memray(head) {
            return Self::Memray;
        }
        match text(head) {
            Self::Text | Self::Json if stormlog::is_export(head) => Self::Stormlog,
            kind @ (Self::Text | Self::Html | Self::Unknown) => {
                nvidia_smi::kind(head).unwrap_or(kind)
            }
            kind => kind,
        }
    }

    /// `a ZIP archive, as torch.save writes`: what to call it.
    pub const fn words(self) -> &'static str {
        match self {
            Self::Recording => "a recording of gpumem",
            Self::Processes => "what a page of gpumem shows",
            Self::Pickle => "a pickle",
            Self::Zip => "a ZIP archive, as torch.save writes",
            Self::Gzip => "a gzip file",
            Self::Sqlite => "an SQLite database",
            Self::NsightReport => "a report of Nsight Systems",
            Self::Memray => "a capture of memray",
            Self::Stormlog => "an export of stormlog",
            Self::Json => "JSON",
            Self::Html => "a page",
            Self::NvidiaSmi => "a log of nvidia-smi",
            Self::Numbers => "numbers without a header",
            Self::Text => "text",
            Self::Empty => "an empty file",
            Self::Unknown => "a file of unknown kind",
        }
    }
}

fn is_pickle(head: &[u8]) -> bool {
    // Protocols 0 and 1 begin with a list or dict, then a memo.
    matches!(
        head,
        [0x80, 0..=5, ..] | [b'(', b'l' | b'd', b'p', ..] | [b']' | b'}', b'q', ..]
    )
}

/// memray packs its captures by LZ4, which leaves a text as it is where it occurs first.
fn is_packed_memray(head: &[u8]) -> bool {
    const FRAME: &[u8] = b"\x04\x22\x4d\x18";
    const NAME: &[u8] = b"memray";
    let beginning = head.get(..32).unwrap_or(head);
    beginning.starts_with(FRAME) && beginning.windows(NAME.len()).any(|at| at == NAME)
}

/// Bytes inside texts may be anything: what is wrong with them is repaired, or told, where the file is read.
fn is_json(head: &[u8]) -> bool {
    const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";
    let head = head.strip_prefix(BYTE_ORDER_MARK).unwrap_or(head);
    let mut letters = head.iter().filter(|byte| !byte.is_ascii_whitespace());
    match (letters.next(), letters.next()) {
        (Some(b'{'), second) => matches!(second, None | Some(b'"' | b'}')),
        (Some(b'['), second) => {
            matches!(
                second,
                None | Some(b'{' | b'[' | b'"' | b']' | b'-' | b'0'..=b'9')
            )
        }
        _ => false,
    }
}

fn text(head: &[u8]) -> FileKind {
    if is_json(head) {
        return FileKind::Json;
    }
    let text = match std::str::from_utf8(head) {
        Ok(text) => text,
        // The look may end inside a character.
        Err(error) if error.error_len().is_none() => {
            let valid = head.get(..error.valid_up_to()).unwrap_or_default();
            std::str::from_utf8(valid).unwrap_or_default()
        }
        Err(_) => return FileKind::Unknown,
    };
    let is_control = |letter: char| letter.is_control() && !letter.is_whitespace();
    if text.is_empty() || text.contains(is_control) {
        return FileKind::Unknown;
    }
    match text.trim_start().chars().next() {
        Some('{') => FileKind::Json,
        Some('<') => FileKind::Html,
        _ => FileKind::Text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(bytes: &[u8], expected: FileKind) {
        assert_eq!(FileKind::of(bytes), expected);
    }

    #[test]
    fn json_may_have_any_bytes_in_its_texts() {
        check(b"{\"name\": \"caf\xe9\"}", FileKind::Json);
        check(b"\xef\xbb\xbf [1, 2]", FileKind::Json);
        check(b"{\"name\": \"a\x01b\"}\0\0", FileKind::Json);
        check(b"{\x01\x02", FileKind::Unknown);
        check(b"[section]\nname = 1\n", FileKind::Text);
    }

    #[test]
    fn a_capture_of_memray_is_known_as_it_is_and_packed() {
        check(b"memray\0\x0b\0", FileKind::Memray);
        let packed = b"\x04\x22\x4d\x18\x40\x40\xc0\x20\0\0\0\xf0\x12memray\0\x0c";
        check(packed, FileKind::Memray);
        check(
            b"\x04\x22\x4d\x18\x40\x40\xc0\x20\0\0\0\xf0\x12another",
            FileKind::Unknown,
        );
    }
}
