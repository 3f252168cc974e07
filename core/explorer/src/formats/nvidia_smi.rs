//! Logs of `nvidia-smi`.

use gpumem_readers::container::Container;
use gpumem_readers::nvidia_smi::{HeaderlessRows, read, rows_in};

use super::{ReadMethod, RegistryEntry, into_content};

/// A log whose memory is certain.
pub(super) struct NvidiaSmi;

/// Rows of numbers without a header: a log of nvidia-smi, or anything else.
pub(super) struct NumbersFormat;

const READING: ReadMethod = ReadMethod::Bytes(|file| into_content(read(file.bytes)));

impl RegistryEntry for NvidiaSmi {
    const NAME: Option<&'static str> = Some("a log of nvidia-smi");
    const LISTED: Option<&'static str> = Some("logs of nvidia-smi");
    const READING: ReadMethod = READING;

    fn recognises(container: Container, head: &[u8]) -> bool {
        are_rows(HeaderlessRows::Log, container, head)
    }
}

impl RegistryEntry for NumbersFormat {
    const NAME: Option<&'static str> = Some("numbers without a header");
    const READING: ReadMethod = READING;

    fn recognises(container: Container, head: &[u8]) -> bool {
        are_rows(HeaderlessRows::Numbers, container, head)
    }
}

fn are_rows(rows: HeaderlessRows, container: Container, head: &[u8]) -> bool {
    // `PowerShell` writes UTF-16, which is no text to others.
    let may_have_rows = matches!(
        container,
        Container::Text | Container::Html | Container::Unknown
    );
    may_have_rows && rows_in(head) == Some(rows)
}
