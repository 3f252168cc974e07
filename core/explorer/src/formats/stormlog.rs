//! Exports of stormlog.

use gpumem_readers::container::Container;
use gpumem_readers::stormlog::{is_export, read};

use super::{ReadMethod, RegistryEntry, into_content};

/// In the registry.
pub(super) struct Stormlog;

impl RegistryEntry for Stormlog {
    const NAME: Option<&'static str> = Some("an export of stormlog");
    const LISTED: Option<&'static str> = Some("exports of stormlog");
    const READING: ReadMethod = ReadMethod::Bytes(|file| into_content(read(file.bytes)));

    fn recognises(container: Container, head: &[u8]) -> bool {
        matches!(container, Container::Text | Container::Json) && is_export(head)
    }
}
