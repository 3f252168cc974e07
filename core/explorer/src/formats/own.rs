//! What gpumem itself writes.

use gpumem_readers::container::Container;

use super::{PageKind, ReadMethod, RegistryEntry};
use crate::process_page::BEGINS;

/// Frames of a session.
pub(super) struct RecordingFormat;

/// What a page of processes is made from.
pub(super) struct ProcessesFormat;

impl RegistryEntry for RecordingFormat {
    const NAME: Option<&'static str> = Some("a recording of gpumem");
    const READING: ReadMethod = ReadMethod::Recording;

    /// Its header's kind stands behind length, checksum and two bytes of `MessagePack`.
    fn recognises(_container: Container, head: &[u8]) -> bool {
        const HEADER: &[u8] = b"header";
        head.get(8..16)
            .is_some_and(|kind| kind.windows(HEADER.len()).any(|at| at == HEADER))
    }
}

impl RegistryEntry for ProcessesFormat {
    const NAME: Option<&'static str> = Some("what a page of gpumem shows");
    const PAGE: Option<PageKind> = Some(PageKind::Processes);

    fn recognises(_container: Container, head: &[u8]) -> bool {
        head.starts_with(BEGINS)
    }
}
